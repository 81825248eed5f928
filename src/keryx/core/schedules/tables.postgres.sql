-- name: schedules.take_due
-- The active schedule, of somebody who may speak, that has been due longest and that no other gateway is firing.
SELECT {schedule}
FROM schedules
WHERE state = 'active' AND due_at <= :now
  AND owner_id NOT IN (SELECT id FROM people WHERE blocked_at IS NOT NULL)
ORDER BY due_at
LIMIT 1
FOR UPDATE SKIP LOCKED
