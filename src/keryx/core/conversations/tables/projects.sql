-- columns: project
id, owner_id, name, colour, workspace, created_at, archived_at

-- name: projects.add
-- Add a project. Changes nothing if the person has a project of that name.
INSERT INTO projects (owner_id, name, colour, workspace, created_at)
VALUES (:owner_id, :name, :colour, :workspace, :now)
ON CONFLICT (owner_id, name) DO NOTHING
RETURNING id

-- name: projects.find
-- A project of a person by id.
SELECT {project}
FROM projects WHERE id = :project_id AND owner_id = :owner_id

-- name: projects.find_by_name
-- A project of a person by name.
SELECT {project}
FROM projects WHERE owner_id = :owner_id AND name = :name

-- name: projects.list_of_person
-- The projects of a person that are not archived, oldest first.
SELECT {project}
FROM projects WHERE owner_id = :owner_id AND archived_at IS NULL ORDER BY id

-- name: projects.change
-- Change a project. Changes nothing if another project of the person has the name.
UPDATE projects SET name = :name, colour = CAST(:colour AS TEXT), workspace = CAST(:workspace AS TEXT)
WHERE id = :project_id
  AND NOT EXISTS (SELECT 1 FROM projects p
                  WHERE p.owner_id = projects.owner_id AND p.name = :name AND p.id <> projects.id)

-- name: projects.set_archived
-- Archive a project, or restore it (NULL). Changes nothing if that is done already.
UPDATE projects SET archived_at = CAST(:since_at AS BIGINT)
WHERE id = :project_id AND (archived_at IS NULL) <> (CAST(:since_at AS BIGINT) IS NULL)
