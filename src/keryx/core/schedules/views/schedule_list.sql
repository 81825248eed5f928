-- name: schedule_list.list_of_person
-- A person's schedules that have not ended, oldest first.
SELECT id, name, rule, state, origin AS origin_json, due_at FROM schedules
WHERE owner_id = :owner_id AND state <> 'ended'
ORDER BY id
