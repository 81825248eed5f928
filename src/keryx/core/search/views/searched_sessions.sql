-- columns: searched_session
id, audience_id, platform, state, title, title_by, display_name, started_at, active_branch_no, pinned_at, archived_at,
deleted_at

-- name: searched_sessions.list
-- List some sessions with the names of their projects, and with their tags joined by line breaks.
SELECT
    {s.searched_session}, p.name AS project,
    (SELECT group_concat(t.tag, char(10) ORDER BY t.tag) FROM tags t WHERE t.session_id = s.id) AS tag_lines
FROM sessions s LEFT JOIN projects p ON p.id = s.project_id
WHERE s.id IN (SELECT value FROM json_each(:ids))

-- name: searched_sessions.list_tags
-- List all tags.
SELECT DISTINCT tag FROM tags

-- name: searched_sessions.list_tagged
-- List sessions with one of these tags.
SELECT DISTINCT session_id FROM tags WHERE tag IN (SELECT value FROM json_each(:tags)) LIMIT :limit

-- name: searched_sessions.list_projects
-- List all projects with their names.
SELECT id, name FROM projects

-- name: searched_sessions.list_in_projects
-- List sessions of some projects.
SELECT id FROM sessions WHERE project_id IN (SELECT value FROM json_each(:ids)) LIMIT :limit

-- name: searched_sessions.list_in_state
-- List sessions that are pinned, archived or in the bin.
SELECT id FROM sessions
WHERE (:state = 'pinned' AND pinned_at IS NOT NULL)
    OR (:state = 'archived' AND archived_at IS NOT NULL)
    OR (:state = 'deleted' AND deleted_at IS NOT NULL)
LIMIT :limit

-- name: searched_sessions.count_audiences
-- Count the audiences, up to a limit.
SELECT COUNT(*) FROM (SELECT 1 FROM audiences LIMIT :limit) AS counted
