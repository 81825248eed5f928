-- name: session_list.walk
-- The next sessions of one audience, pinned or not, by last activity, in the order of an index.
SELECT (SELECT MIN(k.key) FROM session_keys k WHERE k.session_id = s.id) AS key, {s.session}
FROM sessions s
WHERE s.audience_id = :audience_id AND s.deleted_at IS NULL AND s.archived_at IS NULL
  AND (s.pinned_at IS NOT NULL) = (:pinned = 1) AND (s.last_active_at, s.id) < (:last_active_at, :id)
  AND (s.title IS NOT NULL OR s.message_count > 0 OR s.message_total > 0 OR s.started_at + :empty_listed >= :now)
ORDER BY s.last_active_at DESC, s.id DESC
LIMIT :limit

-- name: session_list.merge
-- The next sessions of all audiences of a person, with filters: a queue holds the next session of each audience,
-- and before them, for each audience, the position after which the page begins.
WITH RECURSIVE queue (last_active_at, id, audience_id, row_id) AS (
    SELECT :last_active_at, :id, a.audience_id, NULL FROM audience_members a WHERE a.person_id = :person_id
    UNION ALL
    SELECT s.last_active_at, s.id, s.audience_id, s.rowid
    FROM queue q CROSS JOIN sessions s ON s.rowid = (
        SELECT x.rowid FROM sessions x
        WHERE x.audience_id = q.audience_id AND x.deleted_at IS NULL AND x.archived_at IS NULL
            AND (x.pinned_at IS NOT NULL) = (:pinned = 1) AND (x.last_active_at, x.id) < (q.last_active_at, q.id)
            AND x.last_active_at >= :active_since
            AND (x.title IS NOT NULL OR x.message_count > 0 OR x.message_total > 0 OR x.started_at + :empty_listed >= :now)
            AND (CAST(:platform AS TEXT) IS NULL OR x.platform = :platform)
            AND (CAST(:project AS TEXT) IS NULL OR x.project_id IN (SELECT p.id FROM projects p WHERE p.name = :project))
            AND (CAST(:tag AS TEXT) IS NULL
                 OR EXISTS (SELECT 1 FROM tags t WHERE t.session_id = x.id AND t.tag = :tag))
        ORDER BY x.last_active_at DESC, x.id DESC
        LIMIT 1
    )
    ORDER BY 1 DESC, 2 DESC
    LIMIT :limit + (SELECT COUNT(*) FROM audience_members a WHERE a.person_id = :person_id)
)
SELECT (SELECT MIN(k.key) FROM session_keys k WHERE k.session_id = s.id) AS key, {s.session}
FROM queue q CROSS JOIN sessions s ON s.rowid = q.row_id
ORDER BY s.last_active_at DESC, s.id DESC

-- name: session_list.list_archived
-- The next archived sessions of a person, by last activity.
SELECT (SELECT MIN(k.key) FROM session_keys k WHERE k.session_id = s.id) AS key, {s.session}
FROM audience_members a JOIN sessions s ON s.audience_id = a.audience_id
WHERE a.person_id = :person_id AND s.deleted_at IS NULL AND s.archived_at IS NOT NULL
  AND (s.pinned_at IS NOT NULL) = (:pinned = 1) AND (s.last_active_at, s.id) < (:last_active_at, :id)
  AND s.last_active_at >= :active_since
  AND (CAST(:platform AS TEXT) IS NULL OR s.platform = :platform)
  AND (CAST(:project AS TEXT) IS NULL OR s.project_id IN (SELECT p.id FROM projects p WHERE p.name = :project))
  AND (CAST(:tag AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM tags t WHERE t.session_id = s.id AND t.tag = :tag))
ORDER BY s.last_active_at DESC, s.id DESC
LIMIT :limit

-- name: session_list.list_recent
-- The recent sessions of an audience: pinned sessions first, then by last activity.
SELECT (SELECT MIN(k.key) FROM session_keys k WHERE k.session_id = s.id) AS key, {s.session}
FROM sessions s
WHERE s.audience_id = :audience_id AND s.deleted_at IS NULL AND s.archived_at IS NULL
  AND (s.title IS NOT NULL OR s.message_count > 0 OR s.message_total > 0)
ORDER BY (s.pinned_at IS NOT NULL) DESC, s.last_active_at DESC, s.id DESC
LIMIT :limit

-- name: session_list.count
-- The number of sessions that a person may see, and of the messages in them, without the bin.
SELECT COUNT(*), CAST(COALESCE(SUM(s.message_total), 0) AS BIGINT)
FROM audience_members a JOIN sessions s ON s.audience_id = a.audience_id
WHERE a.person_id = :person_id AND s.deleted_at IS NULL
  AND (CAST(:platform AS TEXT) IS NULL OR s.platform = :platform)
