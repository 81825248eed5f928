"""Find the time zone of this machine: the default of the setting ``timezone``."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from keryx.core.values.time_zone import zone_of
from keryx.errors import InvalidValue

NONE_FOUND: Final = "UTC"
_FOLDER: Final = "/zoneinfo/"
"""The folder of the time zone database, above the files that are named after their zones."""
_VARIANTS: Final = ("posix/", "right/")
_SAME_AS_UTC: Final = frozenset(
    {"UCT", "Universal", "Zulu", "Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu"}
)


def system_zone(environ: Mapping[str, str], etc: Path = Path("/etc")) -> str:
    """Return the IANA name of this machine's zone: of ``TZ``, else of the system's files; UTC if there is none."""
    for name in _candidates(environ, etc):
        try:
            zone = zone_of(name).key
        except InvalidValue:
            continue  # such as the rule "CET-1CEST" in TZ, or a file that was copied and has no zone's name
        return NONE_FOUND if zone in _SAME_AS_UTC else zone
    return NONE_FOUND


def _candidates(environ: Mapping[str, str], etc: Path) -> Iterator[str]:
    if given := environ.get("TZ", "").removeprefix(":"):
        yield _below_database(given)
    try:
        # As on Linux and macOS, where it is a link into the database.
        yield _below_database(str((etc / "localtime").resolve()))
        yield (etc / "timezone").read_text(encoding="ascii").strip()
    except (OSError, ValueError, RuntimeError):
        return


def _below_database(path: str) -> str:
    """Return the name of the zone whose file this is; any other text is returned unchanged."""
    name = path.rpartition(_FOLDER)[2]
    for variant in _VARIANTS:
        name = name.removeprefix(variant)
    return name
