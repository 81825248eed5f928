-- name: session_deliveries.find_shown_at
-- Find whether one of the session's last fifty deliveries went to an address. All deliveries would be too many to read.
SELECT 1 FROM (SELECT address FROM outbox WHERE session_id = :session_id ORDER BY id DESC LIMIT 50) AS lately
WHERE address = :address
LIMIT 1

-- name: session_deliveries.find_last
-- Find the last answer of a session, and its state.
SELECT id, state, platform, attempts, error, maybe_repeated_at, created_at FROM outbox
WHERE session_id = :session_id AND kind NOT IN ('notice', 'copy')
ORDER BY id DESC
LIMIT 1
