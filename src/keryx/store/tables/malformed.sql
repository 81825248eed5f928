-- name: malformed.add
-- An update that could not be read; the same one again is no change.
INSERT INTO malformed (platform, account, ref, raw, reason, received_at)
VALUES (:platform, :account, :ref, :raw, :reason, :now)
ON CONFLICT (platform, account, ref) DO NOTHING

-- name: malformed.list_newest
-- The newest of them.
SELECT id, platform, account, ref, raw, reason, received_at FROM malformed ORDER BY id DESC LIMIT :limit

-- name: malformed.count
-- How many there are.
SELECT COUNT(*) FROM malformed
