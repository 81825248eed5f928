-- name: connector_leases.take
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

-- name: connector_leases.release
-- Another gateway may poll the account at once.
UPDATE connector_leases SET expires_at = :lease_now
WHERE platform = :platform AND account = :account AND holder = :holder AND epoch = :epoch

-- name: connector_leases.check
-- Whether this gateway may claim the account's deliveries; it stays so until the transaction ends.
UPDATE connector_leases SET epoch = epoch
WHERE platform = :platform AND account = :account AND holder = :holder AND epoch = :epoch
  AND expires_at > :lease_now AND boot_id = :boot_id

-- name: connector_leases.free_of_holder
-- The accounts of a holder that is dead.
UPDATE connector_leases SET expires_at = :lease_now WHERE holder = :holder AND expires_at > :lease_now

-- name: connector_leases.list_left
-- Places for one answer that nobody holds any more.
SELECT account FROM connector_leases
WHERE platform = 'local' AND account LIKE 'print-%' AND (expires_at <= :lease_now OR boot_id <> :boot_id)
ORDER BY account LIMIT :limit

-- name: connector_leases.drop_left
-- Forgotten, unless somebody is there again.
DELETE FROM connector_leases
WHERE platform = 'local' AND account = :account AND (expires_at <= :lease_now OR boot_id <> :boot_id)

-- name: connector_leases.list_held
-- Which accounts are held by whom.
SELECT platform, account, holder FROM connector_leases
WHERE expires_at > :lease_now AND boot_id = :boot_id
ORDER BY platform, account
