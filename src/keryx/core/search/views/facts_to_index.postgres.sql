-- name: facts_to_index.list
-- List the facts after a position in order. Facts of the oldest running transaction and later are left out,
-- because further facts can still appear before them.
SELECT CAST(CAST(f.xid AS TEXT) AS BIGINT) AS xid, {f.new_fact}, {m.new_message}, s.audience_id, s.platform
FROM feed f
LEFT JOIN messages m ON f.kind = 'message' AND m.id = f.subject
LEFT JOIN sessions s ON s.id = m.session_id
WHERE (f.xid, f.id) > (CAST(CAST(:xid AS TEXT) AS xid8), :id)
    AND f.xid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY f.xid, f.id
LIMIT :limit

-- name: facts_to_index.list_newest
-- List the newest facts after a position, newest first. These include facts that an indexer must not pass yet.
SELECT f.kind, f.session_id, f.subject FROM feed f
WHERE (f.xid, f.id) > (CAST(CAST(:xid AS TEXT) AS xid8), :id)
ORDER BY f.xid DESC, f.id DESC
LIMIT :limit

-- name: facts_to_index.count
-- Count the facts after a position, up to a limit.
SELECT COUNT(*) FROM (
    SELECT 1 FROM feed f WHERE (f.xid, f.id) > (CAST(CAST(:xid AS TEXT) AS xid8), :id) LIMIT :limit
) AS counted
