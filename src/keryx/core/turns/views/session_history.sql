-- name: session_history.find_last_message
-- The last thing somebody said to a session, and its fate.
SELECT id, state, fate, fate_note, received_at FROM inbox
WHERE session_id = :session_id AND kind = 'message'
ORDER BY id DESC
LIMIT 1

-- name: session_history.find_last_reset
-- When and out of what a session began by a reset.
SELECT from_session_id, created_at FROM links
WHERE to_session_id = :session_id AND kind = 'reset'
ORDER BY id DESC
LIMIT 1
