-- name: rule_list.list_of_person
-- Everything a person lastingly allows, oldest first, with the names of the sessions.
SELECT r.id, r.tool, r.pattern, r.session_id, r.since_at, s.title AS session_title
FROM approval_rules r LEFT JOIN sessions s ON s.id = r.session_id
WHERE r.person_id = :person_id AND r.dropped_at IS NULL
ORDER BY r.id
LIMIT :limit
