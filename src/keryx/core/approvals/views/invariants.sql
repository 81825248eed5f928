-- name: approval_invariants.crossed_rules
-- Calls that were allowed by the lasting yes of another person, or by one for another session.
SELECT a.session_id, CAST(a.id AS TEXT)
FROM approvals a JOIN approval_rules r ON r.id = a.rule_id
WHERE r.person_id <> a.person_id OR r.session_id <> a.session_id OR a.state <> 'approved'
LIMIT :limit
