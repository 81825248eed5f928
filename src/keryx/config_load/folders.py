"""Find the folders and files of a profile. Profiles share no folder."""

import re
from collections.abc import Mapping
from pathlib import Path

from platformdirs import PlatformDirs

from keryx.config import ProfileFolders
from keryx.config.setting import HOME_VARIABLE
from keryx.errors import InvalidValue

PROFILE_VARIABLE = "KERYX_PROFILE"
PROJECT_FILE = "keryx.yaml"

_PROFILE = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


def folders_of(environ: Mapping[str, str], cwd: Path) -> ProfileFolders:
    """Return the folders of the profile that ``environ`` selects.

    Without ``KERYX_HOME``, platformdirs takes the usual folders of the system from the process's own environment.
    """
    profile = check_profile(environ.get(PROFILE_VARIABLE) or "main", origin=PROFILE_VARIABLE)
    home = environ.get(HOME_VARIABLE)
    if home:
        folder = cwd / Path(home).expanduser() / profile
        return ProfileFolders(profile=profile, config_dir=folder, data_dir=folder)
    system = PlatformDirs("keryx", appauthor=False)
    return ProfileFolders(
        profile=profile,
        config_dir=system.user_config_path / profile,
        data_dir=system.user_data_path / profile,
    )


def check_profile(name: str, *, origin: str) -> str:
    """Return the name of a profile; raise ``InvalidValue``, with ``origin`` in the message, if it is not valid."""
    if not _PROFILE.fullmatch(name):
        raise InvalidValue(
            f"{origin}: the profile name {name!r} is not valid; use at most 32 lower-case letters, "
            "digits, '-' and '_', beginning with a letter or digit"
        )
    return name


def misplaced_files(folders: ProfileFolders) -> list[Path]:
    """Return files of settings in the folder above the profiles' folders, where Keryx does not read them."""
    above = folders.config_dir.parent
    candidates = (above / file.name for file in (folders.user_file, folders.secrets_file))
    return [path for path in candidates if _is_file(path)]


def find_project_file(cwd: Path) -> Path | None:
    """Return the nearest project file, from ``cwd`` upwards, or None."""
    candidates = (folder / PROJECT_FILE for folder in (cwd, *cwd.parents))
    return next((path for path in candidates if _is_file(path)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # no permission for the folder, or a path that is too long
        return False
