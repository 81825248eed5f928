"""Create, change and archive the projects of a person.

An archived project keeps its sessions and its name.
"""

from keryx.core.conversations.tables import feed, projects
from keryx.core.conversations.tables.projects import Project as Project
from keryx.core.people.tables import access
from keryx.errors import InvalidValue
from keryx.store.database import Tx
from keryx.values import dataclass

NAME_LENGTH_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectNameTaken:
    """Another project of the person has this name; nothing changed."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectPlan:
    """The name, colour and workspace of a project."""

    name: str
    colour: str | None = None
    workspace: str | None = None

    def __post_init__(self) -> None:
        if self.name != " ".join(self.name.split()) or not 1 <= len(self.name) <= NAME_LENGTH_MAX:
            raise InvalidValue(
                f"project name {self.name[:80]!r}: give 1 to {NAME_LENGTH_MAX} characters on one line"
            )


def create_project(tx: Tx, plan: ProjectPlan, *, person_id: int) -> Project | ProjectNameTaken:
    """Create a project."""
    project_id = projects.add_project(
        tx, owner_id=person_id, name=plan.name, colour=plan.colour, workspace=plan.workspace
    )
    if project_id is None:
        return ProjectNameTaken(name=plan.name)
    return _saved(tx, project_id, person_id)


def ensure_project(tx: Tx, name: str, *, person_id: int) -> int:
    """Return the id of the person's project of this name, which is created if it does not exist."""
    project_id = projects.add_project(tx, owner_id=person_id, name=name)
    if project_id is not None:
        return _saved(tx, project_id, person_id).id
    project = projects.find_by_name(tx, owner_id=person_id, name=name)
    assert project is not None, "the name is taken, so there is a project with it"
    return project.id


def change_project(
    tx: Tx, project_id: int, plan: ProjectPlan, *, person_id: int
) -> Project | ProjectNameTaken:
    """Change the name, colour and workspace of a project."""
    # Serialize changes of one person's projects: otherwise two projects could take the same name.
    access.lock_person(tx, person_id)
    project = projects.get_project(tx, project_id, owner_id=person_id)
    changed = project._replace(name=plan.name, colour=plan.colour, workspace=plan.workspace)
    if not projects.change_project(tx, changed):
        return ProjectNameTaken(name=plan.name)
    return _saved(tx, project_id, person_id)


def archive_project(tx: Tx, project_id: int, *, person_id: int, archived: bool = True) -> Project:
    """Archive a project, or restore it."""
    project = projects.get_project(tx, project_id, owner_id=person_id)
    if not projects.set_archived(tx, project_id, archived=archived):
        return project
    return _saved(tx, project_id, person_id)


def _saved(tx: Tx, project_id: int, person_id: int) -> Project:
    feed.add_personal_event(tx, person_id, "project", project_id)
    return projects.get_project(tx, project_id, owner_id=person_id)
