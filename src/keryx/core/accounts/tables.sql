-- name: connector_leases.take
-- Take or renew the lease of an account. Changes nothing while another gateway holds the lease.
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
RETURNING platform, account, holder, epoch

-- name: connector_leases.release
-- End a lease, if the gateway still holds it.
UPDATE connector_leases SET expires_at = :lease_now
WHERE platform = :platform AND account = :account AND holder = :holder AND epoch = :epoch

-- name: connector_leases.check
-- Lock a lease until the transaction ends, if the gateway still holds it.
UPDATE connector_leases SET epoch = epoch
WHERE platform = :platform AND account = :account AND holder = :holder AND epoch = :epoch
  AND expires_at > :lease_now AND boot_id = :boot_id

-- name: connector_leases.free_of_holder
-- End all leases of a holder.
UPDATE connector_leases SET expires_at = :lease_now WHERE holder = :holder AND expires_at > :lease_now

-- name: connector_leases.list_left
-- The accounts of one-shot sources whose lease has expired.
SELECT account FROM connector_leases
WHERE platform = 'local' AND account LIKE 'print-%' AND (expires_at <= :lease_now OR boot_id <> :boot_id)
ORDER BY account LIMIT :limit

-- name: connector_leases.drop_left
-- Delete the account of a one-shot source, unless it is held again.
DELETE FROM connector_leases
WHERE platform = 'local' AND account = :account AND (expires_at <= :lease_now OR boot_id <> :boot_id)

-- name: connector_leases.list_held
-- The accounts that are held now.
SELECT platform, account, holder FROM connector_leases
WHERE expires_at > :lease_now AND boot_id = :boot_id
ORDER BY platform, account
