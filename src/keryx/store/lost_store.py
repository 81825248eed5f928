"""Tell a first start from a lost store: refuse to create a store where there was one before.

SQLite deletes the log beside an empty file, so this check comes before SQLite opens the file.
"""

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Final

from keryx.errors import StoreError, StoreUnavailable
from keryx.store.sqlite_files import index_path, make_private

TEXT: Final = (
    "Keryx has created the store {path}. This file keeps Keryx from creating a new one if that one is lost.\n"
)


def markers_of(path: Path, folder: Path | None) -> list[Path]:
    """Return the paths of the markers of a store: beside it and, in case its whole volume is lost, in ``folder``."""
    markers = [path.with_name(f"{path.name}-created")]
    if folder is not None and folder.resolve() != path.parent.resolve():
        name = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        markers.append(folder / f"store-{name}-created")
    return markers


def refuse_lost_store(path: Path, folder: Path | None) -> None:
    """Raise ``StoreUnavailable`` if the file is missing or empty, and other files show that there was a store."""
    if _size(path):
        return
    log = path.with_name(f"{path.name}-wal")
    found = [each for each in (*markers_of(path, folder), log, index_path(path)) if _size(each)]
    if found:
        raise StoreUnavailable(
            f"The store {path} is {'empty' if path.exists() else 'missing'}, but there was one: "
            f"{', '.join(f'{each} ({_size(each):,} bytes)' for each in found)}. Is its volume mounted? "
            f"Put {path.name} back, from a copy or backup if need be. To begin a new store, first move the other files "
            "away. Nothing was changed."
        )


def mark_store(path: Path, folder: Path | None) -> None:
    """Create the markers of a store that has been created; call it after the store's first commit."""
    for marker in markers_of(path, folder):
        # The store works without a marker: a full disk, or a folder that cannot be written, is no reason to refuse it.
        with suppress(OSError, StoreError):
            if not _size(marker):
                make_private(marker)
                marker.write_text(
                    TEXT.format(path=path.resolve()), encoding="utf-8", errors="surrogateescape"
                )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
