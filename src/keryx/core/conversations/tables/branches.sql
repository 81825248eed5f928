-- name: branches.list_of_session
-- The branches of a session that have a row. Branch 0 has a row only in a fork.
SELECT session_id, no, parent_session_id, parent_no, parent_seq, reason, created_at
FROM branches WHERE session_id = :session_id ORDER BY no

-- name: branches.add
-- Add a branch that continues from a message of its parent.
INSERT INTO branches (session_id, no, parent_session_id, parent_no, parent_seq, reason, created_at)
VALUES (:session_id, :no, :parent_session_id, :parent_no, :parent_seq, :reason, :created_at)

-- name: branches.activate
-- Make a branch the active one and store the number of messages on its path.
UPDATE sessions SET
    active_branch_no = :no,
    last_branch_no = CASE WHEN :no > last_branch_no THEN :no ELSE last_branch_no END,
    message_count = :message_count
WHERE id = :session_id

-- name: branches.add_link
-- Link a session to the session or the other program that it came from.
INSERT INTO links (kind, from_session_id, to_session_id, at_seq, origin, created_at)
VALUES (:kind, :from_session_id, :to_session_id, :at_seq, :origin, :now)

-- name: branches.list_links
-- The links into and out of a session, oldest first.
SELECT kind, from_session_id, to_session_id, at_seq, origin, created_at
FROM links WHERE to_session_id = :session_id OR from_session_id = :session_id ORDER BY id

-- name: branches.find_delegation
-- The task that a session was opened for, from its link.
SELECT origin FROM links WHERE to_session_id = :session_id AND kind = 'delegation' AND origin IS NOT NULL
ORDER BY id LIMIT 1
