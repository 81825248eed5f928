-- name: branch_paths.list_last
-- The last messages of one branch between two numbers, newest first, with the columns that show where turns begin.
SELECT seq, role, turn_id FROM messages
WHERE session_id = :session_id AND branch_no = :branch_no AND seq BETWEEN :first_seq AND :last_seq
ORDER BY seq DESC
LIMIT :limit

-- name: branch_paths.list_authors
-- The authors of the user messages of one branch between two numbers.
SELECT DISTINCT author_id FROM messages
WHERE session_id = :session_id AND branch_no = :branch_no AND seq BETWEEN :first_seq AND :last_seq
  AND role = 'user' AND author_id IS NOT NULL
