-- name: process_list.list_of_session
-- The background processes of a session, newest first.
SELECT id, state, command, exit_code, started_at, ended_at FROM processes
WHERE session_id = :session_id
ORDER BY id DESC
LIMIT :limit
