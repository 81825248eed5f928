-- columns: approval
id, session_id, turn_id, call_id, person_id, question, state, asked_at, expires_at, answered_by, answered_at, note,
covers, rule_id

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
SELECT {approval}
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

-- name: approvals.keep_answer
-- In which words the question was answered.
UPDATE approvals SET note = :note WHERE id = :approval_id

-- name: approvals.find_answer
-- In which words the question about a call was answered, if it was.
SELECT note FROM approvals WHERE turn_id = :turn_id AND call_id = :call_id AND state = 'approved'

-- name: approvals.move_to_person
-- Open questions go to whom the person asked has become.
UPDATE approvals SET person_id = :to_person_id WHERE person_id = :from_person_id AND state = 'pending'

-- name: approvals.adopt
-- What a person said about the call still counts.
UPDATE approvals SET turn_id = :turn_id WHERE turn_id = :from_turn_id AND call_id = :call_id

-- name: approvals.drop_of_session
-- The questions its turns asked.
DELETE FROM approvals WHERE session_id = :session_id
