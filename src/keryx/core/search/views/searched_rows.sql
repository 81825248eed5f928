-- columns: searched_session
id, audience_id, platform, state, title, title_by, display_name, started_at, active_branch_no, pinned_at, archived_at,
deleted_at

-- name: searched_rows.list_messages
-- List some messages.
SELECT {message}
FROM messages WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(:ids))

-- name: searched_rows.list_message_ids
-- List a page of all message ids, rising.
SELECT id FROM messages WHERE id > :after_id ORDER BY id LIMIT :limit

-- name: searched_rows.list_near
-- List the messages up to `reach` numbers before and after places, given as (session, branch, number).
SELECT m.session_id, m.seq, m.role, m.parts
FROM json_each(:places) p
JOIN messages m ON m.session_id = p.value ->> 0
    AND m.branch_no = p.value ->> 1
    AND m.seq BETWEEN (p.value ->> 2) - :reach AND (p.value ->> 2) + :reach
    AND m.seq <> p.value ->> 2

-- name: searched_rows.list_first
-- List the oldest messages of a branch from a number on, oldest first.
SELECT {message}
FROM messages
WHERE session_id = :session_id AND branch_no = :branch_no AND seq BETWEEN :first_seq AND :last_seq
ORDER BY seq LIMIT :limit

-- name: searched_rows.list_sessions
-- List some sessions with the names of their projects, and with their tags, unordered, joined by line breaks.
SELECT
    {s.searched_session}, p.name AS project,
    (SELECT string_agg(t.tag, CAST(:line_break AS TEXT)) FROM tags t WHERE t.session_id = s.id) AS tag_lines
FROM sessions s LEFT JOIN projects p ON p.id = s.project_id
WHERE s.id IN (SELECT value FROM json_each(:ids))

-- name: searched_rows.list_tags
-- List all tags.
SELECT DISTINCT tag FROM tags

-- name: searched_rows.list_tagged
-- List sessions with one of these tags.
SELECT DISTINCT session_id FROM tags WHERE tag IN (SELECT value FROM json_each(:tags)) LIMIT :limit

-- name: searched_rows.list_projects
-- List all projects with their names.
SELECT id, name FROM projects

-- name: searched_rows.list_in_projects
-- List sessions of some projects.
SELECT id FROM sessions WHERE project_id IN (SELECT CAST(value AS BIGINT) FROM json_each(:ids)) LIMIT :limit

-- name: searched_rows.list_in_state
-- List sessions that are pinned, archived or in the bin.
SELECT id FROM sessions
WHERE (CAST(:state AS TEXT) = 'pinned' AND pinned_at IS NOT NULL)
    OR (CAST(:state AS TEXT) = 'archived' AND archived_at IS NOT NULL)
    OR (CAST(:state AS TEXT) = 'deleted' AND deleted_at IS NOT NULL)
LIMIT :limit

-- name: searched_rows.count_audiences
-- Count the audiences, up to a limit.
SELECT COUNT(*) FROM (SELECT 1 FROM audiences LIMIT :limit) AS counted
