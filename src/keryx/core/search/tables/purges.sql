-- name: search_purges.add
-- Add every session that is in the index but no longer in the store.
INSERT INTO search_purges (session_id)
SELECT c.session_id FROM search_cards c
WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = c.session_id)
ON CONFLICT (session_id) DO NOTHING

-- name: search_purges.list
-- List sessions whose words must still leave the index.
SELECT session_id FROM search_purges ORDER BY session_id LIMIT :limit

-- name: search_purges.finish
-- Record that no word of a session is left in the index.
DELETE FROM search_purges WHERE session_id = :session_id

-- name: search_purges.clear
-- Delete all purges.
DELETE FROM search_purges
