-- name: accounting.list_fates
-- What became of each item of a platform, and in which session, in the order of acceptance.
SELECT ref, kind, fate, session_id FROM inbox WHERE platform = :platform ORDER BY id

-- name: accounting.count_open
-- What has not ended: items, turns, deliveries.
SELECT
    (SELECT COUNT(*) FROM inbox WHERE state IN ('ready', 'claimed')),
    (SELECT COUNT(*) FROM turns WHERE state IN ('running', 'waiting')),
    (SELECT COUNT(*) FROM outbox WHERE state IN ('ready', 'sending'))
