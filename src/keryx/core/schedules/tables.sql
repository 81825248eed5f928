-- columns: schedule
id, owner_id, name, state, rule, zone, parts AS body, route, origin AS origin_json, session_id, missed, overlap,
options AS options_json, anchor_at, due_at, last_due_at, created_at, changed_at

-- name: schedules.add
-- A new active schedule; nothing when its owner has one of that name.
INSERT INTO schedules (
    owner_id, name, state, rule, zone, parts, route, origin, session_id, missed, overlap, options, anchor_at, due_at,
    created_at, changed_at
)
VALUES (
    :owner_id, :name, 'active', :rule, :zone, :parts, :route, :origin, :session_id, :missed, :overlap, :options, :now,
    :due_at, :now, :now
)
ON CONFLICT (owner_id, name) DO NOTHING
RETURNING id

-- name: schedules.find
-- One schedule, if this person owns it.
SELECT {schedule}
FROM schedules WHERE id = :schedule_id AND owner_id = :owner_id

-- name: schedules.lock
-- One schedule, if this person owns it; nobody else changes or fires it until this transaction ends.
UPDATE schedules SET state = state WHERE id = :schedule_id AND owner_id = :owner_id
RETURNING {schedule}

-- name: schedules.find_named
-- Whether another schedule of this person has the name.
SELECT 1 FROM schedules WHERE owner_id = :owner_id AND name = :name AND id <> :schedule_id

-- name: schedules.change
-- A new plan for a schedule that has not ended.
UPDATE schedules SET
    name = :name, rule = :rule, zone = :zone, parts = :parts, route = :route, missed = :missed, overlap = :overlap,
    options = :options, anchor_at = :anchor_at, due_at = :due_at, changed_at = :now
WHERE id = :schedule_id

-- name: schedules.set_state
-- Active, paused or ended from now on, and when it is due next.
UPDATE schedules SET state = :state, due_at = :due_at, changed_at = :now WHERE id = :schedule_id

-- name: schedules.take_due
-- The active schedule, of somebody who may speak, that has been due longest.
SELECT {schedule}
FROM schedules
WHERE state = 'active' AND due_at <= :now
  AND owner_id NOT IN (SELECT id FROM people WHERE blocked_at IS NOT NULL)
ORDER BY due_at
LIMIT 1

-- name: schedules.next_due
-- When the next active schedule of somebody who may speak is due.
SELECT due_at FROM schedules
WHERE state = 'active' AND due_at IS NOT NULL
  AND owner_id NOT IN (SELECT id FROM people WHERE blocked_at IS NOT NULL)
ORDER BY due_at
LIMIT 1

-- name: schedules.advance
-- Everything up to the last instant is accounted for; this is what comes next.
UPDATE schedules SET state = :state, due_at = :due_at, last_due_at = :last_due_at WHERE id = :schedule_id

-- name: schedules.add_fire
-- One instant of a schedule, claimed once.
INSERT INTO fires (schedule_id, due_at, state, note, session_id, inbox_id, fired_at, ended_at)
VALUES (:schedule_id, :due_at, :state, :note, :session_id, :inbox_id, :now, :ended_at)

-- name: schedules.find_open_fire
-- Whether an earlier fire is still waiting or running.
SELECT 1 FROM fires f JOIN inbox i ON i.id = f.inbox_id
WHERE f.schedule_id = :schedule_id AND f.state = 'fired' AND i.state IN ('ready', 'claimed')
LIMIT 1

-- name: schedules.end_fire
-- What became of a fire's run.
UPDATE fires SET state = :state, note = :note, ended_at = :now WHERE inbox_id = :inbox_id AND state = 'fired'
RETURNING schedule_id, session_id

-- name: schedules.list_fires
-- The fires and recorded skips of a schedule, newest first.
SELECT schedule_id, due_at, state, note, session_id, inbox_id, fired_at, ended_at
FROM fires WHERE schedule_id = :schedule_id
ORDER BY due_at DESC
LIMIT :limit

-- name: schedules.move_to_person
-- Schedules change hands; one whose name is taken gets its number added.
UPDATE schedules SET
    owner_id = :to_person_id,
    name = CASE WHEN EXISTS (SELECT 1 FROM schedules s WHERE s.owner_id = :to_person_id AND s.name = schedules.name)
                THEN name || ' (' || CAST(id AS TEXT) || ')' ELSE name END
WHERE owner_id = :from_person_id

-- name: schedules.forget_runs
-- A schedule's record stays; it no longer names what ran.
UPDATE fires SET inbox_id = NULL, session_id = NULL
WHERE session_id = :session_id OR inbox_id IN (SELECT i.id FROM inbox i WHERE i.session_id = :session_id)

-- name: schedules.forget_session
-- A schedule that ran in the session gets one of its own at its next fire.
UPDATE schedules SET session_id = NULL WHERE session_id = :session_id
