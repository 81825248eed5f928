-- name: nodes.enter
-- A process works on the store, or goes on to.
INSERT INTO nodes (holder, kind, host, pid, version, started_at, boot_id, expires_at)
VALUES (:holder, :kind, :host, :pid, :version, :now, :boot_id, CAST(:lease_now AS BIGINT) + :lease_time)
ON CONFLICT (holder) DO UPDATE SET boot_id = excluded.boot_id, expires_at = excluded.expires_at

-- name: nodes.leave
-- It does no more.
DELETE FROM nodes WHERE holder = :holder

-- name: nodes.drop_gone
-- Those whose time was up long ago.
DELETE FROM nodes WHERE boot_id <> :boot_id OR expires_at <= CAST(:lease_now AS BIGINT) - :kept

-- name: nodes.has_gateway
-- Whether some gateway works on the store now.
SELECT 1 FROM nodes WHERE kind = 'gateway' AND expires_at > :lease_now AND boot_id = :boot_id LIMIT 1

-- name: nodes.list
-- Who works on the store, longest first; what is left of its time is below zero for one that is gone.
SELECT holder, kind, host, pid, version, started_at,
       CASE WHEN boot_id = :boot_id THEN expires_at - CAST(:lease_now AS BIGINT) ELSE -1 END AS left
FROM nodes ORDER BY started_at, holder
