-- name: tags.add
-- Add a tag to a session. Changes nothing if the session has it.
INSERT INTO tags (session_id, tag, since_at) VALUES (:session_id, :tag, :now) ON CONFLICT (session_id, tag) DO NOTHING

-- name: tags.remove
-- Remove a tag from a session.
DELETE FROM tags WHERE session_id = :session_id AND tag = :tag

-- name: tags.list_of_session
-- The tags of a session.
SELECT tag FROM tags WHERE session_id = :session_id
