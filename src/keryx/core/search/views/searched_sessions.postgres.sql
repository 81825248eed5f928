-- name: searched_sessions.list
-- List some sessions with the names of their projects, and with their tags joined by line breaks.
SELECT
    {s.searched_session}, p.name AS project,
    (SELECT string_agg(t.tag, chr(10) ORDER BY t.tag COLLATE "C") FROM tags t WHERE t.session_id = s.id) AS tag_lines
FROM sessions s LEFT JOIN projects p ON p.id = s.project_id
WHERE s.id IN (SELECT value FROM json_array_elements_text(CAST(:ids AS json)))

-- name: searched_sessions.list_tagged
-- List sessions with one of these tags.
SELECT DISTINCT session_id FROM tags
WHERE tag IN (SELECT value FROM json_array_elements_text(CAST(:tags AS json))) LIMIT :limit

-- name: searched_sessions.list_in_projects
-- List sessions of some projects.
SELECT id FROM sessions
WHERE project_id IN (SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:ids AS json))) LIMIT :limit

-- name: searched_sessions.list_in_state
-- List sessions that are pinned, archived or in the bin.
SELECT id FROM sessions
WHERE (CAST(:state AS TEXT) = 'pinned' AND pinned_at IS NOT NULL)
    OR (CAST(:state AS TEXT) = 'archived' AND archived_at IS NOT NULL)
    OR (CAST(:state AS TEXT) = 'deleted' AND deleted_at IS NOT NULL)
LIMIT :limit
