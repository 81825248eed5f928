-- columns: project
id, owner_id, name, colour, workspace, created_at, archived_at

-- name: projects.add
-- A project of this person; nothing when there is one of that name.
INSERT INTO projects (owner_id, name, colour, workspace, created_at)
VALUES (:owner_id, :name, :colour, :workspace, :now)
ON CONFLICT (owner_id, name) DO NOTHING
RETURNING id

-- name: projects.find
-- One project of a person.
SELECT {project}
FROM projects WHERE id = :project_id AND owner_id = :owner_id

-- name: projects.find_by_name
-- A person's project of this name.
SELECT {project}
FROM projects WHERE owner_id = :owner_id AND name = :name

-- name: projects.list_of_person
-- A person's projects that are not put away, oldest first.
SELECT {project}
FROM projects WHERE owner_id = :owner_id AND archived_at IS NULL ORDER BY id

-- name: projects.change
-- The project as it is from now on; its name must be free.
UPDATE projects SET name = :name, colour = CAST(:colour AS TEXT), workspace = CAST(:workspace AS TEXT)
WHERE id = :project_id
  AND NOT EXISTS (SELECT 1 FROM projects p
                  WHERE p.owner_id = projects.owner_id AND p.name = :name AND p.id <> projects.id)

-- name: projects.set_archived
-- Put away since then, or taken out again; no change when it already is.
UPDATE projects SET archived_at = CAST(:since_at AS BIGINT)
WHERE id = :project_id AND (archived_at IS NULL) <> (CAST(:since_at AS BIGINT) IS NULL)
