-- name: recent_sessions.list_of_audience
-- An audience's recent sessions in the order of lists: pinned first, then by last activity.
SELECT id, title, preview, state, pinned_at, last_active_at, message_count FROM sessions
WHERE audience_id = :audience_id AND deleted_at IS NULL AND archived_at IS NULL
  AND (title IS NOT NULL OR message_count > 0 OR message_total > 0)
ORDER BY (pinned_at IS NOT NULL) DESC, last_active_at DESC, id DESC
LIMIT :limit
