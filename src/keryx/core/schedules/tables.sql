-- columns: schedule
id, owner_id, name, state, rule, zone, parts AS body, route, origin AS origin_json, session_id, missed, overlap,
options AS options_json, anchor_at, due_at, last_due_at, created_at, changed_at

-- name: schedules.add
-- Add an active schedule; return no row if its owner has another one with this name.
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
SELECT {schedule} FROM schedules WHERE id = :schedule_id AND owner_id = :owner_id

-- name: schedules.lock
-- Lock one schedule, if this person owns it, until the transaction ends.
UPDATE schedules SET state = state WHERE id = :schedule_id AND owner_id = :owner_id
RETURNING {schedule}

-- name: schedules.list_of_person
-- A person's schedules that have not ended, oldest first.
SELECT {schedule} FROM schedules WHERE owner_id = :owner_id AND state <> 'ended' ORDER BY id

-- name: schedules.find_named
-- Another schedule of this person with the name.
SELECT 1 FROM schedules WHERE owner_id = :owner_id AND name = :name AND id <> :schedule_id

-- name: schedules.change
-- Change the plan of a schedule that has not ended.
UPDATE schedules SET
    name = :name, rule = :rule, zone = :zone, parts = :parts, route = :route, missed = :missed, overlap = :overlap,
    options = :options, anchor_at = :anchor_at, due_at = :due_at, changed_at = :now
WHERE id = :schedule_id

-- name: schedules.set_state
-- Set the state of a schedule and the next due instant.
UPDATE schedules SET state = :state, due_at = :due_at, changed_at = :now WHERE id = :schedule_id

-- name: schedules.take_due
-- The longest due active schedule whose owner is not blocked.
SELECT {schedule} FROM schedules
WHERE state = 'active' AND due_at <= :now
  AND owner_id NOT IN (SELECT id FROM people WHERE blocked_at IS NOT NULL)
ORDER BY due_at
LIMIT 1

-- name: schedules.next_due
-- The next due instant of all active schedules whose owners are not blocked.
SELECT due_at FROM schedules
WHERE state = 'active' AND due_at IS NOT NULL
  AND owner_id NOT IN (SELECT id FROM people WHERE blocked_at IS NOT NULL)
ORDER BY due_at
LIMIT 1

-- name: schedules.advance
-- Set the last instant that was fired or skipped, and the next one.
UPDATE schedules SET state = :state, due_at = :due_at, last_due_at = :last_due_at WHERE id = :schedule_id

-- name: schedules.add_fire
-- Add a fire: one instant of a schedule, once.
INSERT INTO fires (schedule_id, due_at, state, note, session_id, inbox_id, fired_at, ended_at)
VALUES (:schedule_id, :due_at, :state, :note, :session_id, :inbox_id, :now, :ended_at)

-- name: schedules.find_open_fire
-- An earlier fire that still waits or runs.
SELECT 1 FROM fires f JOIN inbox i ON i.id = f.inbox_id
WHERE f.schedule_id = :schedule_id AND f.state = 'fired' AND i.state IN ('ready', 'claimed')
LIMIT 1

-- name: schedules.end_fire
-- Record how the run of a fire ended.
UPDATE fires SET state = :state, note = :note, ended_at = :now WHERE inbox_id = :inbox_id AND state = 'fired'
RETURNING schedule_id

-- name: schedules.list_fires
-- The fires and skips of a schedule, newest first.
SELECT schedule_id, due_at, state, note, session_id, inbox_id, fired_at, ended_at
FROM fires WHERE schedule_id = :schedule_id
ORDER BY due_at DESC
LIMIT :limit

-- name: schedules.move_to_person
-- Give a person's schedules to another person; a schedule whose name is taken gets its id added to the name.
UPDATE schedules SET
    owner_id = :to_person_id,
    name = CASE WHEN EXISTS (SELECT 1 FROM schedules s WHERE s.owner_id = :to_person_id AND s.name = schedules.name)
                THEN name || ' (' || CAST(id AS TEXT) || ')' ELSE name END
WHERE owner_id = :from_person_id

-- name: schedules.forget_runs
-- Remove a session and its inbox items from fires; the fires stay.
UPDATE fires SET inbox_id = NULL, session_id = NULL
WHERE session_id = :session_id OR inbox_id IN (SELECT i.id FROM inbox i WHERE i.session_id = :session_id)

-- name: schedules.forget_session
-- Remove a session from schedules; the next fire opens another one.
UPDATE schedules SET session_id = NULL WHERE session_id = :session_id
