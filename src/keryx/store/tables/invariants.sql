-- name: invariants.claimed_by_nobody
-- Items that belong to a turn that does not live, or is another session's.
SELECT i.session_id, CAST(i.id AS TEXT)
FROM inbox i LEFT JOIN turns t ON t.id = i.turn_id
WHERE i.state = 'claimed'
  AND (t.id IS NULL OR t.state NOT IN ('running', 'waiting') OR t.session_id <> i.session_id)
LIMIT :limit

-- name: invariants.wrong_fate
-- Items whose fate does not fit their state.
SELECT session_id, CAST(id AS TEXT) FROM inbox
WHERE (state = 'dead' AND fate <> 'failed') OR (state = 'done' AND fate = 'failed')
   OR (state IN ('done', 'dead')) <> (ended_at IS NOT NULL)
LIMIT :limit

-- name: invariants.answered_by_nobody
-- Items that count as answered although no finished turn had them in sight.
SELECT i.session_id, CAST(i.id AS TEXT)
FROM inbox i LEFT JOIN turns t ON t.id = i.turn_id
WHERE i.fate IN ('answered', 'merged') AND i.kind <> 'approval'
  AND (t.id IS NULL OR t.state <> 'finished' OR i.seq IS NULL)
LIMIT :limit

-- name: invariants.not_one_answer
-- Finished turns that do not answer exactly one of their items, the others being merged into it.
SELECT t.session_id, CAST(t.id AS TEXT)
FROM turns t JOIN inbox i ON i.turn_id = t.id
WHERE t.state = 'finished'
GROUP BY t.session_id, t.id
HAVING SUM(CASE WHEN i.fate = 'answered' THEN 1 ELSE 0 END) <> 1
LIMIT :limit

-- name: invariants.failed_silently
-- Messages that failed without a word to who sent them.
SELECT i.session_id, CAST(i.id AS TEXT) FROM inbox i
WHERE i.fate = 'failed' AND i.kind = 'message'
  AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.turn_id = i.turn_id AND o.kind = 'reply')
LIMIT :limit

-- name: invariants.waiting_in_bin
-- Items that nobody will ever answer, because their session lies in the bin.
SELECT i.session_id, CAST(i.id AS TEXT)
FROM inbox i JOIN sessions s ON s.id = i.session_id
WHERE i.state = 'ready' AND s.deleted_at IS NOT NULL
LIMIT :limit

-- name: invariants.replied_twice
-- Turns with more than one final message for one address.
SELECT session_id, address FROM outbox
WHERE turn_id IS NOT NULL AND kind IN ('reply', 'scheduled', 'copy')
GROUP BY session_id, turn_id, address
HAVING COUNT(*) > 1
LIMIT :limit

-- name: invariants.half_sent
-- Deliveries that are being sent by nobody, or have an end without being over.
SELECT session_id, CAST(id AS TEXT) FROM outbox
WHERE (state = 'sending') <> (claimed_by IS NOT NULL AND claim_epoch IS NOT NULL)
   OR (state IN ('ready', 'sending')) <> (ended_at IS NULL)
   OR (state <> 'ready' AND attempts = 0)
LIMIT :limit

-- name: invariants.sent_side_by_side
-- Addresses to which two deliveries are being sent at once.
SELECT CAST(NULL AS TEXT), address FROM outbox
WHERE state = 'sending'
GROUP BY address
HAVING COUNT(*) > 1
LIMIT :limit

-- name: invariants.unheard
-- Deliveries that are to be said where nobody will ever be again.
SELECT o.session_id, CAST(o.id AS TEXT) FROM outbox o
WHERE o.state IN ('ready', 'sending') AND o.platform = 'local' AND o.account LIKE 'print-%'
  AND NOT EXISTS (SELECT 1 FROM connector_leases l WHERE l.platform = o.platform AND l.account = o.account)
LIMIT :limit

-- name: invariants.out_of_order
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

-- name: invariants.crossed_keys
-- Surfaces that show a session said to other people than those who are there, or one in the bin.
SELECT k.session_id, k.key
FROM session_keys k JOIN sessions s ON s.id = k.session_id
WHERE k.audience_id <> s.audience_id OR s.deleted_at IS NOT NULL
LIMIT :limit

-- name: invariants.crossed_replies
-- Answers that go from a group to elsewhere, or from a private conversation into a group.
SELECT o.session_id, CAST(o.id AS TEXT)
FROM outbox o JOIN sessions s ON s.id = o.session_id JOIN audiences a ON a.id = s.audience_id
WHERE o.kind IN ('reply', 'copy')
  AND CASE WHEN a.key LIKE 'chat:%'
           THEN SUBSTR('chat:' || o.address || ':', 1, LENGTH(a.key) + 1) <> a.key || ':'
           ELSE EXISTS (SELECT 1 FROM audiences g WHERE g.key = 'chat:' || o.address)
      END
LIMIT :limit

-- name: invariants.crossed_rules
-- Calls that were allowed by the lasting yes of another person, or by one for another session.
SELECT a.session_id, CAST(a.id AS TEXT)
FROM approvals a JOIN approval_rules r ON r.id = a.rule_id
WHERE r.person_id <> a.person_id OR r.session_id <> a.session_id OR a.state <> 'approved'
LIMIT :limit

-- name: invariants.fallen_epochs
-- Turns with an older epoch than the turn before them, or a newer one than their session.
WITH placed AS (
    SELECT t.session_id, t.id, t.epoch, s.lease_epoch,
           LAG(t.epoch) OVER (PARTITION BY t.session_id ORDER BY t.id) AS before_epoch
    FROM turns t JOIN sessions s ON s.id = t.session_id
)
SELECT session_id, CAST(id AS TEXT) FROM placed WHERE before_epoch > epoch OR epoch > lease_epoch
LIMIT :limit

-- name: invariants.two_turns
-- Sessions in which more than one turn lives.
SELECT session_id, CAST(COUNT(*) AS TEXT) FROM turns
WHERE state IN ('running', 'waiting')
GROUP BY session_id
HAVING COUNT(*) > 1
LIMIT :limit

-- name: invariants.idle_leases
-- Sessions that somebody holds without running a turn in them.
SELECT s.id, s.lease_holder FROM sessions s
WHERE s.lease_expires_at > :lease_now AND s.lease_boot_id = :boot_id
  AND NOT EXISTS (SELECT 1 FROM turns t
                  WHERE t.session_id = s.id AND t.state = 'running' AND t.epoch = s.lease_epoch)
LIMIT :limit

-- name: invariants.wrong_totals
-- Sessions whose counters over all rows, messages and unsaid answers, are not what the rows say.
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

-- name: invariants.wrong_counts
-- Sessions without branches whose number of messages is not what the rows say.
SELECT s.id, CAST(s.message_count AS TEXT)
FROM sessions s LEFT JOIN (
    SELECT session_id, COUNT(*) AS message_count FROM messages WHERE branch_no = 0 GROUP BY session_id
) m ON m.session_id = s.id
WHERE s.active_branch_no = 0 AND s.message_count <> COALESCE(m.message_count, 0)
  AND NOT EXISTS (SELECT 1 FROM branches b WHERE b.session_id = s.id AND b.no = 0)
LIMIT :limit

-- name: invariants.list_branched
-- Sessions that show a branch with a parent, or keep a summary: what they show has to be followed.
SELECT s.id, s.active_branch_no, s.last_branch_no, s.message_count FROM sessions s
WHERE s.active_branch_no <> 0
   OR EXISTS (SELECT 1 FROM branches b WHERE b.session_id = s.id)
   OR EXISTS (SELECT 1 FROM covers c WHERE c.session_id = s.id AND c.dropped_at IS NULL)
ORDER BY s.id

-- name: invariants.rootless_branches
-- Branches that go on from a message that is not there.
SELECT b.session_id, CAST(b.no AS TEXT) FROM branches b
WHERE b.parent_session_id IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM messages m
                  WHERE m.session_id = b.parent_session_id AND m.branch_no = b.parent_no AND m.seq = b.parent_seq)
LIMIT :limit

-- name: invariants.stray_messages
-- Messages of a branch that is not there, or from before it began.
SELECT m.session_id, CAST(m.id AS TEXT)
FROM messages m LEFT JOIN branches b ON b.session_id = m.session_id AND b.no = m.branch_no
WHERE CASE WHEN b.no IS NULL THEN m.branch_no <> 0 ELSE m.seq <= b.parent_seq END
LIMIT :limit

-- name: invariants.doubled_places
-- Places of a session that hold more than one message.
SELECT session_id, CAST(seq AS TEXT) FROM messages
GROUP BY session_id, seq
HAVING COUNT(*) > 1
LIMIT :limit

-- name: invariants.open_calls
-- Calls without a result whose turn is over and which no coming turn will take up.
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

-- name: invariants.wrong_results
-- Sessions whose turns' messages make other calls, or hold other results, than their steps say.
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

-- name: invariants.wrong_steps
-- Calls that started too often, or whose state is not what happened to them.
SELECT session_id, call_id FROM steps
WHERE (effect IN ('once', 'ask') AND starts > 1)
   OR (state = 'started' AND starts = 0)
   OR (state IN ('done', 'unknown')) <> (result_seq IS NOT NULL)
LIMIT :limit

-- name: invariants.shared_keys
-- Idempotency keys under which two calls would pass for one.
SELECT CAST(NULL AS TEXT), idempotency_key FROM steps
GROUP BY idempotency_key
HAVING COUNT(*) > 1
LIMIT :limit

-- name: invariants.gaps_in_streams
-- Sessions whose facts are not numbered from one on without a gap.
SELECT s.id, CAST(s.feed_no AS TEXT)
FROM sessions s LEFT JOIN (
    SELECT session_id, COUNT(*) AS facts, MAX(number) AS last_no
    FROM feed WHERE session_id IS NOT NULL AND number > 0 GROUP BY session_id
) f ON f.session_id = s.id
WHERE s.feed_no <> COALESCE(f.facts, 0) OR s.feed_no <> COALESCE(f.last_no, 0)
LIMIT :limit

-- name: invariants.gaps_in_personal_streams
-- People whose own facts are not numbered from one on without a gap.
SELECT CAST(NULL AS TEXT), CAST(p.id AS TEXT)
FROM people p LEFT JOIN (
    SELECT person_id, COUNT(*) AS facts, MAX(number) AS last_no
    FROM feed WHERE person_id IS NOT NULL GROUP BY person_id
) f ON f.person_id = p.id
WHERE p.feed_no <> COALESCE(f.facts, 0) OR p.feed_no <> COALESCE(f.last_no, 0)
LIMIT :limit

-- name: invariants.untold_messages
-- Sessions with another number of messages than facts about messages.
SELECT s.id, CAST(s.message_total AS TEXT)
FROM sessions s LEFT JOIN (
    SELECT session_id, COUNT(*) AS facts FROM feed WHERE kind = 'message' GROUP BY session_id
) f ON f.session_id = s.id
WHERE s.message_total <> COALESCE(f.facts, 0)
LIMIT :limit

-- name: invariants.wrong_fires
-- Fires whose state is not what became of their run.
SELECT f.session_id, CAST(f.schedule_id AS TEXT)
FROM fires f JOIN inbox i ON i.id = f.inbox_id
WHERE (f.state = 'fired' AND i.fate IN ('answered', 'merged', 'failed'))
   OR (f.state <> 'fired' AND i.state IN ('ready', 'claimed'))
LIMIT :limit

-- name: invariants.repeating_schedules
-- Schedules that are due at an instant already accounted for.
SELECT session_id, CAST(id AS TEXT) FROM schedules
WHERE state = 'active' AND due_at <= last_due_at
LIMIT :limit
