-- name: approval_views.list_questions
-- List the questions of a session that wait for a person, oldest first. A stopped turn does not wait.
SELECT a.id, a.question AS text
FROM approvals a JOIN turns t ON t.id = a.turn_id
WHERE a.session_id = :session_id AND a.person_id = :person_id AND a.state = 'pending' AND t.state = 'waiting'
ORDER BY a.id

-- name: approval_views.find_question
-- Find the question that the agent asked in its own words: the person's next message answers it.
SELECT {a.approval}
FROM approvals a JOIN steps s ON s.turn_id = a.turn_id AND s.call_id = a.call_id
WHERE a.turn_id = :turn_id AND a.person_id = :person_id AND a.state = 'pending' AND s.name = :name
ORDER BY a.id LIMIT 1

-- name: approval_views.find_open
-- Find the pending question of a turn, and the tool that it is about.
SELECT a.id, a.question AS text, s.name AS tool, a.covers, a.expires_at
FROM approvals a JOIN steps s ON s.turn_id = a.turn_id AND s.call_id = a.call_id
WHERE a.turn_id = :turn_id AND a.person_id = :person_id AND a.state = 'pending'

-- name: approval_views.list_rules
-- List a person's standing approvals with the titles of the sessions, oldest first.
SELECT r.id, r.tool, r.pattern, r.session_id, r.since_at, s.title AS session_title
FROM approval_rules r LEFT JOIN sessions s ON s.id = r.session_id
WHERE r.person_id = :person_id AND r.dropped_at IS NULL
ORDER BY r.id
LIMIT :limit

-- name: approval_views.crossed_rules
-- List calls that were allowed by another person's standing approval, or by one for another session.
SELECT a.session_id, CAST(a.id AS TEXT)
FROM approvals a JOIN approval_rules r ON r.id = a.rule_id
WHERE r.person_id <> a.person_id OR r.session_id <> a.session_id OR a.state <> 'approved'
LIMIT :limit
