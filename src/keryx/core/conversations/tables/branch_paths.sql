-- name: branch_paths.list_last
-- As much of the newest messages of one branch up to a number as shows where turns begin, newest first.
SELECT seq, role, turn_id FROM messages
WHERE session_id = :session_id AND branch_no = :branch_no AND seq BETWEEN :first_seq AND :last_seq
ORDER BY seq DESC
LIMIT :limit

-- name: branch_paths.list_authors
-- Who spoke in one branch between two numbers.
SELECT DISTINCT author_id FROM messages
WHERE session_id = :session_id AND branch_no = :branch_no AND seq BETWEEN :first_seq AND :last_seq
  AND role = 'user' AND author_id IS NOT NULL
