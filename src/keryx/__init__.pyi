"""What type checkers see of the package: the names that ``__init__.py`` fetches when they are first used."""

from keryx.library.client import open  # noqa: A004 - said as `keryx.open`
from keryx.library.sync import open_sync

__version__: str
__all__ = ["__version__", "open", "open_sync"]
