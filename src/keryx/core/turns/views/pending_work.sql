-- name: pending_work.list_ready
-- Sessions in which a turn may begin now, longest waiting first: an item is due, no lease is valid, and no turn is live
-- or a waiting turn has its answer. One session or all: the range of an index serves both.
SELECT i.session_id
FROM inbox i JOIN sessions s ON s.id = i.session_id
WHERE i.state = 'ready' AND i.kind <> 'command' AND i.ready_at <= :now
  AND i.session_id >= COALESCE(CAST(:session_id AS TEXT), '')
  AND i.session_id <= COALESCE(
      CAST(:session_id AS TEXT), (SELECT MAX(newest.session_id) FROM inbox newest WHERE newest.state = 'ready'))
  AND i.purpose = COALESCE(CAST(:purpose AS TEXT), i.purpose)
  AND (s.lease_expires_at <= :lease_now OR s.lease_boot_id <> :boot_id)
  AND NOT EXISTS (SELECT 1 FROM turns t
                  WHERE t.session_id = i.session_id AND t.state IN ('running', 'waiting')
                    AND (t.state = 'running' OR i.kind <> 'approval'))
GROUP BY i.session_id
ORDER BY MIN(i.ready_at), i.session_id
LIMIT :limit
