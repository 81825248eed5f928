-- name: purge.list_children
-- The branches of other sessions that continue from a message of this session.
SELECT session_id, no, parent_seq FROM branches
WHERE parent_session_id = :session_id AND session_id <> :session_id
ORDER BY session_id, no

-- name: purge.copy_range
-- Copy messages into the first branch of a fork. Their turns are not copied, so turn_id is NULL.
INSERT INTO messages (
    session_id, branch_no, seq, role, parts, author, author_id, turn_id, tool_call_count, input_tokens, cached_tokens,
    output_tokens, thinking_tokens, cost_micros, finish_reason, created_at
)
SELECT
    :to_session_id, 0, m.seq, m.role, m.parts, m.author, m.author_id, NULL, m.tool_call_count, m.input_tokens,
    m.cached_tokens, m.output_tokens, m.thinking_tokens, m.cost_micros, m.finish_reason, m.created_at
FROM messages m
WHERE m.session_id = :session_id AND m.branch_no = :branch_no AND m.seq BETWEEN :first_seq AND :last_seq
ORDER BY m.seq
RETURNING id

-- name: purge.set_parent
-- Set the parent of a branch.
UPDATE branches SET
    parent_session_id = CAST(:parent_session_id AS TEXT),
    parent_no = CAST(:parent_no AS BIGINT),
    parent_seq = :parent_seq
WHERE session_id = :session_id AND no = :no

-- name: purge.list_in_bin
-- The sessions that were put into the bin at a time or earlier, oldest first.
SELECT id FROM sessions WHERE deleted_at <= :before ORDER BY deleted_at, id LIMIT :limit

-- name: purge.list_prunable
-- The closed sessions of a person without activity since a time, but no pinned or deleted ones, oldest first.
SELECT id FROM sessions
WHERE owner_id = :owner_id AND state = 'closed' AND pinned_at IS NULL AND deleted_at IS NULL
  AND last_active_at < :before AND (CAST(:platform AS TEXT) IS NULL OR platform = :platform)
ORDER BY last_active_at, id
LIMIT :limit

-- name: purge.drop_messages
-- The session's messages.
DELETE FROM messages WHERE session_id = :session_id

-- name: purge.drop_branches
-- The session's branches.
DELETE FROM branches WHERE session_id = :session_id

-- name: purge.drop_links
-- The links into and out of the session.
DELETE FROM links WHERE from_session_id = :session_id OR to_session_id = :session_id

-- name: purge.drop_tags
-- The session's tags.
DELETE FROM tags WHERE session_id = :session_id

-- name: purge.drop_drafts
-- The session's drafts.
DELETE FROM drafts WHERE session_id = :session_id

-- name: purge.drop_marks
-- The session's read marks.
DELETE FROM read_marks WHERE session_id = :session_id

-- name: purge.drop_old_event
-- The event of an earlier purge, if the session was imported again since.
DELETE FROM feed WHERE session_id = :session_id AND number = 0

-- name: purge.drop_events
-- The session's events, except the event of the purge.
DELETE FROM feed WHERE session_id = :session_id AND number > 0

-- name: purge.drop_session
-- The row of the session.
DELETE FROM sessions WHERE id = :session_id
