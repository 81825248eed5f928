-- columns: lease
id AS session_id, lease_holder AS holder, lease_epoch AS epoch, lease_expires_at AS expires_at

-- name: leases.take
-- Take the session if it has no lease, if its lease has expired, or if the lease is from another boot.
UPDATE sessions
SET lease_holder = :holder, lease_epoch = lease_epoch + 1, lease_boot_id = :boot_id,
    lease_expires_at = CAST(:lease_now AS BIGINT) + :lease_time
WHERE id = :session_id AND (lease_expires_at <= :lease_now OR lease_boot_id <> :boot_id)
RETURNING {lease}

-- name: leases.renew
-- Extend a lease that has this holder and epoch and has not expired.
UPDATE sessions SET lease_expires_at = CAST(:lease_now AS BIGINT) + :lease_time
WHERE id = :session_id AND lease_holder = :holder AND lease_epoch = :epoch
  AND lease_expires_at > :lease_now AND lease_boot_id = :boot_id
RETURNING {lease}

-- name: leases.check
-- Lock the session if this lease is valid; it stays valid until the transaction ends.
UPDATE sessions SET lease_epoch = lease_epoch
WHERE id = :session_id AND lease_holder = :holder AND lease_epoch = :epoch
  AND lease_expires_at > :lease_now AND lease_boot_id = :boot_id
RETURNING lease_epoch

-- name: leases.release
-- End a lease; the epoch stays, so that it rises for the next holder.
UPDATE sessions SET lease_expires_at = 0
WHERE id = :session_id AND lease_holder = :holder AND lease_epoch = :epoch
  AND lease_expires_at > :lease_now AND lease_boot_id = :boot_id

-- name: leases.break
-- wakes: turns
-- End the lease of a session; its holder is late from now on.
UPDATE sessions SET lease_expires_at = 0 WHERE id = :session_id

-- name: leases.find_live
-- The holder of the session's lease.
SELECT lease_holder FROM sessions
WHERE id = :session_id AND lease_expires_at > :lease_now AND lease_boot_id = :boot_id

-- name: leases.free_of_holder
-- wakes: turns
-- End the leases of a dead holder, which has a running turn in each session.
UPDATE sessions SET lease_expires_at = 0
WHERE lease_holder = :holder AND id IN (SELECT t.session_id FROM turns t WHERE t.state = 'running' AND t.holder = :holder)

-- name: leases.list_held
-- The sessions with a running turn and a valid lease; uses the index on live turns.
SELECT t.holder, t.session_id FROM turns t JOIN sessions s ON s.id = t.session_id
WHERE t.state IN ('running', 'waiting') AND t.state = 'running' AND s.lease_holder = t.holder AND s.lease_epoch = t.epoch
  AND s.lease_expires_at > :lease_now AND s.lease_boot_id = :boot_id
ORDER BY t.holder, t.session_id
