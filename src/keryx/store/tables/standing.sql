-- name: standing.list_sessions
-- What was said to an audience lately, as lists show it: pinned first, then by last activity.
SELECT id, title, preview, state, pinned_at, last_active_at, message_count FROM sessions
WHERE audience_id = :audience_id AND deleted_at IS NULL AND archived_at IS NULL
  AND (title IS NOT NULL OR message_count > 0 OR message_total > 0)
ORDER BY (pinned_at IS NOT NULL) DESC, last_active_at DESC, id DESC
LIMIT :limit

-- name: standing.shown_at
-- Whether any of the last fifty things a session said went to an address: all of them are too many to look at.
SELECT 1 FROM (SELECT address FROM outbox WHERE session_id = :session_id ORDER BY id DESC LIMIT 50) AS lately
WHERE address = :address
LIMIT 1

-- name: standing.last_message
-- The last thing somebody said to a session, and its fate.
SELECT id, state, fate, fate_note, received_at FROM inbox
WHERE session_id = :session_id AND kind = 'message'
ORDER BY id DESC
LIMIT 1

-- name: standing.last_delivery
-- The last answer a session gave, and what became of it.
SELECT id, state, platform, attempts, error, maybe_repeated_at, created_at FROM outbox
WHERE session_id = :session_id AND kind NOT IN ('notice', 'copy')
ORDER BY id DESC
LIMIT 1

-- name: standing.last_reset
-- When and out of what a session began by a reset.
SELECT from_session_id, created_at FROM links
WHERE to_session_id = :session_id AND kind = 'reset'
ORDER BY id DESC
LIMIT 1

-- name: standing.list_processes
-- The background processes of a session, newest first.
SELECT id, state, command, exit_code, started_at, ended_at FROM processes
WHERE session_id = :session_id
ORDER BY id DESC
LIMIT :limit

-- name: standing.list_questions
-- What a session waits for a person to allow, oldest first; a turn that was stopped waits for nothing.
SELECT a.id, a.question
FROM approvals a JOIN turns t ON t.id = a.turn_id
WHERE a.session_id = :session_id AND a.person_id = :person_id AND a.state = 'pending' AND t.state = 'waiting'
ORDER BY a.id

-- name: standing.list_schedules
-- A person's schedules that have not ended, oldest first.
SELECT id, name, rule, state, origin, due_at FROM schedules
WHERE owner_id = :owner_id AND state <> 'ended'
ORDER BY id

-- name: standing.list_requests
-- Strangers who ask to be let in and wait for an answer, oldest first.
SELECT id, platform, user_name, user_id, asked_at FROM pairings
WHERE kind = 'pairing' AND state = 'pending' AND expires_at > :now
ORDER BY id

-- name: standing.list_people
-- The owner, and everybody whom a platform knows, with one row for each of their accounts.
SELECT p.id, p.name, p.role, p.blocked_at, i.platform
FROM people p LEFT JOIN identities i ON i.person_id = p.id
WHERE i.person_id IS NOT NULL OR p.role = 'owner'
ORDER BY p.id, i.platform
