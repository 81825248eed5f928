-- columns: rule
id, tool, pattern, session_id

-- name: approval_rules.add
-- A lasting yes; one that stands already stays as it is.
INSERT INTO approval_rules (person_id, session_id, tool, pattern, approval_id, since_at)
VALUES (:person_id, :session_id, :tool, :pattern, :approval_id, :now)
ON CONFLICT (person_id, tool, pattern, COALESCE(session_id, '')) WHERE dropped_at IS NULL
DO UPDATE SET since_at = approval_rules.since_at
RETURNING {rule}

-- name: approval_rules.list_for_call
-- What a person lastingly allows a tool in a session, oldest first.
SELECT {rule} FROM approval_rules
WHERE person_id = :person_id AND tool = :tool AND dropped_at IS NULL
  AND (session_id IS NULL OR session_id = :session_id)
ORDER BY id

-- name: approval_rules.drop
-- A person takes a lasting yes back.
UPDATE approval_rules SET dropped_at = :now
WHERE id = :rule_id AND person_id = :person_id AND dropped_at IS NULL

-- name: approval_rules.drop_of_session
-- What was allowed for a session ends with it.
UPDATE approval_rules SET dropped_at = :now
WHERE session_id = :session_id AND dropped_at IS NULL
