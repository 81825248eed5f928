"""Projects, which group the sessions of a person."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.errors import NotFound
from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx


class Project(NamedTuple):
    """A row of the table."""

    id: int
    owner_id: int
    name: str
    colour: str | None
    workspace: str | None
    created_at: Micros
    archived_at: Micros | None


def add_project(
    tx: Tx, *, owner_id: int, name: str, colour: str | None = None, workspace: str | None = None
) -> int | None:
    """Add a project and return its id, or None if the person has a project of that name."""
    found: int | None = tx.value(
        "projects.add",
        owner_id=owner_id,
        name=clean_text(name),
        colour=clean_text(colour),
        workspace=clean_text(workspace),
    )
    return found


def get_project(tx: ReadTx, project_id: int, *, owner_id: int) -> Project:
    """Return a project of the person."""
    row = tx.one(Project, "projects.find", project_id=project_id, owner_id=owner_id)
    if row is None:
        raise NotFound(f"There is no project {project_id} of yours.")
    return row


def find_by_name(tx: ReadTx, *, owner_id: int, name: str) -> Project | None:
    """Return the person's project of this name, archived or not, or None."""
    return tx.one(Project, "projects.find_by_name", owner_id=owner_id, name=clean_text(name))


def list_projects(tx: ReadTx, *, owner_id: int) -> list[Project]:
    """Return the person's projects that are not archived, oldest first."""
    return tx.all(Project, "projects.list_of_person", owner_id=owner_id)


def change_project(tx: Tx, project: Project) -> bool:
    """Store the name, colour and workspace of a project; return False if the name is in use."""
    changed = tx.run(
        "projects.change",
        project_id=project.id,
        name=clean_text(project.name),
        colour=clean_text(project.colour),
        workspace=clean_text(project.workspace),
    )
    return changed == 1


def set_archived(tx: Tx, project_id: int, *, archived: bool) -> bool:
    """Archive a project or restore it; return whether anything changed."""
    since_at = tx.now if archived else None
    return tx.run("projects.set_archived", project_id=project_id, since_at=since_at) == 1
