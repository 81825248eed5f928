-- name: purge.list_in_bin
-- Sessions that have been in the bin since then or longer, oldest first; locked, and without those being changed now.
SELECT id FROM sessions WHERE deleted_at <= :before ORDER BY deleted_at, id LIMIT :limit FOR UPDATE SKIP LOCKED

-- name: purge.list_prunable
-- A person's closed sessions without activity since then, longest silent first; locked, like those in the bin.
SELECT id FROM sessions
WHERE owner_id = :owner_id AND state = 'closed' AND pinned_at IS NULL AND deleted_at IS NULL
  AND last_active_at < :before AND (CAST(:platform AS TEXT) IS NULL OR platform = :platform)
ORDER BY last_active_at, id
LIMIT :limit
FOR UPDATE SKIP LOCKED
