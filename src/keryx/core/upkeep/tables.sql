-- name: upkeep.enter_node
-- Add a process, or extend its time.
INSERT INTO nodes (holder, kind, host, pid, version, started_at, boot_id, expires_at)
VALUES (:holder, :kind, :host, :pid, :version, :now, :boot_id, CAST(:lease_now AS BIGINT) + :lease_time)
ON CONFLICT (holder) DO UPDATE SET boot_id = excluded.boot_id, expires_at = excluded.expires_at

-- name: upkeep.drop_node
-- Delete a process that has ended.
DELETE FROM nodes WHERE holder = :holder

-- name: upkeep.drop_expired_nodes
-- Delete the processes that expired long ago, or before the machine was restarted.
DELETE FROM nodes WHERE boot_id <> :boot_id OR expires_at <= CAST(:lease_now AS BIGINT) - :kept

-- name: upkeep.has_gateway
-- A live gateway.
SELECT 1 FROM nodes WHERE kind = 'gateway' AND expires_at > :lease_now AND boot_id = :boot_id LIMIT 1

-- name: upkeep.list_nodes
-- All processes, oldest first; the remaining time is below zero for an expired one.
SELECT holder, kind, host, pid, version, started_at,
       CASE WHEN boot_id = :boot_id THEN expires_at - CAST(:lease_now AS BIGINT) ELSE -1 END AS remaining
FROM nodes ORDER BY started_at, holder

-- name: upkeep.add_malformed
-- Add an update; a repeated one changes nothing.
INSERT INTO malformed (platform, account, ref, raw, reason, received_at)
VALUES (:platform, :account, :ref, :raw, :reason, :now)
ON CONFLICT (platform, account, ref) DO NOTHING

-- name: upkeep.list_malformed
-- The newest updates that could not be parsed.
SELECT id, platform, account, ref, raw, reason, received_at FROM malformed ORDER BY id DESC LIMIT :limit

-- name: upkeep.count_malformed
-- How many updates could not be parsed.
SELECT COUNT(*) FROM malformed
