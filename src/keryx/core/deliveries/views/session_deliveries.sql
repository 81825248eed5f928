-- name: session_deliveries.find_shown_at
-- Whether any of the last fifty things a session said went to an address: all of them are too many to look at.
SELECT 1 FROM (SELECT address FROM outbox WHERE session_id = :session_id ORDER BY id DESC LIMIT 50) AS lately
WHERE address = :address
LIMIT 1

-- name: session_deliveries.find_last
-- The last answer a session gave, and what became of it.
SELECT id, state, platform, attempts, error, maybe_repeated_at, created_at FROM outbox
WHERE session_id = :session_id AND kind NOT IN ('notice', 'copy')
ORDER BY id DESC
LIMIT 1
