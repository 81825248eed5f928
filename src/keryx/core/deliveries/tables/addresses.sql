-- name: addresses.record_inbound
-- A message arrived from this address, so the address is alive again.
INSERT INTO addresses (address, platform, account, last_inbound_at) VALUES (:address, :platform, :account, :now)
ON CONFLICT (address) DO UPDATE
SET last_inbound_at = excluded.last_inbound_at, dead_since_at = NULL, reason = NULL, probes = 0, probe_at = NULL

-- name: addresses.mark_dead
-- Mark the address as dead, and count a failed probe.
INSERT INTO addresses (address, platform, account, dead_since_at, reason, probes, probe_at)
VALUES (:address, :platform, :account, :now, :reason, 1, :probe_at)
ON CONFLICT (address) DO UPDATE
SET dead_since_at = COALESCE(addresses.dead_since_at, excluded.dead_since_at), reason = excluded.reason,
    probes = addresses.probes + 1, probe_at = excluded.probe_at

-- name: addresses.mark_alive
-- wakes: deliveries
-- A delivery to this address succeeded, so the address is alive again.
UPDATE addresses SET dead_since_at = NULL, reason = NULL, probes = 0, probe_at = NULL
WHERE address = :address AND dead_since_at IS NOT NULL

-- name: addresses.find
-- Find an address.
SELECT address, platform, account, dead_since_at, reason, probes, probe_at, last_inbound_at
FROM addresses WHERE address = :address
