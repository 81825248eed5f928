-- name: session_history.find_last_message
-- The last message of a session, and its fate.
SELECT id, state, fate, fate_note, received_at FROM inbox
WHERE session_id = :session_id AND kind = 'message'
ORDER BY id DESC
LIMIT 1

-- name: session_history.find_last_reset
-- The reset by which a session began.
SELECT from_session_id, created_at FROM links
WHERE to_session_id = :session_id AND kind = 'reset'
ORDER BY id DESC
LIMIT 1

-- name: session_history.list_effects
-- The effects of the calls after a message of a branch.
SELECT DISTINCT s.effect
FROM messages m JOIN steps s ON s.turn_id = m.turn_id
WHERE m.session_id = :session_id AND m.branch_no = :branch_no AND m.seq > :after_seq AND s.call_seq > :after_seq
