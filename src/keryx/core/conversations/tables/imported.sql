-- name: imported.add_session
-- A session that comes from elsewhere; nothing when its id is taken.
INSERT INTO sessions (
    id, profile, owner_id, audience_id, state, platform, source, display_name, title, title_by, preview, project_id,
    workspace, model, model_settings, personality, started_at, last_active_at, closed_at, close_reason, pinned_at,
    archived_at, active_branch_no, last_branch_no, reset_reason, flushed_seq
)
VALUES (
    :id, :profile, :owner_id, :audience_id, :state, :platform, :source, :display_name, :title, :title_by, :preview,
    :project_id, :workspace, :model, :model_settings, :personality, :started_at, :last_active_at, :closed_at,
    :close_reason, :pinned_at, :archived_at, :active_branch_no, :last_branch_no, :reset_reason, :flushed_seq
)
ON CONFLICT (id) DO NOTHING

-- name: imported.add_branch
-- A branch with the time it was made at.
INSERT INTO branches (session_id, no, parent_session_id, parent_no, parent_seq, reason, created_at)
VALUES (:session_id, :no, :parent_session_id, :parent_no, :parent_seq, :reason, :created_at)

-- name: imported.add_link
-- What the session came out of; an origin that is known already stays with the session that has it.
INSERT INTO links (kind, from_session_id, to_session_id, at_seq, origin, created_at)
VALUES (:kind, :from_session_id, :session_id, :at_seq, :origin, :created_at)
ON CONFLICT DO NOTHING

-- name: imported.add_message
-- A message with its place and time.
INSERT INTO messages (
    session_id, branch_no, seq, role, parts, author, turn_id, tool_call_count, input_tokens, cached_tokens,
    output_tokens, thinking_tokens, cost_micros, finish_reason, created_at
)
VALUES (
    :session_id, :branch_no, :seq, :role, :parts, :author, :turn_id, :tool_call_count, :input_tokens, :cached_tokens,
    :output_tokens, :thinking_tokens, :cost_micros, :finish_reason, :created_at
)

-- name: imported.add_facts
-- One fact for each message, in the order of their places, after the facts there are.
INSERT INTO feed (session_id, number, kind, subject, at)
SELECT m.session_id, s.feed_no + ROW_NUMBER() OVER (ORDER BY m.branch_no, m.seq), 'message', m.id, :now
FROM messages m JOIN sessions s ON s.id = m.session_id
WHERE m.session_id = :session_id

-- name: imported.count
-- The counters of a session that came from elsewhere, from its rows.
UPDATE sessions SET
    last_seq = :last_seq,
    message_count = :message_count,
    feed_no = feed_no + (SELECT COUNT(*) FROM messages m WHERE m.session_id = sessions.id),
    message_total = (SELECT COUNT(*) FROM messages m WHERE m.session_id = sessions.id),
    tool_call_count = (SELECT COALESCE(SUM(m.tool_call_count), 0) FROM messages m WHERE m.session_id = sessions.id),
    input_tokens = (SELECT COALESCE(SUM(m.input_tokens), 0) FROM messages m WHERE m.session_id = sessions.id)
        + (SELECT COALESCE(SUM(t.input_tokens), 0) FROM turns t WHERE t.session_id = sessions.id),
    cached_tokens = (SELECT COALESCE(SUM(m.cached_tokens), 0) FROM messages m WHERE m.session_id = sessions.id)
        + (SELECT COALESCE(SUM(t.cached_tokens), 0) FROM turns t WHERE t.session_id = sessions.id),
    output_tokens = (SELECT COALESCE(SUM(m.output_tokens), 0) FROM messages m WHERE m.session_id = sessions.id)
        + (SELECT COALESCE(SUM(t.output_tokens), 0) FROM turns t WHERE t.session_id = sessions.id),
    thinking_tokens = (SELECT COALESCE(SUM(m.thinking_tokens), 0) FROM messages m WHERE m.session_id = sessions.id)
        + (SELECT COALESCE(SUM(t.thinking_tokens), 0) FROM turns t WHERE t.session_id = sessions.id),
    cost_micros = (SELECT COALESCE(SUM(m.cost_micros), 0) FROM messages m WHERE m.session_id = sessions.id)
        + (SELECT COALESCE(SUM(t.cost_micros), 0) FROM turns t WHERE t.session_id = sessions.id)
WHERE id = :session_id
