"""Find, read and replace the files of a profile.

Profiles share no folder. A file is replaced whole or not at all.
"""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

from platformdirs import PlatformDirs

from keryx.config import ProfileFolders
from keryx.config.setting import HOME_VARIABLE
from keryx.errors import InvalidValue

PROFILE_VARIABLE = "KERYX_PROFILE"
PROJECT_FILE = "keryx.yaml"
_OTHER_USERS = stat.S_IRWXG | stat.S_IRWXO
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


def read_text(path: Path, *, private: bool = False) -> str | None:
    """Return a file's text, or None if the file does not exist; raise ``InvalidValue`` if it cannot be read.

    A ``private`` file is refused if other users can read it.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            mode = os.fstat(file.fileno()).st_mode
            if private and os.name == "posix" and mode & _OTHER_USERS:
                raise InvalidValue(
                    f"{path}: other users can read these secrets (mode {stat.S_IMODE(mode):04o}); run: chmod 600 {path}"
                )
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidValue(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InvalidValue(f"{path}:{line}: this is not UTF-8; save the file in that encoding") from error


def replace_file(path: Path, text: str) -> None:
    """Replace a file's content, also through a link; only its owner may read a new file."""
    path = path.resolve()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedTemporaryFile(
            "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            temporary = Path(file.name)
            try:
                file.write(text)
                file.flush()
                if path.exists():
                    temporary.chmod(stat.S_IMODE(path.stat().st_mode))
                os.fsync(file.fileno())
                temporary.replace(path)
            except BaseException:
                temporary.unlink()
                raise
        _sync_folder(path.parent)
    except OSError as error:
        raise InvalidValue(f"{path}: cannot be written: {error.strerror}; nothing was changed") from error


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
