-- name: expiring_sessions.list_unflushed
-- Open sessions last active in a time range, with unflushed messages and no open item, longest quiet first.
SELECT s.id, s.last_active_at AS quiet_since FROM sessions s
WHERE s.state = 'open' AND s.flushed_seq < s.last_seq
  AND (s.last_active_at, s.id) > (:after_at, :after_id) AND s.last_active_at <= :until_at
  AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.session_id = s.id AND i.state IN ('ready', 'claimed'))
ORDER BY s.last_active_at, s.id
LIMIT :limit

-- name: expiring_sessions.list_unflushed_again
-- The same for sessions that a surface resumed after the last activity, by the time of the resume.
SELECT s.id, k.since_at AS quiet_since FROM session_keys k JOIN sessions s ON s.id = k.session_id
WHERE (k.since_at, k.session_id) > (:after_at, :after_id) AND k.since_at <= :until_at
  AND s.state = 'open' AND s.flushed_seq < s.last_seq AND s.last_active_at < k.since_at
  AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.session_id = s.id AND i.state IN ('ready', 'claimed'))
ORDER BY k.since_at, k.session_id
LIMIT :limit
