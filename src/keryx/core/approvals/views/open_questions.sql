-- name: open_questions.list_of_session
-- What a session waits for a person to allow, oldest first; a turn that was stopped waits for nothing.
SELECT a.id, a.question AS text
FROM approvals a JOIN turns t ON t.id = a.turn_id
WHERE a.session_id = :session_id AND a.person_id = :person_id AND a.state = 'pending' AND t.state = 'waiting'
ORDER BY a.id

-- name: open_questions.find_asked
-- The question of a turn that a person's next words answer: one that the agent put in its own words.
SELECT {a.approval}
FROM approvals a JOIN steps s ON s.turn_id = a.turn_id AND s.call_id = a.call_id
WHERE a.turn_id = :turn_id AND a.person_id = :person_id AND a.state = 'pending' AND s.name = :name
ORDER BY a.id LIMIT 1

-- name: open_questions.find_waiting
-- What a turn waits for a person to answer, and the tool it is about.
SELECT a.id, a.question AS text, s.name AS tool, a.covers, a.expires_at
FROM approvals a JOIN steps s ON s.turn_id = a.turn_id AND s.call_id = a.call_id
WHERE a.turn_id = :turn_id AND a.person_id = :person_id AND a.state = 'pending'
