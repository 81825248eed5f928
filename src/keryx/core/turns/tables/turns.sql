-- columns: turn
id, session_id, branch_no, state, purpose, holder, epoch, person_id, origin AS origin_json, begun_at, ended_at,
reason, stop_requested_at

-- columns: step
turn_id, call_id, no, session_id, name, effect, state, idempotency_key, call_seq, result_seq, starts

-- name: turns.add
-- Add a running turn.
INSERT INTO turns (session_id, branch_no, state, purpose, holder, epoch, person_id, origin, begun_at, zone)
VALUES (:session_id, :branch_no, 'running', :purpose, :holder, :epoch, :person_id, :origin, :now, :zone)
RETURNING id

-- name: turns.find
-- A turn by id.
SELECT {turn} FROM turns WHERE id = :turn_id

-- name: turns.list_times
-- When turns of a session began, and the zone in which their models are told so.
SELECT id, begun_at, zone FROM turns
WHERE session_id = :session_id AND id BETWEEN :first_id AND :last_id AND zone IS NOT NULL
ORDER BY id

-- name: turns.find_live
-- The turn of a session that has not ended.
SELECT {turn} FROM turns WHERE session_id = :session_id AND state IN ('running', 'waiting')
ORDER BY id DESC LIMIT 1

-- name: turns.list_orphans
-- Running turns without a valid lease, in the order in which sessions are locked. The condition repeats that of the index
-- on live turns word for word: SQLite does not infer it from one state, and would read every turn.
SELECT {t.turn} FROM turns t JOIN sessions s ON s.id = t.session_id
WHERE t.state IN ('running', 'waiting') AND t.state = 'running'
  AND (s.lease_holder <> t.holder OR s.lease_epoch <> t.epoch
       OR s.lease_expires_at <= :lease_now OR s.lease_boot_id <> :boot_id)
ORDER BY t.session_id, t.id
LIMIT :limit

-- name: turns.list_speaking
-- Running turns with text that is in no message yet; in the order of the index on live turns.
SELECT {t.turn} FROM turns t
WHERE t.state IN ('running', 'waiting') AND t.state = 'running'
  AND EXISTS (SELECT 1 FROM turn_chunks c WHERE c.turn_id = t.id)
ORDER BY t.session_id, t.id
LIMIT :limit

-- name: turns.list_answering
-- Running turns that answer a message.
SELECT {t.turn} FROM turns t
WHERE t.state IN ('running', 'waiting') AND t.state = 'running' AND t.purpose = 'reply' AND t.origin IS NOT NULL
ORDER BY t.id
LIMIT :limit

-- name: turns.list_stopping
-- Running turns of a holder that were asked to stop; uses the index on live turns.
SELECT id FROM turns
WHERE state IN ('running', 'waiting') AND state = 'running' AND holder = :holder AND stop_requested_at IS NOT NULL

-- name: turns.set_pause
-- Set the reason of a running turn's pause.
UPDATE turns SET reason = :reason WHERE id = :turn_id AND state = 'running'

-- name: turns.find_trouble
-- Why a session's answer is late: its last turn pauses, or failed and will be retried.
SELECT t.state, t.reason FROM turns t
WHERE t.id = (SELECT MAX(id) FROM turns WHERE session_id = :session_id) AND t.reason IS NOT NULL
  AND (t.state = 'running'
       OR (t.state = 'failed' AND EXISTS (
           SELECT 1 FROM inbox i WHERE i.session_id = :session_id AND i.state = 'ready' AND i.attempts > 0)))

-- name: turns.set_prompt
-- Record the model of a turn, and the hashes of its prompt and tools.
UPDATE turns SET model = :model, prompt_hash = :prompt_hash, tools_hash = :tools_hash WHERE id = :turn_id

-- name: turns.find_prompt
-- The model of a turn, the hashes of its prompt and tools, and its time; no row without a model request.
SELECT model, prompt_hash, tools_hash, begun_at, zone FROM turns
WHERE id = :turn_id AND prompt_hash IS NOT NULL AND tools_hash IS NOT NULL

-- name: turns.set_context_usage
-- Record the token counts of a turn's last model request.
UPDATE turns SET
    window_tokens = :window, system_tokens = :system, tools_tokens = :tools, history_tokens = :history,
    attachment_tokens = :attachments
WHERE id = :turn_id

-- name: turns.find_context_usage
-- The token counts of a session's last model request.
SELECT window_tokens AS window, system_tokens AS system, tools_tokens AS tools, history_tokens AS history,
       attachment_tokens AS attachments
FROM turns WHERE session_id = :session_id AND window_tokens IS NOT NULL
ORDER BY id DESC LIMIT 1

-- name: turns.request_stop
-- Ask a live turn to stop; its holder learns this at the next renewal.
UPDATE turns SET stop_requested_at = :now
WHERE session_id = :session_id AND state IN ('running', 'waiting') AND stop_requested_at IS NULL

-- name: turns.wait
-- wakes: turns
-- Set a running turn to waiting for a person's answer.
UPDATE turns SET state = 'waiting' WHERE id = :turn_id AND state = 'running'

-- name: turns.resume
-- Set a waiting turn to running for its new holder.
UPDATE turns SET state = 'running', holder = :holder, epoch = :epoch WHERE id = :turn_id AND state = 'waiting'

-- name: turns.take_over
-- Give a running turn to the new holder of its session.
UPDATE turns SET holder = :holder, epoch = :epoch WHERE id = :turn_id AND state = 'running'

-- name: turns.set_origin
-- Set the source and the person of the last message that a turn answers.
UPDATE turns SET origin = :origin, person_id = :person_id WHERE id = :turn_id

-- name: turns.move
-- Change the origin of a live turn.
UPDATE turns SET origin = :to_origin
WHERE session_id = :session_id AND state IN ('running', 'waiting') AND origin = :origin

-- name: turns.end
-- End a turn.
UPDATE turns SET state = :state, reason = :reason, ended_at = :now
WHERE id = :turn_id AND state IN ('running', 'waiting')

-- name: turns.add_chunk
-- Add a piece of the text so far; a repeated piece changes nothing.
INSERT INTO turn_chunks (turn_id, start, text) VALUES (:turn_id, :start, :text)
ON CONFLICT (turn_id, start) DO NOTHING

-- name: turns.list_chunks
-- The text so far from an offset on.
SELECT text FROM turn_chunks WHERE turn_id = :turn_id AND start >= :start ORDER BY start

-- name: turns.drop_chunks
-- Delete the text so far of a turn.
DELETE FROM turn_chunks WHERE turn_id = :turn_id

-- name: turns.add_step
-- Add a call with the next number in its turn.
INSERT INTO steps (turn_id, call_id, no, session_id, name, effect, state, idempotency_key, call_seq)
SELECT :turn_id, :call_id, COALESCE(MAX(s.no), 0) + 1, :session_id, :name, :effect, 'called', :idempotency_key, :call_seq
FROM steps s WHERE s.turn_id = :turn_id
ON CONFLICT (turn_id, call_id) DO NOTHING

-- name: turns.find_step
-- A call of a turn.
SELECT {step} FROM steps WHERE turn_id = :turn_id AND call_id = :call_id

-- name: turns.list_steps
-- The calls of a turn in their order.
SELECT {step} FROM steps WHERE turn_id = :turn_id ORDER BY no

-- name: turns.list_open_steps
-- The calls of a session without a result, in their order.
SELECT {step}
FROM steps WHERE session_id = :session_id AND state IN ('called', 'started') ORDER BY turn_id, no

-- name: turns.start_step
-- Start a call: a call that may run once starts once, and a call that asks starts only if approved.
UPDATE steps SET state = 'started', starts = starts + 1, started_at = :now
WHERE turn_id = :turn_id AND call_id = :call_id AND state IN ('called', 'started')
  AND (starts = 0 OR effect IN ('pure', 'idempotent'))
  AND (effect <> 'ask' OR EXISTS (SELECT 1 FROM approvals a
                                  WHERE a.turn_id = steps.turn_id AND a.call_id = steps.call_id
                                    AND a.state = 'approved'))

-- name: turns.end_step
-- Give a call its one result, at a place in the transcript.
UPDATE steps SET state = :state, result_seq = :result_seq, ended_at = :now
WHERE turn_id = :turn_id AND call_id = :call_id AND state IN ('called', 'started')

-- name: turns.adopt_step
-- Move an open call of a lost turn to another turn.
UPDATE steps SET turn_id = :turn_id
WHERE turn_id = :from_turn_id AND call_id = :call_id AND state IN ('called', 'started')

-- name: turns.add_usage
-- Add the usage of an answer that is in no transcript.
UPDATE turns SET
    input_tokens = input_tokens + :input_tokens,
    cached_tokens = cached_tokens + :cached_tokens,
    output_tokens = output_tokens + :output_tokens,
    thinking_tokens = thinking_tokens + :thinking_tokens,
    cost_micros = cost_micros + :cost_micros
WHERE id = :turn_id

-- name: turns.add_imported
-- Add a turn from an archive.
INSERT INTO turns (
    session_id, branch_no, state, purpose, holder, epoch, begun_at, ended_at, reason, model, input_tokens,
    cached_tokens, output_tokens, thinking_tokens, cost_micros, zone
)
VALUES (
    :session_id, :branch_no, :state, :purpose, 'import', 0, :begun_at, :ended_at, :reason, :model, :input_tokens,
    :cached_tokens, :output_tokens, :thinking_tokens, :cost_micros, :zone
)
RETURNING id

-- name: turns.drop_chunks_of_session
-- Delete the texts so far of the session's turns.
DELETE FROM turn_chunks WHERE turn_id IN (SELECT t.id FROM turns t WHERE t.session_id = :session_id)

-- name: turns.drop_steps_of_session
-- Delete the calls of the session's turns.
DELETE FROM steps WHERE turn_id IN (SELECT t.id FROM turns t WHERE t.session_id = :session_id)

-- name: turns.drop_of_session
-- Delete the session's turns.
DELETE FROM turns WHERE session_id = :session_id
