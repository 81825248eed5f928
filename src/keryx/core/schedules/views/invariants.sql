-- name: schedule_invariants.wrong_fires
-- Fires whose state contradicts their inbox item.
SELECT f.session_id, CAST(f.schedule_id AS TEXT)
FROM fires f JOIN inbox i ON i.id = f.inbox_id
WHERE (f.state = 'fired' AND i.fate IN ('answered', 'merged', 'failed'))
   OR (f.state <> 'fired' AND i.state IN ('ready', 'claimed'))
LIMIT :limit

-- name: schedule_invariants.repeating_schedules
-- Schedules that are due at an instant that was fired or skipped.
SELECT session_id, CAST(id AS TEXT) FROM schedules
WHERE state = 'active' AND due_at <= last_due_at
LIMIT :limit
