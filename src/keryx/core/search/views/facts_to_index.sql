-- columns: new_fact
id, kind, session_id

-- columns: new_message
id AS message_id, role, parts AS body, author, author_id, created_at

-- name: facts_to_index.list
-- List the facts after a position in order, each with its message if its subject is a message that still exists.
SELECT 0 AS xid, {f.new_fact}, {m.new_message}, s.audience_id, s.platform
FROM feed f
LEFT JOIN messages m ON f.kind = 'message' AND m.id = f.subject
LEFT JOIN sessions s ON s.id = m.session_id
WHERE f.id > :id
ORDER BY f.id
LIMIT :limit

-- name: facts_to_index.list_newest
-- List the newest facts after a position, newest first. These include facts that an indexer must not pass yet.
SELECT f.kind, f.session_id, f.subject FROM feed f
WHERE f.id > :id
ORDER BY f.id DESC
LIMIT :limit

-- name: facts_to_index.count
-- Count the facts after a position, up to a limit.
SELECT COUNT(*) FROM (SELECT 1 FROM feed f WHERE f.id > :id LIMIT :limit) AS counted
