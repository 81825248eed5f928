-- name: message_fates.list_deliveries
-- List the deliveries of a platform after one, in the order of their ids.
SELECT id, turn_id, kind, state, chat_id, idempotency_key FROM outbox
WHERE platform = :platform AND id > :after
ORDER BY id LIMIT :limit

-- name: message_fates.count_unfinished
-- Count the unfinished deliveries of a platform.
SELECT COUNT(*) FROM outbox WHERE platform = :platform AND state IN ('ready', 'sending')

-- name: message_fates.list_ended
-- List the turns that have ended, each with every surface that shows its conversation now.
SELECT t.id, t.session_id, t.state, t.purpose, t.origin, k.source
FROM turns t LEFT JOIN session_keys k ON k.session_id = t.session_id
WHERE t.id > :after AND t.state NOT IN ('running', 'waiting')
ORDER BY t.id, k.key
