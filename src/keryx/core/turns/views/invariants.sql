-- name: turn_invariants.claimed_without_turn
-- Claimed items whose turn is not live, or belongs to another session.
SELECT i.session_id, CAST(i.id AS TEXT)
FROM inbox i LEFT JOIN turns t ON t.id = i.turn_id
WHERE i.state = 'claimed'
  AND (t.id IS NULL OR t.state NOT IN ('running', 'waiting') OR t.session_id <> i.session_id)
LIMIT :limit

-- name: turn_invariants.wrong_fate
-- Items whose fate does not fit their state.
SELECT session_id, CAST(id AS TEXT) FROM inbox
WHERE (state = 'dead' AND fate <> 'failed') OR (state = 'done' AND fate = 'failed')
   OR (state IN ('done', 'dead')) <> (ended_at IS NOT NULL)
LIMIT :limit

-- name: turn_invariants.answered_without_turn
-- Answered items without a finished turn or without a place in the transcript.
SELECT i.session_id, CAST(i.id AS TEXT)
FROM inbox i LEFT JOIN turns t ON t.id = i.turn_id
WHERE i.fate IN ('answered', 'merged') AND i.kind <> 'approval'
  AND (t.id IS NULL OR t.state <> 'finished' OR i.seq IS NULL)
LIMIT :limit

-- name: turn_invariants.not_one_answer
-- Finished turns that do not answer exactly one of their items, the others being merged into it.
SELECT t.session_id, CAST(t.id AS TEXT)
FROM turns t JOIN inbox i ON i.turn_id = t.id
WHERE t.state = 'finished'
GROUP BY t.session_id, t.id
HAVING SUM(CASE WHEN i.fate = 'answered' THEN 1 ELSE 0 END) <> 1
LIMIT :limit

-- name: turn_invariants.failed_silently
-- Failed messages without a reply.
SELECT i.session_id, CAST(i.id AS TEXT) FROM inbox i
WHERE i.fate = 'failed' AND i.kind = 'message'
  AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.turn_id = i.turn_id AND o.kind = 'reply')
LIMIT :limit

-- name: turn_invariants.waiting_in_bin
-- Ready items in the bin, which no turn will answer.
SELECT i.session_id, CAST(i.id AS TEXT)
FROM inbox i JOIN sessions s ON s.id = i.session_id
WHERE i.state = 'ready' AND s.deleted_at IS NOT NULL
LIMIT :limit

-- name: turn_invariants.out_of_order
-- Turns whose reply came after the reply to a later message of the same session.
WITH answered AS (
    SELECT i.session_id, i.turn_id, MAX(i.id) AS last_id, MIN(o.id) AS reply_id
    FROM inbox i JOIN outbox o ON o.turn_id = i.turn_id AND o.kind = 'reply'
    WHERE i.fate = 'answered' AND i.kind = 'message'
    GROUP BY i.session_id, i.turn_id
), placed AS (
    SELECT session_id, turn_id, last_id, LAG(last_id) OVER (PARTITION BY session_id ORDER BY reply_id) AS before_id
    FROM answered
)
SELECT session_id, CAST(turn_id AS TEXT) FROM placed WHERE before_id > last_id
LIMIT :limit

-- name: turn_invariants.falling_epochs
-- Turns with an older epoch than the turn before them, or a newer one than their session.
WITH placed AS (
    SELECT t.session_id, t.id, t.epoch, s.lease_epoch,
           LAG(t.epoch) OVER (PARTITION BY t.session_id ORDER BY t.id) AS before_epoch
    FROM turns t JOIN sessions s ON s.id = t.session_id
)
SELECT session_id, CAST(id AS TEXT) FROM placed WHERE before_epoch > epoch OR epoch > lease_epoch
LIMIT :limit

-- name: turn_invariants.two_turns
-- Sessions with more than one live turn.
SELECT session_id, CAST(COUNT(*) AS TEXT) FROM turns
WHERE state IN ('running', 'waiting')
GROUP BY session_id
HAVING COUNT(*) > 1
LIMIT :limit

-- name: turn_invariants.idle_leases
-- Sessions with a valid lease and without a running turn.
SELECT s.id, s.lease_holder FROM sessions s
WHERE s.lease_expires_at > :lease_now AND s.lease_boot_id = :boot_id
  AND NOT EXISTS (SELECT 1 FROM turns t
                  WHERE t.session_id = s.id AND t.state = 'running' AND t.epoch = s.lease_epoch)
LIMIT :limit

-- name: turn_invariants.open_calls
-- Open calls of ended turns that no later turn will continue.
SELECT p.session_id, p.call_id
FROM steps p JOIN turns t ON t.id = p.turn_id JOIN sessions s ON s.id = p.session_id
WHERE p.state IN ('called', 'started')
  AND (t.state IN ('finished', 'stopped')
       OR (t.state IN ('failed', 'lost')
           AND EXISTS (SELECT 1 FROM messages m
                       WHERE m.session_id = p.session_id AND m.branch_no = s.active_branch_no
                         AND m.seq = p.call_seq)
           AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.session_id = p.session_id AND i.state = 'ready')))
LIMIT :limit

-- name: turn_invariants.wrong_results
-- Sessions whose messages have other numbers of calls or results than their steps.
SELECT s.id, 'calls and results'
FROM sessions s
LEFT JOIN (
    SELECT session_id, COUNT(*) AS calls, SUM(CASE WHEN result_seq IS NULL THEN 0 ELSE 1 END) AS results
    FROM steps GROUP BY session_id
) p ON p.session_id = s.id
LEFT JOIN (
    SELECT m.session_id, SUM(m.tool_call_count) AS calls, SUM(CASE WHEN m.role = 'tool' THEN 1 ELSE 0 END) AS results
    FROM messages m JOIN turns t ON t.id = m.turn_id
    WHERE t.epoch > 0
    GROUP BY m.session_id
) m ON m.session_id = s.id
WHERE COALESCE(p.calls, 0) <> COALESCE(m.calls, 0) OR COALESCE(p.results, 0) <> COALESCE(m.results, 0)
LIMIT :limit

-- name: turn_invariants.wrong_steps
-- Calls that started too often, or whose state contradicts their other columns.
SELECT session_id, call_id FROM steps
WHERE (effect IN ('once', 'ask') AND starts > 1)
   OR (state = 'started' AND starts = 0)
   OR (state IN ('done', 'unknown')) <> (result_seq IS NOT NULL)
LIMIT :limit

-- name: turn_invariants.shared_keys
-- Idempotency keys of more than one call.
SELECT CAST(NULL AS TEXT), idempotency_key FROM steps
GROUP BY idempotency_key
HAVING COUNT(*) > 1
LIMIT :limit
