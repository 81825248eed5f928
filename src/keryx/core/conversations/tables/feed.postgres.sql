-- name: feed.list_after
-- What a person may see after a position, below the oldest transaction still running: nothing can appear behind it.
SELECT CAST(CAST(f.xid AS TEXT) AS BIGINT), {f.event}
FROM feed f LEFT JOIN sessions s ON s.id = f.session_id
WHERE (f.xid, f.id) > (CAST(CAST(:after_xid AS TEXT) AS xid8), :after_id)
  AND f.xid < pg_snapshot_xmin(pg_current_snapshot())
  AND (f.person_id = :person_id
       OR s.audience_id IN (SELECT audience_id FROM audience_members WHERE person_id = :person_id))
ORDER BY f.xid, f.id
LIMIT :limit

-- name: feed.list_of_session
-- One session's stream after a number, oldest first.
SELECT CAST(CAST(f.xid AS TEXT) AS BIGINT), {f.event}
FROM feed f
WHERE f.session_id = :session_id AND f.number > :after_number
ORDER BY f.number
LIMIT :limit

-- name: feed.end
-- The newest position a reader may stand at: the last fact below every transaction still running.
SELECT CAST(CAST(xid AS TEXT) AS BIGINT) AS xid, id FROM feed
WHERE xid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY xid DESC, id DESC
LIMIT 1
