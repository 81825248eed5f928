-- name: session_changes.set_title
-- What the session is called from now on, and who said so.
UPDATE sessions SET title = CAST(:title AS TEXT), title_by = CAST(:title_by AS TEXT)
WHERE id = :session_id
  AND (title IS DISTINCT FROM CAST(:title AS TEXT) OR title_by IS DISTINCT FROM CAST(:title_by AS TEXT))

-- name: session_changes.set_pinned
-- Pinned since then, or not at all; no change when it already is, or is not.
UPDATE sessions SET pinned_at = CAST(:since_at AS BIGINT)
WHERE id = :session_id AND (pinned_at IS NULL) <> (CAST(:since_at AS BIGINT) IS NULL)

-- name: session_changes.set_archived
-- Out of the lists since then, or back in them; no change when it already is.
UPDATE sessions SET archived_at = CAST(:since_at AS BIGINT)
WHERE id = :session_id AND (archived_at IS NULL) <> (CAST(:since_at AS BIGINT) IS NULL)

-- name: session_changes.set_deleted
-- In the bin since then, or out of it; no change when it already is.
UPDATE sessions SET deleted_at = CAST(:since_at AS BIGINT)
WHERE id = :session_id AND (deleted_at IS NULL) <> (CAST(:since_at AS BIGINT) IS NULL)

-- name: session_changes.set_project
-- The project it belongs to, or none.
UPDATE sessions SET project_id = CAST(:project_id AS BIGINT)
WHERE id = :session_id AND project_id IS DISTINCT FROM CAST(:project_id AS BIGINT)

-- name: session_changes.set_workspace
-- The directory its turns and processes run in, or none of its own.
UPDATE sessions SET workspace = CAST(:workspace AS TEXT)
WHERE id = :session_id AND workspace IS DISTINCT FROM CAST(:workspace AS TEXT)

-- name: session_changes.set_model
-- The model that answers here, or the configured one.
UPDATE sessions SET model = CAST(:model AS TEXT)
WHERE id = :session_id AND model IS DISTINCT FROM CAST(:model AS TEXT)

-- name: session_changes.set_model_settings
-- How the model is asked here, or as configured.
UPDATE sessions SET model_settings = CAST(:model_settings AS TEXT)
WHERE id = :session_id AND model_settings IS DISTINCT FROM CAST(:model_settings AS TEXT)

-- name: session_changes.set_personality
-- How the agent speaks here, or as configured.
UPDATE sessions SET personality = CAST(:personality AS TEXT)
WHERE id = :session_id AND personality IS DISTINCT FROM CAST(:personality AS TEXT)

-- name: session_changes.set_flushed_seq
-- What was said up to here has been looked through for memories; never moves backwards.
UPDATE sessions SET flushed_seq = :seq WHERE id = :session_id AND flushed_seq < :seq
