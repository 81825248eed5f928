-- name: pins.add
-- Pin a message in a session, unless it is pinned already.
INSERT INTO pinned_messages (session_id, seq, person_id, since_at) VALUES (:session_id, :seq, :person_id, :now)
ON CONFLICT (session_id, seq) DO NOTHING

-- name: pins.remove
-- Remove the pin of a message.
DELETE FROM pinned_messages WHERE session_id = :session_id AND seq = :seq

-- name: pins.list_of_session
-- List the pinned messages of a session, oldest first.
SELECT seq FROM pinned_messages WHERE session_id = :session_id ORDER BY seq
