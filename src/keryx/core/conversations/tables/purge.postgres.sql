-- name: purge.list_in_bin
-- Lock the sessions that were put into the bin at a time or earlier, oldest first. Skip those that are locked.
SELECT id FROM sessions WHERE deleted_at <= :before ORDER BY deleted_at, id LIMIT :limit FOR UPDATE SKIP LOCKED

-- name: purge.list_prunable
-- Lock the closed sessions of a person without activity since a time, oldest first. Skip those that are locked.
SELECT id FROM sessions
WHERE owner_id = :owner_id AND state = 'closed' AND pinned_at IS NULL AND deleted_at IS NULL
  AND last_active_at < :before AND (CAST(:platform AS TEXT) IS NULL OR platform = :platform)
ORDER BY last_active_at, id
LIMIT :limit
FOR UPDATE SKIP LOCKED
