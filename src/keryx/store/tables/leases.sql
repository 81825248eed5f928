-- name: leases.take
-- Succeeds when nobody holds the session, the holder's time is up, or the holder is of another boot.
UPDATE sessions
SET lease_holder = :holder, lease_epoch = lease_epoch + 1, lease_boot_id = :boot_id,
    lease_expires_at = CAST(:lease_now AS BIGINT) + :lease_time
WHERE id = :session_id AND (lease_expires_at <= :lease_now OR lease_boot_id <> :boot_id)
RETURNING lease_epoch, lease_expires_at

-- name: leases.renew
-- Only for the holder of this epoch, and only while its time is not up.
UPDATE sessions SET lease_expires_at = CAST(:lease_now AS BIGINT) + :lease_time
WHERE id = :session_id AND lease_holder = :holder AND lease_epoch = :epoch
  AND lease_expires_at > :lease_now AND lease_boot_id = :boot_id
RETURNING lease_expires_at

-- name: leases.check
-- Whether the session is held in this epoch; the row is locked, so it stays so until the transaction ends.
UPDATE sessions SET lease_epoch = lease_epoch
WHERE id = :session_id AND lease_holder = :holder AND lease_epoch = :epoch
  AND lease_expires_at > :lease_now AND lease_boot_id = :boot_id
RETURNING lease_epoch

-- name: leases.release
-- The epoch stays, so that it rises for the next holder.
UPDATE sessions SET lease_expires_at = 0
WHERE id = :session_id AND lease_holder = :holder AND lease_epoch = :epoch
  AND lease_expires_at > :lease_now AND lease_boot_id = :boot_id

-- name: leases.break
-- wakes: turns
-- Whoever holds the session is late from now on: its next write finds another epoch, or none.
UPDATE sessions SET lease_expires_at = 0 WHERE id = :session_id

-- name: leases.find_live
-- Who holds the session now.
SELECT lease_holder FROM sessions
WHERE id = :session_id AND lease_expires_at > :lease_now AND lease_boot_id = :boot_id

-- name: leases.take_connector
-- One gateway polls an account: whoever had it keeps it while renewing.
INSERT INTO connector_leases (platform, account, holder, epoch, boot_id, expires_at)
VALUES (:platform, :account, :holder, 1, :boot_id, CAST(:lease_now AS BIGINT) + :lease_time)
ON CONFLICT (platform, account) DO UPDATE
SET holder = excluded.holder,
    epoch = CASE WHEN connector_leases.holder = excluded.holder AND connector_leases.boot_id = :boot_id
                      AND connector_leases.expires_at > :lease_now
                 THEN connector_leases.epoch ELSE connector_leases.epoch + 1 END,
    boot_id = excluded.boot_id, expires_at = excluded.expires_at
WHERE connector_leases.holder = excluded.holder
   OR connector_leases.expires_at <= :lease_now OR connector_leases.boot_id <> :boot_id
RETURNING epoch, expires_at

-- name: leases.release_connector
-- Another gateway may poll the account at once.
UPDATE connector_leases SET expires_at = :lease_now
WHERE platform = :platform AND account = :account AND holder = :holder AND epoch = :epoch

-- name: leases.holds_connector
-- Whether this gateway may claim the account's deliveries; it stays so until the transaction ends.
UPDATE connector_leases SET epoch = epoch
WHERE platform = :platform AND account = :account AND holder = :holder AND epoch = :epoch
  AND expires_at > :lease_now AND boot_id = :boot_id

-- name: leases.free_sessions
-- wakes: turns
-- The sessions of a holder that is dead: it runs a turn in each.
UPDATE sessions SET lease_expires_at = 0
WHERE lease_holder = :holder AND id IN (SELECT t.session_id FROM turns t WHERE t.state = 'running' AND t.holder = :holder)

-- name: leases.free_connectors
-- The accounts of a holder that is dead.
UPDATE connector_leases SET expires_at = :lease_now WHERE holder = :holder AND expires_at > :lease_now

-- name: leases.list_left
-- Places for one answer that nobody holds any more.
SELECT account FROM connector_leases
WHERE platform = 'local' AND account LIKE 'print-%' AND (expires_at <= :lease_now OR boot_id <> :boot_id)
ORDER BY account LIMIT :limit

-- name: leases.drop_left
-- Forgotten, unless somebody is there again.
DELETE FROM connector_leases
WHERE platform = 'local' AND account = :account AND (expires_at <= :lease_now OR boot_id <> :boot_id)
