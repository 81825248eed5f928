-- name: pins.add
-- The message is pinned in this session; again is no change.
INSERT INTO pinned_messages (session_id, seq, person_id, since_at) VALUES (:session_id, :seq, :person_id, :now)
ON CONFLICT (session_id, seq) DO NOTHING

-- name: pins.remove
-- The message is no longer pinned in this session.
DELETE FROM pinned_messages WHERE session_id = :session_id AND seq = :seq

-- name: pins.list_of_session
-- What is pinned in a session, in the order in which it was said.
SELECT seq FROM pinned_messages WHERE session_id = :session_id ORDER BY seq
