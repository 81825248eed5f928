-- columns: session_key
key, session_id, source AS source_json, audience_id, since_at

-- name: session_keys.find
-- Which session a key points to now.
SELECT {session_key} FROM session_keys WHERE key = :key

-- name: session_keys.point
-- From now on messages with this key belong to that session.
INSERT INTO session_keys (key, session_id, source, audience_id, since_at)
VALUES (:key, :session_id, :source, :audience_id, :now)
ON CONFLICT (key) DO UPDATE
SET session_id = excluded.session_id, source = excluded.source, audience_id = excluded.audience_id, since_at = excluded.since_at

-- name: session_keys.add
-- A key seen for the first time; nothing when another transaction was faster.
INSERT INTO session_keys (key, session_id, source, audience_id, since_at)
VALUES (:key, :session_id, :source, :audience_id, :now)
ON CONFLICT (key) DO NOTHING

-- name: session_keys.list_of_session
-- The surfaces on which a session is the current one, oldest first.
SELECT {session_key} FROM session_keys WHERE session_id = :session_id ORDER BY since_at, key

-- name: session_keys.remove_of_session
-- No surface shows the session any more.
DELETE FROM session_keys WHERE session_id = :session_id

-- name: session_keys.remove
-- Nobody speaks there any more.
DELETE FROM session_keys WHERE key = :key
