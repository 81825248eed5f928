-- name: purge.list_children
-- Branches of other sessions that go on from a message of this one.
SELECT session_id, no, parent_seq FROM branches
WHERE parent_session_id = :session_id AND session_id <> :session_id
ORDER BY session_id, no

-- name: purge.copy_range
-- A fork's own copies of what it showed of another session; their turns are not copied, so they name none.
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
-- The branch goes on from another message than before, which says the same.
UPDATE branches SET
    parent_session_id = CAST(:parent_session_id AS TEXT),
    parent_no = CAST(:parent_no AS BIGINT),
    parent_seq = :parent_seq
WHERE session_id = :session_id AND no = :no

-- name: purge.list_in_bin
-- Sessions that have been in the bin since then or longer, oldest first.
SELECT id FROM sessions WHERE deleted_at <= :before ORDER BY deleted_at, id LIMIT :limit

-- name: purge.list_prunable
-- A person's closed sessions without activity since then, not pinned and not in the bin, longest silent first.
SELECT id FROM sessions
WHERE owner_id = :owner_id AND state = 'closed' AND pinned_at IS NULL AND deleted_at IS NULL
  AND last_active_at < :before AND (CAST(:platform AS TEXT) IS NULL OR platform = :platform)
ORDER BY last_active_at, id
LIMIT :limit

-- name: purge.drop_messages
-- Everything said in the session.
DELETE FROM messages WHERE session_id = :session_id

-- name: purge.drop_branches
-- The session's branches.
DELETE FROM branches WHERE session_id = :session_id

-- name: purge.drop_links
-- What came out of the session, and what it came out of.
DELETE FROM links WHERE from_session_id = :session_id OR to_session_id = :session_id

-- name: purge.drop_tags
-- The session's tags.
DELETE FROM tags WHERE session_id = :session_id

-- name: purge.drop_drafts
-- What people were writing in the session.
DELETE FROM drafts WHERE session_id = :session_id

-- name: purge.drop_marks
-- Up to where people had read the session.
DELETE FROM read_marks WHERE session_id = :session_id

-- name: purge.drop_old_fact
-- The fact of an earlier purge, where an import had brought the session back.
DELETE FROM feed WHERE session_id = :session_id AND number = 0

-- name: purge.drop_facts
-- The session's stream, but for the fact that it was purged.
DELETE FROM feed WHERE session_id = :session_id AND number > 0

-- name: purge.drop_session
-- The session itself.
DELETE FROM sessions WHERE id = :session_id
