-- columns: shown_delivery
id, turn_id, kind, state, parts AS body, idempotency_key, due_at, maybe_repeated_at, created_at

-- name: terminal.newest
-- The number of the newest delivery to any address.
SELECT COALESCE(MAX(id), 0) FROM outbox

-- name: terminal.list_after
-- The deliveries to an address after a number, oldest first.
SELECT {shown_delivery}
FROM outbox WHERE id > :after AND address = :address AND held_at IS NULL
ORDER BY id LIMIT :limit

-- name: terminal.list_unfinished
-- The unfinished deliveries to an address, oldest first.
SELECT {shown_delivery}
FROM outbox WHERE address = :address AND state IN ('ready', 'sending') AND held_at IS NULL
ORDER BY id LIMIT :limit

-- name: terminal.newest_received
-- The number of a session's newest item.
SELECT COALESCE(MAX(id), 0) FROM inbox WHERE session_id = :session_id

-- name: terminal.list_received
-- The messages and commands to a session after a number, with the people's names, oldest first.
SELECT i.id, i.ref, i.source AS source_json, i.parts AS body, p.name AS person, i.received_at
FROM inbox i LEFT JOIN people p ON p.id = i.person_id
WHERE i.session_id = :session_id AND i.id > :after AND i.kind IN ('message', 'command')
ORDER BY i.id LIMIT :limit

-- name: terminal.count_waiting
-- The numbers of a session's ready items (without requests of Keryx itself) and ready commands.
SELECT COALESCE(SUM(CASE WHEN kind <> 'command' AND purpose NOT IN ('flush', 'title') THEN 1 ELSE 0 END), 0),
       COALESCE(SUM(CASE WHEN kind = 'command' THEN 1 ELSE 0 END), 0)
FROM inbox WHERE session_id = :session_id AND state = 'ready'

-- name: terminal.find_last_answer
-- The last message of a turn in the transcript.
SELECT parts FROM messages
WHERE session_id = :session_id AND branch_no = :branch_no AND turn_id = :turn_id AND role = 'assistant'
ORDER BY seq DESC LIMIT 1

-- name: terminal.newest_ended
-- The last ended turn of a session.
SELECT id FROM turns WHERE session_id = :session_id AND ended_at IS NOT NULL ORDER BY id DESC LIMIT 1

-- name: terminal.list_ended
-- The ended turns of a session after a number, with their purposes, oldest first.
SELECT id, purpose FROM turns
WHERE session_id = :session_id AND id > :after AND ended_at IS NOT NULL
ORDER BY id LIMIT :limit

-- name: terminal.list_elsewhere
-- The first reply of each ended turn after a number, if the turn replied elsewhere and not at this address; oldest first.
SELECT o.turn_id, o.parts AS body, o.created_at
FROM turns t JOIN outbox o ON o.turn_id = t.id
WHERE t.session_id = :session_id AND t.id > :after AND t.ended_at IS NOT NULL
  AND o.id = (SELECT MIN(e.id) FROM outbox e WHERE e.turn_id = t.id AND e.kind IN ('reply', 'scheduled'))
  AND NOT EXISTS (SELECT 1 FROM outbox h
                  WHERE h.turn_id = t.id AND h.address = :address AND h.kind IN ('reply', 'scheduled', 'copy'))
ORDER BY t.id LIMIT :limit

-- name: terminal.list_calls
-- The calls of a turn after a number, each with its message and its result.
SELECT s.turn_id, s.no, s.call_id, s.session_id, s.call_seq, s.name, s.effect, s.state, s.started_at, s.ended_at,
       c.created_at AS called_at, c.parts AS body, r.parts AS result
FROM steps s
JOIN turns t ON t.id = s.turn_id
JOIN messages c ON c.session_id = s.session_id AND c.branch_no = t.branch_no AND c.seq = s.call_seq
LEFT JOIN messages r ON r.session_id = s.session_id AND r.branch_no = t.branch_no AND r.seq = s.result_seq
WHERE s.turn_id = :turn_id AND s.no > :after
ORDER BY s.no

-- name: terminal.find_sender
-- The holder of an account's connector lease.
SELECT holder, epoch FROM connector_leases
WHERE platform = :platform AND account = :account AND expires_at > :lease_now AND boot_id = :boot_id

-- name: terminal.find_process
-- The host and the pid of a terminal.
SELECT host, pid FROM nodes WHERE holder = :holder AND kind = 'chat'
