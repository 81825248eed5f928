-- columns: archived_turn
id AS no, branch_no, state, purpose, begun_at, ended_at, reason, model, input_tokens, cached_tokens, output_tokens,
thinking_tokens, cost_micros, zone

-- name: archive.list_covers
-- All summaries of a session, including dropped ones, in the order of their numbers.
SELECT no, branch_no, first_seq, last_seq, summary, tokens_before, tokens_after, created_at, focus, dropped_at,
       model, input_tokens, cached_tokens, output_tokens, cost_micros
FROM covers WHERE session_id = :session_id ORDER BY no

-- name: archive.list_origins
-- The links to the origins of a session, oldest first.
SELECT kind, created_at, from_session_id, at_seq, origin FROM links WHERE to_session_id = :session_id ORDER BY id

-- name: archive.find_turn
-- The columns of a turn that have a meaning in another store.
SELECT {archived_turn} FROM turns WHERE id = :turn_id

-- name: archive.list_unsaid
-- The turns of a session that used tokens and left no message.
SELECT {t.archived_turn} FROM turns t
WHERE t.session_id = :session_id AND (t.input_tokens > 0 OR t.output_tokens > 0)
  AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.session_id = t.session_id AND m.turn_id = t.id)
ORDER BY t.id
