-- columns: shown_delivery
id, turn_id, kind, state, parts AS body, idempotency_key, due_at, maybe_repeated_at, created_at

-- name: terminal.newest
-- The number of the newest delivery, wherever it goes.
SELECT COALESCE(MAX(id), 0) FROM outbox

-- name: terminal.list_after
-- What is said at an address after a delivery's number, oldest first.
SELECT {shown_delivery}
FROM outbox WHERE id > :after AND address = :address AND held_at IS NULL
ORDER BY id LIMIT :limit

-- name: terminal.list_unfinished
-- What is still to be said at an address, oldest first.
SELECT {shown_delivery}
FROM outbox WHERE address = :address AND state IN ('ready', 'sending') AND held_at IS NULL
ORDER BY id LIMIT :limit

-- name: terminal.newest_heard
-- The number of the last thing said to a session.
SELECT COALESCE(MAX(id), 0) FROM inbox WHERE session_id = :session_id

-- name: terminal.list_heard
-- What people said to a session after a number, oldest first, with their names.
SELECT i.id, i.ref, i.source AS source_json, i.parts AS body, p.name AS person, i.received_at
FROM inbox i LEFT JOIN people p ON p.id = i.person_id
WHERE i.session_id = :session_id AND i.id > :after AND i.kind IN ('message', 'command')
ORDER BY i.id LIMIT :limit

-- name: terminal.list_waiting
-- What waits in a session: of which kind, and whether Keryx itself asks for it.
SELECT kind, purpose IN ('flush', 'title') FROM inbox WHERE session_id = :session_id AND state = 'ready' ORDER BY id

-- name: terminal.last_words
-- The last thing a turn said that stands in the transcript.
SELECT parts FROM messages
WHERE session_id = :session_id AND branch_no = :branch_no AND turn_id = :turn_id AND role = 'assistant'
ORDER BY seq DESC LIMIT 1

-- name: terminal.newest_ended
-- The last turn of a session that has ended: found from the end, where at most one still lives.
SELECT id FROM turns WHERE session_id = :session_id AND ended_at IS NOT NULL ORDER BY id DESC LIMIT 1

-- name: terminal.list_ended
-- The turns of a session after a number that have ended, and what each was for, oldest first.
SELECT id, purpose FROM turns
WHERE session_id = :session_id AND id > :after AND ended_at IS NOT NULL
ORDER BY id LIMIT :limit

-- name: terminal.list_elsewhere
-- What a session's turns after one said at other places and not at this one, oldest first; at several, it is the first.
SELECT o.turn_id, o.parts AS body, o.created_at
FROM turns t JOIN outbox o ON o.turn_id = t.id
WHERE t.session_id = :session_id AND t.id > :after AND t.ended_at IS NOT NULL
  AND o.id = (SELECT MIN(e.id) FROM outbox e WHERE e.turn_id = t.id AND e.kind IN ('reply', 'scheduled'))
  AND NOT EXISTS (SELECT 1 FROM outbox h
                  WHERE h.turn_id = t.id AND h.address = :address AND h.kind IN ('reply', 'scheduled', 'copy'))
ORDER BY t.id LIMIT :limit

-- name: terminal.list_calls
-- What a turn calls, after a number among its calls: with the message that made the call, and its result.
SELECT s.turn_id, s.no, s.call_id, s.session_id, s.call_seq, s.name, s.effect, s.state, s.started_at, s.ended_at,
       c.created_at AS called_at, c.parts AS body, r.parts AS result
FROM steps s
JOIN turns t ON t.id = s.turn_id
JOIN messages c ON c.session_id = s.session_id AND c.branch_no = t.branch_no AND c.seq = s.call_seq
LEFT JOIN messages r ON r.session_id = s.session_id AND r.branch_no = t.branch_no AND r.seq = s.result_seq
WHERE s.turn_id = :turn_id AND s.no > :after
ORDER BY s.no

-- name: terminal.find_sender
-- Who sends through an account now.
SELECT holder, epoch FROM connector_leases
WHERE platform = :platform AND account = :account AND expires_at > :lease_now AND boot_id = :boot_id

-- name: terminal.find_process
-- Where a terminal runs.
SELECT host, pid FROM nodes WHERE holder = :holder AND kind = 'chat'
