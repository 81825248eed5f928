-- columns: session
id, profile, owner_id, audience_id, state, platform, source AS source_json, display_name, title, title_by, preview,
project_id, workspace, model, model_settings, personality, started_at, last_active_at, closed_at, close_reason,
pinned_at, archived_at, deleted_at, active_branch_no, last_branch_no, last_seq, feed_no, message_count, message_total,
tool_call_count, input_tokens, cached_tokens, output_tokens, thinking_tokens, cost_micros, reset_reason, flushed_seq

-- name: sessions.add
-- Add a session. Changes nothing if the id is in use.
INSERT INTO sessions (
    id, profile, owner_id, audience_id, state, platform, source, display_name, title, title_by, preview, project_id,
    workspace, model, model_settings, personality, started_at, last_active_at, closed_at, close_reason, pinned_at,
    archived_at, active_branch_no, last_branch_no, last_seq, message_count, reset_reason, flushed_seq
)
VALUES (
    :id, :profile, :owner_id, :audience_id, :state, :platform, :source, :display_name, :title, :title_by, :preview,
    :project_id, :workspace, :model, :model_settings, :personality, :started_at, :last_active_at, :closed_at,
    :close_reason, :pinned_at, :archived_at, :active_branch_no, :last_branch_no, :last_seq, :message_count,
    :reset_reason, :flushed_seq
)
ON CONFLICT (id) DO NOTHING

-- name: sessions.find
-- A session by id.
SELECT (SELECT MIN(k.key) FROM session_keys k WHERE k.session_id = s.id) AS key, {s.session}
FROM sessions s
WHERE s.id = :session_id

-- name: sessions.find_visible
-- A session by id, if the person belongs to its audience.
SELECT (SELECT MIN(k.key) FROM session_keys k WHERE k.session_id = s.id) AS key, {s.session}
FROM sessions s
JOIN audience_members m ON m.audience_id = s.audience_id AND m.person_id = :person_id
WHERE s.id = :session_id

-- name: sessions.lock
-- Lock a session until the transaction ends, and return its row.
UPDATE sessions SET feed_no = feed_no WHERE id = :session_id
RETURNING state, active_branch_no, last_branch_no, last_seq, message_count

-- name: sessions.append
-- Count one more message and reserve its numbers: for the holder of the session's lease or, without a holder, for a
-- person who may see the session while no turn runs in it.
UPDATE sessions SET
    last_seq = last_seq + 1,
    feed_no = feed_no + 1,
    message_count = message_count + 1,
    message_total = message_total + 1,
    tool_call_count = tool_call_count + :tool_call_count,
    input_tokens = input_tokens + :input_tokens,
    cached_tokens = cached_tokens + :cached_tokens,
    output_tokens = output_tokens + :output_tokens,
    thinking_tokens = thinking_tokens + :thinking_tokens,
    cost_micros = cost_micros + :cost_micros,
    last_active_at = CASE WHEN :active_at > last_active_at THEN :active_at ELSE last_active_at END,
    preview = COALESCE(CAST(:preview AS TEXT), preview),
    title_by = CASE WHEN title IS NULL AND CAST(:title AS TEXT) IS NOT NULL THEN 'text' ELSE title_by END,
    title = COALESCE(title, CAST(:title AS TEXT))
WHERE id = :session_id
  AND CASE
      WHEN CAST(:holder AS TEXT) IS NULL THEN (lease_expires_at <= :lease_now OR lease_boot_id <> :boot_id)
          AND EXISTS (SELECT 1 FROM audience_members m
                      WHERE m.person_id = :person_id AND m.audience_id = sessions.audience_id)
      ELSE lease_holder = :holder AND lease_epoch = :epoch
          AND lease_expires_at > :lease_now AND lease_boot_id = :boot_id
  END
RETURNING last_seq AS seq, feed_no AS feed_number, active_branch_no AS branch_no

-- name: sessions.close
-- Close an open session. A closed session keeps its reason.
UPDATE sessions SET state = 'closed', closed_at = :now, close_reason = :reason
WHERE id = :session_id AND state = 'open'

-- name: sessions.reopen
-- Open a closed session.
UPDATE sessions SET state = 'open', closed_at = NULL, close_reason = NULL
WHERE id = :session_id AND state = 'closed'

-- name: sessions.take_reset_reason
-- Clear the reset reason, which the agent receives once.
UPDATE sessions SET reset_reason = NULL WHERE id = :session_id AND reset_reason IS NOT NULL

-- name: sessions.set_display_name
-- Set the platform's name of the chat. Changes nothing if it is the same.
UPDATE sessions SET display_name = :display_name
WHERE id = :session_id AND (display_name IS NULL OR display_name <> :display_name)

-- name: sessions.count_unsaid
-- Count the usage of an answer that is not in the transcript.
UPDATE sessions SET
    input_tokens = input_tokens + :input_tokens,
    cached_tokens = cached_tokens + :cached_tokens,
    output_tokens = output_tokens + :output_tokens,
    thinking_tokens = thinking_tokens + :thinking_tokens,
    cost_micros = cost_micros + :cost_micros
WHERE id = :session_id

-- name: sessions.recount
-- Compute the counters of a session from its messages and turns.
UPDATE sessions SET (
    message_total, tool_call_count, input_tokens, cached_tokens, output_tokens, thinking_tokens, cost_micros
) = (
    SELECT
        CAST(SUM(u.messages) AS BIGINT), CAST(SUM(u.tool_call_count) AS BIGINT), CAST(SUM(u.input_tokens) AS BIGINT),
        CAST(SUM(u.cached_tokens) AS BIGINT), CAST(SUM(u.output_tokens) AS BIGINT),
        CAST(SUM(u.thinking_tokens) AS BIGINT), CAST(SUM(u.cost_micros) AS BIGINT)
    FROM (
        SELECT
            1 AS messages, m.tool_call_count, m.input_tokens, m.cached_tokens, m.output_tokens, m.thinking_tokens,
            m.cost_micros
        FROM messages m WHERE m.session_id = :session_id
        UNION ALL
        SELECT 0, 0, t.input_tokens, t.cached_tokens, t.output_tokens, t.thinking_tokens, t.cost_micros
        FROM turns t WHERE t.session_id = :session_id
        UNION ALL
        SELECT 0, 0, 0, 0, 0, 0, 0
    ) u
)
WHERE id = :session_id
