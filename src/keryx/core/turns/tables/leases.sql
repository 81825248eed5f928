-- name: leases.take
-- Succeeds if the session has no lease, if its lease has expired, or if the lease is from another boot.
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

-- name: leases.free_of_holder
-- wakes: turns
-- The sessions of a holder that is dead: it runs a turn in each.
UPDATE sessions SET lease_expires_at = 0
WHERE lease_holder = :holder AND id IN (SELECT t.session_id FROM turns t WHERE t.state = 'running' AND t.holder = :holder)

-- name: leases.list_held
-- In which sessions each holder runs a turn; found by the index on live turns.
SELECT t.holder, t.session_id FROM turns t JOIN sessions s ON s.id = t.session_id
WHERE t.state IN ('running', 'waiting') AND t.state = 'running' AND s.lease_holder = t.holder AND s.lease_epoch = t.epoch
  AND s.lease_expires_at > :lease_now AND s.lease_boot_id = :boot_id
ORDER BY t.holder, t.session_id
