-- name: message_fates.list_ended
-- Turns that are over, each with every surface that shows its conversation now.
SELECT t.id, t.session_id, t.state, t.purpose, t.origin, k.source
FROM turns t LEFT JOIN session_keys k ON k.session_id = t.session_id
WHERE t.id > :after AND t.state NOT IN ('running', 'waiting')
ORDER BY t.id, k.key
