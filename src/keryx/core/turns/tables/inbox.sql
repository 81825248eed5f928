-- columns: inbox_item
id, session_id, kind, purpose, state, busy_mode, platform, account, ref, person_id, source AS source_json, parts AS
body, received_at, ready_at, turn_id, seq, attempts, fate, fate_note

-- name: inbox.find_by_ref
-- The item of a platform message.
SELECT {inbox_item} FROM inbox WHERE platform = :platform AND account = :account AND ref = :ref

-- name: inbox.add
-- wakes: turns
-- Add an item; return no row if the ref exists.
INSERT INTO inbox (
    session_id, kind, purpose, state, busy_mode, platform, account, ref, person_id, source, parts, sent_at, received_at,
    ready_at, seq, fate, ended_at
)
VALUES (
    :session_id, :kind, :purpose, :state, :busy_mode, :platform, :account, :ref, :person_id, :source, :parts, :sent_at, :now,
    :ready_at, :seq, :fate, :ended_at
)
ON CONFLICT (platform, account, ref) DO NOTHING
RETURNING id

-- name: inbox.find
-- An item by id.
SELECT {inbox_item} FROM inbox WHERE id = :inbox_id

-- name: inbox.list_ready
-- The ready items of a session, without commands, oldest first.
SELECT {inbox_item} FROM inbox WHERE session_id = :session_id AND state = 'ready' AND kind <> 'command'
ORDER BY id

-- name: inbox.find_next
-- wakes: turns
-- A ready item that the session's next turn may answer, now or later.
SELECT 1 FROM inbox WHERE session_id = :session_id AND state = 'ready' AND kind <> 'command' LIMIT 1

-- name: inbox.list_commands
-- Commands that wait for an answer, oldest first; in the order of the index on ready items.
SELECT {inbox_item} FROM inbox WHERE state = 'ready' AND kind = 'command'
ORDER BY ready_at, id LIMIT :limit

-- name: inbox.list_of_turn
-- The claimed items of a turn, oldest first.
SELECT {inbox_item} FROM inbox WHERE turn_id = :turn_id AND state = 'claimed'
ORDER BY id

-- name: inbox.count_open
-- The number of a session's open items, without requests of Keryx itself.
SELECT COUNT(*) FROM inbox
WHERE session_id = :session_id AND state IN ('ready', 'claimed')
  AND purpose NOT IN ('flush', 'title')

-- name: inbox.count_flushing
-- The number of open flush requests.
SELECT COUNT(*) FROM inbox WHERE state IN ('ready', 'claimed') AND purpose = 'flush'

-- name: inbox.claim
-- Give a ready item to a turn, at a place in the transcript.
UPDATE inbox SET state = 'claimed', turn_id = :turn_id, seq = :seq, attempts = attempts + 1
WHERE id = :inbox_id AND state = 'ready'

-- name: inbox.postpone
-- Delay the ready items of a session.
UPDATE inbox SET ready_at = :ready_at WHERE session_id = :session_id AND state = 'ready' AND ready_at < :ready_at

-- name: inbox.give_back
-- wakes: turns
-- Make a claimed item ready for another turn.
UPDATE inbox SET
    state = 'ready', turn_id = NULL, seq = CAST(:seq AS BIGINT), ready_at = :ready_at, attempts = attempts - :uncounted
WHERE id = :inbox_id AND state = 'claimed'

-- name: inbox.finish
-- Give an open item its fate.
UPDATE inbox SET state = :state, fate = :fate, fate_note = :fate_note, ended_at = :now
WHERE id = :inbox_id AND state IN ('ready', 'claimed')

-- name: inbox.list_fates
-- The items of a platform with their fates, oldest first.
SELECT id, ref, kind, fate, session_id, turn_id FROM inbox
WHERE platform = :platform AND id > :after
ORDER BY id LIMIT :limit

-- name: inbox.count_unsettled
-- The number of a platform's open items.
SELECT COUNT(*) FROM inbox WHERE platform = :platform AND state IN ('ready', 'claimed')

-- name: inbox.list_tasks
-- The open tasks that a session, or a session below it, delegated; in the order in which sessions are locked.
WITH RECURSIVE below (session_id) AS (
    SELECT l.to_session_id FROM links l WHERE l.from_session_id = :session_id AND l.kind = 'delegation'
    UNION
    SELECT l.to_session_id FROM links l JOIN below b ON l.from_session_id = b.session_id WHERE l.kind = 'delegation'
)
SELECT {i.inbox_item} FROM below b JOIN inbox i ON i.session_id = b.session_id
WHERE i.state IN ('ready', 'claimed') AND i.purpose = 'task'
ORDER BY i.session_id, i.id

-- name: inbox.list_sessions_of
-- The sessions that an account sent items to, in the order in which sessions are locked.
SELECT DISTINCT session_id FROM inbox WHERE platform = :platform AND account = :account ORDER BY session_id

-- name: inbox.move
-- Change the source of open items.
UPDATE inbox SET source = :to_source
WHERE session_id = :session_id AND state IN ('ready', 'claimed') AND source = :source

-- name: inbox.drop_of_session
-- Delete the items of a session.
DELETE FROM inbox WHERE session_id = :session_id
