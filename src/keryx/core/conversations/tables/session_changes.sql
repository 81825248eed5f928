-- name: session_changes.set_title
-- Set the title and who set it. Changes nothing if both are the same.
UPDATE sessions SET title = CAST(:title AS TEXT), title_by = CAST(:title_by AS TEXT)
WHERE id = :session_id
  AND (title IS DISTINCT FROM CAST(:title AS TEXT) OR title_by IS DISTINCT FROM CAST(:title_by AS TEXT))

-- name: session_changes.set_pinned
-- Pin a session, or unpin it (NULL). Changes nothing if it is pinned or unpinned already.
UPDATE sessions SET pinned_at = CAST(:since_at AS BIGINT)
WHERE id = :session_id AND (pinned_at IS NULL) <> (CAST(:since_at AS BIGINT) IS NULL)

-- name: session_changes.set_archived
-- Archive a session, or restore it (NULL). Changes nothing if that is done already.
UPDATE sessions SET archived_at = CAST(:since_at AS BIGINT)
WHERE id = :session_id AND (archived_at IS NULL) <> (CAST(:since_at AS BIGINT) IS NULL)

-- name: session_changes.set_deleted
-- Put a session into the bin, or take it out (NULL). Changes nothing if that is done already.
UPDATE sessions SET deleted_at = CAST(:since_at AS BIGINT)
WHERE id = :session_id AND (deleted_at IS NULL) <> (CAST(:since_at AS BIGINT) IS NULL)

-- name: session_changes.set_project
-- Set or remove the project.
UPDATE sessions SET project_id = CAST(:project_id AS BIGINT)
WHERE id = :session_id AND project_id IS DISTINCT FROM CAST(:project_id AS BIGINT)

-- name: session_changes.set_workspace
-- Set or remove the directory in which turns and processes run.
UPDATE sessions SET workspace = CAST(:workspace AS TEXT)
WHERE id = :session_id AND workspace IS DISTINCT FROM CAST(:workspace AS TEXT)

-- name: session_changes.set_model
-- Set the model. NULL means the configured model.
UPDATE sessions SET model = CAST(:model AS TEXT)
WHERE id = :session_id AND model IS DISTINCT FROM CAST(:model AS TEXT)

-- name: session_changes.set_model_settings
-- Set the model settings. NULL means as configured.
UPDATE sessions SET model_settings = CAST(:model_settings AS TEXT)
WHERE id = :session_id AND model_settings IS DISTINCT FROM CAST(:model_settings AS TEXT)

-- name: session_changes.set_personality
-- Set the personality. NULL means as configured.
UPDATE sessions SET personality = CAST(:personality AS TEXT)
WHERE id = :session_id AND personality IS DISTINCT FROM CAST(:personality AS TEXT)

-- name: session_changes.set_flushed_seq
-- Record up to which message memories were saved. Never lowers the number.
UPDATE sessions SET flushed_seq = :seq WHERE id = :session_id AND flushed_seq < :seq
