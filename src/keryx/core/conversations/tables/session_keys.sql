-- columns: session_key
key, session_id, source AS source_json, audience_id, since_at

-- name: session_keys.find
-- The row of a key.
SELECT {session_key} FROM session_keys WHERE key = :key

-- name: session_keys.point
-- Point a new or an existing key to a session.
INSERT INTO session_keys (key, session_id, source, audience_id, since_at)
VALUES (:key, :session_id, :source, :audience_id, :now)
ON CONFLICT (key) DO UPDATE
SET session_id = excluded.session_id, source = excluded.source, audience_id = excluded.audience_id, since_at = excluded.since_at

-- name: session_keys.add
-- Point a new key to a session. Changes nothing if the key is in use.
INSERT INTO session_keys (key, session_id, source, audience_id, since_at)
VALUES (:key, :session_id, :source, :audience_id, :now)
ON CONFLICT (key) DO NOTHING

-- name: session_keys.list_of_session
-- The keys that point to a session, oldest first.
SELECT {session_key} FROM session_keys WHERE session_id = :session_id ORDER BY since_at, key

-- name: session_keys.remove_of_session
-- Remove all keys that point to a session.
DELETE FROM session_keys WHERE session_id = :session_id

-- name: session_keys.remove
-- Remove a key.
DELETE FROM session_keys WHERE key = :key
