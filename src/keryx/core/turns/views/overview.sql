-- name: overview.list_turns
-- Live turns in sessions that this person may see, oldest first.
SELECT t.id, t.session_id, s.title, t.state, t.purpose, t.model, t.begun_at
FROM turns t
JOIN sessions s ON s.id = t.session_id
JOIN audience_members m ON m.audience_id = s.audience_id AND m.person_id = :person_id
WHERE t.state IN ('running', 'waiting')
ORDER BY t.begun_at, t.id
LIMIT :limit

-- name: overview.list_queue
-- Ready items in sessions that this person may see, longest waiting first.
SELECT i.id, i.session_id, s.title, i.kind, i.parts AS body, i.received_at, i.ready_at
FROM inbox i
JOIN sessions s ON s.id = i.session_id
JOIN audience_members m ON m.audience_id = s.audience_id AND m.person_id = :person_id
WHERE i.state = 'ready'
ORDER BY i.ready_at, i.id
LIMIT :limit

-- name: overview.list_approvals
-- Pending approvals in sessions that this person may see, in the order of their expiry.
SELECT a.id, a.session_id, s.title, a.person_id, a.question, a.asked_at, a.expires_at
FROM approvals a
JOIN sessions s ON s.id = a.session_id
JOIN audience_members m ON m.audience_id = s.audience_id AND m.person_id = :person_id
WHERE a.state = 'pending'
ORDER BY a.expires_at, a.id
LIMIT :limit

-- name: overview.list_processes
-- Running processes of sessions that this person may see, oldest first.
SELECT p.id, p.session_id, s.title, p.command, p.backend, p.output_bytes, p.started_at
FROM processes p
JOIN sessions s ON s.id = p.session_id
JOIN audience_members m ON m.audience_id = s.audience_id AND m.person_id = :person_id
WHERE p.state = 'running'
ORDER BY p.id
LIMIT :limit

-- name: overview.list_schedules
-- The next fires of a person's schedules, soonest first.
SELECT c.id AS schedule_id, c.name, c.rule, c.zone, c.route, c.due_at, c.last_due_at
FROM schedules c
WHERE c.owner_id = :person_id AND c.state = 'active' AND c.due_at IS NOT NULL
ORDER BY c.due_at, c.id
LIMIT :limit
