-- name: paths.list_last
-- As much of the newest messages of one branch up to a number as shows where turns begin, newest first.
SELECT seq, role, turn_id FROM messages
WHERE session_id = :session_id AND branch_no = :branch_no AND seq BETWEEN :first_seq AND :last_seq
ORDER BY seq DESC
LIMIT :limit
