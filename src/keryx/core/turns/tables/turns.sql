-- columns: turn
id, session_id, branch_no, state, purpose, holder, epoch, person_id, origin AS origin_json, begun_at, ended_at,
reason, stop_requested_at

-- columns: step
turn_id, call_id, no, session_id, name, effect, state, idempotency_key, call_seq, result_seq, starts

-- name: turns.add
-- A turn that runs from now on.
INSERT INTO turns (session_id, branch_no, state, purpose, holder, epoch, person_id, origin, begun_at)
VALUES (:session_id, :branch_no, 'running', :purpose, :holder, :epoch, :person_id, :origin, :now)
RETURNING id

-- name: turns.find
-- One turn by id.
SELECT {turn}
FROM turns WHERE id = :turn_id

-- name: turns.find_live
-- The turn of a session that has not ended, if there is one.
SELECT {turn}
FROM turns WHERE session_id = :session_id AND state IN ('running', 'waiting')
ORDER BY id DESC LIMIT 1

-- name: turns.list_orphans
-- Turns that run without a holder: their lease is gone; by session, so that whoever locks those does so in one order.
-- The condition of the index on live turns is repeated word for word: SQLite does not see that one state implies it,
-- and would read every turn there ever was.
SELECT {t.turn}
FROM turns t JOIN sessions s ON s.id = t.session_id
WHERE t.state IN ('running', 'waiting') AND t.state = 'running'
  AND (s.lease_holder <> t.holder OR s.lease_epoch <> t.epoch
       OR s.lease_expires_at <= :lease_now OR s.lease_boot_id <> :boot_id)
ORDER BY t.session_id, t.id
LIMIT :limit

-- name: turns.list_speaking
-- Running turns with text that is in no message yet; found, and in the order of, the index on live turns.
SELECT {t.turn}
FROM turns t
WHERE t.state IN ('running', 'waiting') AND t.state = 'running'
  AND EXISTS (SELECT 1 FROM turn_chunks c WHERE c.turn_id = t.id)
ORDER BY t.session_id, t.id
LIMIT :limit

-- name: turns.list_answering
-- Running turns that somebody waits for.
SELECT {t.turn}
FROM turns t
WHERE t.state IN ('running', 'waiting') AND t.state = 'running' AND t.purpose = 'reply' AND t.origin IS NOT NULL
ORDER BY t.id
LIMIT :limit

-- name: turns.list_stopping
-- Turns of a holder that are to stop; found by the index on live turns.
SELECT id FROM turns
WHERE state IN ('running', 'waiting') AND state = 'running' AND holder = :holder AND stop_requested_at IS NOT NULL

-- name: turns.set_pause
-- Why a running turn does nothing for now.
UPDATE turns SET reason = :reason WHERE id = :turn_id AND state = 'running'

-- name: turns.find_trouble
-- Why what a session waits for does not come: of its last turn, which makes a pause, or failed and is tried again.
SELECT t.state, t.reason FROM turns t
WHERE t.id = (SELECT MAX(id) FROM turns WHERE session_id = :session_id) AND t.reason IS NOT NULL
  AND (t.state = 'running'
       OR (t.state = 'failed' AND EXISTS (
           SELECT 1 FROM inbox i WHERE i.session_id = :session_id AND i.state = 'ready' AND i.attempts > 0)))

-- name: turns.set_prompt
-- Exactly what the turn ran with, by content.
UPDATE turns SET model = :model, prompt_hash = :prompt_hash, tools_hash = :tools_hash WHERE id = :turn_id

-- name: turns.find_prompt
-- What the turn ran with, by content; nothing where it asked no model.
SELECT model, prompt_hash, tools_hash FROM turns
WHERE id = :turn_id AND prompt_hash IS NOT NULL AND tools_hash IS NOT NULL

-- name: turns.set_gauge
-- What the last question was made of.
UPDATE turns SET
    window_tokens = :window, system_tokens = :system, tools_tokens = :tools, history_tokens = :history,
    attachment_tokens = :attachments
WHERE id = :turn_id

-- name: turns.find_gauge
-- What the last question of a session was made of.
SELECT window_tokens, system_tokens, tools_tokens, history_tokens, attachment_tokens
FROM turns WHERE session_id = :session_id AND window_tokens IS NOT NULL
ORDER BY id DESC LIMIT 1

-- name: turns.request_stop
-- The holder learns of it when it next renews.
UPDATE turns SET stop_requested_at = :now
WHERE session_id = :session_id AND state IN ('running', 'waiting') AND stop_requested_at IS NULL

-- name: turns.wait
-- wakes: turns
-- The turn asked a person something and holds nothing until the answer comes.
UPDATE turns SET state = 'waiting' WHERE id = :turn_id AND state = 'running'

-- name: turns.go_on
-- A waiting turn runs again, for its new holder.
UPDATE turns SET state = 'running', holder = :holder, epoch = :epoch WHERE id = :turn_id AND state = 'waiting'

-- name: turns.take_over
-- A turn whose holder was lost is ended by whoever took the session.
UPDATE turns SET holder = :holder, epoch = :epoch WHERE id = :turn_id AND state = 'running'

-- name: turns.set_origin
-- Whom the turn answers last, and where.
UPDATE turns SET origin = :origin, person_id = :person_id WHERE id = :turn_id

-- name: turns.move
-- What has not ended is answered elsewhere than where it was asked.
UPDATE turns SET origin = :to_origin
WHERE session_id = :session_id AND state IN ('running', 'waiting') AND origin = :origin

-- name: turns.end
-- The turn is over for good.
UPDATE turns SET state = :state, reason = :reason, ended_at = :now
WHERE id = :turn_id AND state IN ('running', 'waiting')

-- name: turns.add_chunk
-- A piece of the text so far; the same piece again is no change.
INSERT INTO turn_chunks (turn_id, start, text) VALUES (:turn_id, :start, :text)
ON CONFLICT (turn_id, start) DO NOTHING

-- name: turns.list_chunks
-- The text so far from an offset on.
SELECT start, text FROM turn_chunks WHERE turn_id = :turn_id AND start >= :start ORDER BY start

-- name: turns.drop_chunks
-- The whole text is in the transcript now.
DELETE FROM turn_chunks WHERE turn_id = :turn_id

-- name: turns.add_step
-- A call the model made, in its place among the turn's calls.
INSERT INTO steps (turn_id, call_id, no, session_id, name, effect, state, idempotency_key, call_seq)
SELECT :turn_id, :call_id, COALESCE(MAX(s.no), 0) + 1, :session_id, :name, :effect, 'called', :idempotency_key, :call_seq
FROM steps s WHERE s.turn_id = :turn_id
ON CONFLICT (turn_id, call_id) DO NOTHING

-- name: turns.find_step
-- One call of a turn.
SELECT {step}
FROM steps WHERE turn_id = :turn_id AND call_id = :call_id

-- name: turns.list_steps
-- The calls of a turn in the order they were made.
SELECT {step}
FROM steps WHERE turn_id = :turn_id ORDER BY no

-- name: turns.list_open_steps
-- The calls of a session that have no result yet, in the order they were made.
SELECT {step}
FROM steps WHERE session_id = :session_id AND state IN ('called', 'started') ORDER BY turn_id, no

-- name: turns.start_step
-- Committed before the call runs; one that may run only once starts only once, one that asks only when allowed.
UPDATE steps SET state = 'started', starts = starts + 1, started_at = :now
WHERE turn_id = :turn_id AND call_id = :call_id AND state IN ('called', 'started')
  AND (starts = 0 OR effect IN ('pure', 'idempotent'))
  AND (effect <> 'ask' OR EXISTS (SELECT 1 FROM approvals a
                                  WHERE a.turn_id = steps.turn_id AND a.call_id = steps.call_id
                                    AND a.state = 'approved'))

-- name: turns.end_step
-- The call has its one result, at this place in the transcript.
UPDATE steps SET state = :state, result_seq = :result_seq, ended_at = :now
WHERE turn_id = :turn_id AND call_id = :call_id AND state IN ('called', 'started')

-- name: turns.adopt_step
-- The turn goes on with a call a lost one left open.
UPDATE steps SET turn_id = :turn_id
WHERE turn_id = :from_turn_id AND call_id = :call_id AND state IN ('called', 'started')

-- name: turns.count_unsaid
-- What the turn used for an answer that is in no transcript.
UPDATE turns SET
    input_tokens = input_tokens + :input_tokens,
    cached_tokens = cached_tokens + :cached_tokens,
    output_tokens = output_tokens + :output_tokens,
    thinking_tokens = thinking_tokens + :thinking_tokens,
    cost_micros = cost_micros + :cost_micros
WHERE id = :turn_id

-- name: turns.add_imported
-- A turn that ran elsewhere, and is over here.
INSERT INTO turns (
    session_id, branch_no, state, purpose, holder, epoch, begun_at, ended_at, reason, model, input_tokens,
    cached_tokens, output_tokens, thinking_tokens, cost_micros
)
VALUES (
    :session_id, :branch_no, :state, :purpose, 'import', 0, :begun_at, :ended_at, :reason, :model, :input_tokens,
    :cached_tokens, :output_tokens, :thinking_tokens, :cost_micros
)
RETURNING id

-- name: turns.drop_chunks_of_session
-- The texts so far of the session's turns.
DELETE FROM turn_chunks WHERE turn_id IN (SELECT t.id FROM turns t WHERE t.session_id = :session_id)

-- name: turns.drop_steps_of_session
-- The calls of the session's turns.
DELETE FROM steps WHERE turn_id IN (SELECT t.id FROM turns t WHERE t.session_id = :session_id)

-- name: turns.drop_of_session
-- The session's turns.
DELETE FROM turns WHERE session_id = :session_id
