-- name: schedules.take_due
-- The longest due active schedule that no other gateway is firing; its owner must not be blocked.
SELECT {schedule}
FROM schedules
WHERE state = 'active' AND due_at <= :now
  AND owner_id NOT IN (SELECT id FROM people WHERE blocked_at IS NOT NULL)
ORDER BY due_at
LIMIT 1
FOR UPDATE SKIP LOCKED
