-- name: session_list.merge
-- The next sessions of all audiences of a person, with filters: the next sessions of each audience, merged.
SELECT (SELECT MIN(k.key) FROM session_keys k WHERE k.session_id = s.id) AS key, {s.session}
FROM audience_members a CROSS JOIN LATERAL (
    SELECT x.* FROM sessions x
    WHERE x.audience_id = a.audience_id AND x.deleted_at IS NULL AND x.archived_at IS NULL
      AND (x.pinned_at IS NOT NULL) = (:pinned = 1) AND (x.last_active_at, x.id) < (:last_active_at, :id)
      AND x.last_active_at >= :active_since
      AND (x.title IS NOT NULL OR x.message_count > 0 OR x.message_total > 0 OR x.started_at + :empty_listed >= :now)
      AND (CAST(:platform AS TEXT) IS NULL OR x.platform = :platform)
      AND (CAST(:project AS TEXT) IS NULL OR x.project_id IN (SELECT p.id FROM projects p WHERE p.name = :project))
      AND (CAST(:tag AS TEXT) IS NULL
           OR EXISTS (SELECT 1 FROM tags t WHERE t.session_id = x.id AND t.tag = :tag))
    ORDER BY x.last_active_at DESC, x.id DESC
    LIMIT :limit
) s
WHERE a.person_id = :person_id
ORDER BY s.last_active_at DESC, s.id DESC
LIMIT :limit
