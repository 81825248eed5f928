-- columns: rule
id, tool, pattern, session_id

-- columns: approval
id, session_id, turn_id, call_id, person_id, question, state, asked_at, expires_at, answered_by, answered_at, note,
covers, rule_id

-- name: approvals.add
-- Add a question about one call of a turn.
INSERT INTO approvals (session_id, turn_id, call_id, person_id, question, covers, state, asked_at, expires_at)
VALUES (:session_id, :turn_id, :call_id, :person_id, :question, :covers, 'pending', :now, :expires_at)
RETURNING id

-- name: approvals.add_allowed
-- Add the approval of a call that a standing approval covers: decided without a question.
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
-- Find an approval by id.
SELECT {approval}
FROM approvals WHERE id = :approval_id

-- name: approvals.decide
-- Store the first answer, or the expiry.
UPDATE approvals SET state = :state, answered_by = :answered_by, answered_at = :answered_at
WHERE id = :approval_id AND state = 'pending'

-- name: approvals.list_expired
-- List pending questions past their expiry, by session, so that all callers lock the sessions in one order. Because of
-- the cast, SQLite does not read an index of all questions ever asked for that order.
SELECT id, session_id FROM approvals WHERE state = 'pending' AND expires_at <= :now
ORDER BY CAST(session_id AS TEXT), id
LIMIT :limit

-- name: approvals.find_of_call
-- Find the state of the question about a call.
SELECT state FROM approvals WHERE turn_id = :turn_id AND call_id = :call_id

-- name: approvals.store_answer
-- Store the words of the answer.
UPDATE approvals SET note = :note WHERE id = :approval_id

-- name: approvals.find_answer
-- Find the words with which the question about a call was answered.
SELECT note FROM approvals WHERE turn_id = :turn_id AND call_id = :call_id AND state = 'approved'

-- name: approvals.move_to_person
-- Move pending questions to the person that the asked person was merged into.
UPDATE approvals SET person_id = :to_person_id WHERE person_id = :from_person_id AND state = 'pending'

-- name: approvals.move_to_turn
-- Move the question about a call to the turn that continues the call.
UPDATE approvals SET turn_id = :turn_id WHERE turn_id = :from_turn_id AND call_id = :call_id

-- name: approvals.drop_of_session
-- Delete the questions of a session's turns.
DELETE FROM approvals WHERE session_id = :session_id

-- name: approvals.add_rule
-- Add a standing approval, or return the one that exists already.
INSERT INTO approval_rules (person_id, session_id, tool, pattern, approval_id, since_at)
VALUES (:person_id, :session_id, :tool, :pattern, :approval_id, :now)
ON CONFLICT (person_id, tool, pattern, COALESCE(session_id, '')) WHERE dropped_at IS NULL
DO UPDATE SET since_at = approval_rules.since_at
RETURNING {rule}

-- name: approvals.list_rules_for_call
-- List a person's standing approvals for a tool that apply in a session, oldest first.
SELECT {rule} FROM approval_rules
WHERE person_id = :person_id AND tool = :tool AND dropped_at IS NULL
  AND (session_id IS NULL OR session_id = :session_id)
ORDER BY id

-- name: approvals.drop_rule
-- Drop a standing approval of a person.
UPDATE approval_rules SET dropped_at = :now
WHERE id = :rule_id AND person_id = :person_id AND dropped_at IS NULL

-- name: approvals.drop_rules_of_session
-- Drop the standing approvals for a session.
UPDATE approval_rules SET dropped_at = :now
WHERE session_id = :session_id AND dropped_at IS NULL
