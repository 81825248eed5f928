-- name: feed.list_after
-- The events after a position that a person may see, oldest first. Events of transactions that are newer than the
-- oldest running transaction are left out: older events could still appear before them.
SELECT CAST(CAST(f.xid AS TEXT) AS BIGINT), {f.event}
FROM feed f LEFT JOIN sessions s ON s.id = f.session_id
WHERE (f.xid, f.id) > (CAST(CAST(:after_xid AS TEXT) AS xid8), :after_id)
  AND f.xid < pg_snapshot_xmin(pg_current_snapshot())
  AND (f.person_id = :person_id
       OR s.audience_id IN (SELECT audience_id FROM audience_members WHERE person_id = :person_id))
ORDER BY f.xid, f.id
LIMIT :limit

-- name: feed.list_of_session
-- The events of a session after a number, oldest first.
SELECT CAST(CAST(f.xid AS TEXT) AS BIGINT), {f.event}
FROM feed f
WHERE f.session_id = :session_id AND f.number > :after_number
ORDER BY f.number
LIMIT :limit

-- name: feed.end
-- The position of the newest event that is older than all running transactions.
SELECT CAST(CAST(xid AS TEXT) AS BIGINT) AS xid, id FROM feed
WHERE xid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY xid DESC, id DESC
LIMIT 1
