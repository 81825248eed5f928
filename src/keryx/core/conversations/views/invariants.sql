-- name: conversation_invariants.crossed_keys
-- Keys that point to a session of another audience, or to a session in the bin.
SELECT k.session_id, k.key
FROM session_keys k JOIN sessions s ON s.id = k.session_id
WHERE k.audience_id <> s.audience_id OR s.deleted_at IS NOT NULL
LIMIT :limit

-- name: conversation_invariants.wrong_totals
-- Sessions whose totals differ from the sums over their messages and turns.
SELECT s.id, CAST(s.message_total AS TEXT)
FROM sessions s LEFT JOIN (
    SELECT session_id, COUNT(*) AS message_total, SUM(tool_call_count) AS tool_call_count,
           SUM(input_tokens) AS input_tokens, SUM(cached_tokens) AS cached_tokens,
           SUM(output_tokens) AS output_tokens, SUM(thinking_tokens) AS thinking_tokens,
           SUM(cost_micros) AS cost_micros, MAX(seq) AS last_seq
    FROM messages GROUP BY session_id
) m ON m.session_id = s.id
LEFT JOIN (
    SELECT session_id, SUM(input_tokens) AS input_tokens, SUM(cached_tokens) AS cached_tokens,
           SUM(output_tokens) AS output_tokens, SUM(thinking_tokens) AS thinking_tokens,
           SUM(cost_micros) AS cost_micros
    FROM turns GROUP BY session_id
) t ON t.session_id = s.id
WHERE s.message_total <> COALESCE(m.message_total, 0) OR s.tool_call_count <> COALESCE(m.tool_call_count, 0)
   OR s.input_tokens <> COALESCE(m.input_tokens, 0) + COALESCE(t.input_tokens, 0)
   OR s.cached_tokens <> COALESCE(m.cached_tokens, 0) + COALESCE(t.cached_tokens, 0)
   OR s.output_tokens <> COALESCE(m.output_tokens, 0) + COALESCE(t.output_tokens, 0)
   OR s.thinking_tokens <> COALESCE(m.thinking_tokens, 0) + COALESCE(t.thinking_tokens, 0)
   OR s.cost_micros <> COALESCE(m.cost_micros, 0) + COALESCE(t.cost_micros, 0)
   OR s.last_seq < COALESCE(m.last_seq, 0)
LIMIT :limit

-- name: conversation_invariants.wrong_counts
-- Sessions without branches whose number of messages differs from the rows.
SELECT s.id, CAST(s.message_count AS TEXT)
FROM sessions s LEFT JOIN (
    SELECT session_id, COUNT(*) AS message_count FROM messages WHERE branch_no = 0 GROUP BY session_id
) m ON m.session_id = s.id
WHERE s.active_branch_no = 0 AND s.message_count <> COALESCE(m.message_count, 0)
  AND NOT EXISTS (SELECT 1 FROM branches b WHERE b.session_id = s.id AND b.no = 0)
LIMIT :limit

-- name: conversation_invariants.list_branched
-- Sessions with branches, whose active path has to be followed.
SELECT s.id AS session_id, s.active_branch_no, s.last_branch_no, s.message_count FROM sessions s
WHERE s.active_branch_no <> 0
   OR EXISTS (SELECT 1 FROM branches b WHERE b.session_id = s.id)
ORDER BY s.id

-- name: conversation_invariants.rootless_branches
-- Branches whose parent message does not exist.
SELECT b.session_id, CAST(b.no AS TEXT) FROM branches b
WHERE b.parent_session_id IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM messages m
                  WHERE m.session_id = b.parent_session_id AND m.branch_no = b.parent_no AND m.seq = b.parent_seq)
LIMIT :limit

-- name: conversation_invariants.stray_messages
-- Messages whose branch does not exist, or begins after them.
SELECT m.session_id, CAST(m.id AS TEXT)
FROM messages m LEFT JOIN branches b ON b.session_id = m.session_id AND b.no = m.branch_no
WHERE CASE WHEN b.no IS NULL THEN m.branch_no <> 0 ELSE m.seq <= b.parent_seq END
LIMIT :limit

-- name: conversation_invariants.doubled_places
-- Numbers that several messages of a session have.
SELECT session_id, CAST(seq AS TEXT) FROM messages
GROUP BY session_id, seq
HAVING COUNT(*) > 1
LIMIT :limit

-- name: conversation_invariants.gaps_in_streams
-- Sessions whose events are not numbered from 1 without a gap.
SELECT s.id, CAST(s.feed_no AS TEXT)
FROM sessions s LEFT JOIN (
    SELECT session_id, COUNT(*) AS facts, MAX(number) AS last_no
    FROM feed WHERE session_id IS NOT NULL AND number > 0 GROUP BY session_id
) f ON f.session_id = s.id
WHERE s.feed_no <> COALESCE(f.facts, 0) OR s.feed_no <> COALESCE(f.last_no, 0)
LIMIT :limit

-- name: conversation_invariants.gaps_in_personal_streams
-- People whose events are not numbered from 1 without a gap.
SELECT CAST(NULL AS TEXT), CAST(p.id AS TEXT)
FROM people p LEFT JOIN (
    SELECT person_id, COUNT(*) AS facts, MAX(number) AS last_no
    FROM feed WHERE person_id IS NOT NULL GROUP BY person_id
) f ON f.person_id = p.id
WHERE p.feed_no <> COALESCE(f.facts, 0) OR p.feed_no <> COALESCE(f.last_no, 0)
LIMIT :limit

-- name: conversation_invariants.messages_without_event
-- Sessions whose number of messages differs from their number of message events.
SELECT s.id, CAST(s.message_total AS TEXT)
FROM sessions s LEFT JOIN (
    SELECT session_id, COUNT(*) AS facts FROM feed WHERE kind = 'message' GROUP BY session_id
) f ON f.session_id = s.id
WHERE s.message_total <> COALESCE(f.facts, 0)
LIMIT :limit
