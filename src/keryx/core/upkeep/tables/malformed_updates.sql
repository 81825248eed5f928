-- name: malformed_updates.add
-- An update that could not be read; the same one again is no change.
INSERT INTO malformed (platform, account, ref, raw, reason, received_at)
VALUES (:platform, :account, :ref, :raw, :reason, :now)
ON CONFLICT (platform, account, ref) DO NOTHING

-- name: malformed_updates.list_newest
-- The newest of them.
SELECT id, platform, account, ref, raw, reason, received_at FROM malformed ORDER BY id DESC LIMIT :limit

-- name: malformed_updates.count
-- How many there are.
SELECT COUNT(*) FROM malformed
