-- name: approvals.add
-- A question about one call of a turn.
INSERT INTO approvals (session_id, turn_id, call_id, person_id, question, covers, state, asked_at, expires_at)
VALUES (:session_id, :turn_id, :call_id, :person_id, :question, :covers, 'pending', :now, :expires_at)
RETURNING id

-- name: approvals.add_allowed
-- A call that a lasting yes covers: allowed without asking.
INSERT INTO approvals (
    session_id, turn_id, call_id, person_id, question, covers, state, asked_at, expires_at, answered_by, answered_at,
    rule_id
)
VALUES (
    :session_id, :turn_id, :call_id, :person_id, :question, :covers, 'approved', :now, :expires_at, :person_id, :now,
    :rule_id
)
RETURNING id

-- name: approvals.find
-- One approval by id.
SELECT
    id, session_id, turn_id, call_id, person_id, question, state, asked_at, expires_at, answered_by, answered_at, note,
    covers, rule_id
FROM approvals WHERE id = :approval_id

-- name: approvals.decide
-- The first answer, or that none came in time.
UPDATE approvals SET state = :state, answered_by = :answered_by, answered_at = :answered_at
WHERE id = :approval_id AND state = 'pending'

-- name: approvals.list_expired
-- Questions whose time is up; by session, so that whoever locks the sessions does so in one order. The cast keeps SQLite
-- from taking that order from an index of all questions ever asked.
SELECT id, session_id FROM approvals WHERE state = 'pending' AND expires_at <= :now
ORDER BY CAST(session_id AS TEXT), id
LIMIT :limit

-- name: approvals.find_of_call
-- How it stands with the question about a call.
SELECT state FROM approvals WHERE turn_id = :turn_id AND call_id = :call_id

-- name: approvals.find_question
-- The question of a turn that a person's next words answer: one that the agent put in its own words.
SELECT
    a.id, a.session_id, a.turn_id, a.call_id, a.person_id, a.question, a.state, a.asked_at, a.expires_at, a.answered_by,
    a.answered_at, a.note, a.covers, a.rule_id
FROM approvals a JOIN steps s ON s.turn_id = a.turn_id AND s.call_id = a.call_id
WHERE a.turn_id = :turn_id AND a.person_id = :person_id AND a.state = 'pending' AND s.name = :name
ORDER BY a.id LIMIT 1

-- name: approvals.keep_answer
-- In which words the question was answered.
UPDATE approvals SET note = :note WHERE id = :approval_id

-- name: approvals.find_answer
-- In which words the question about a call was answered, if it was.
SELECT note FROM approvals WHERE turn_id = :turn_id AND call_id = :call_id AND state = 'approved'

-- name: approvals.find_open
-- What a turn waits for a person to answer, and the tool it is about.
SELECT a.id, a.question, s.name, a.covers, a.expires_at
FROM approvals a JOIN steps s ON s.turn_id = a.turn_id AND s.call_id = a.call_id
WHERE a.turn_id = :turn_id AND a.person_id = :person_id AND a.state = 'pending'
