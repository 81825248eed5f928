"""What type checkers see of the package: the names that ``__init__.py`` fetches when they are first used."""

from keryx.library import open, open_sync  # noqa: A004 - said as `keryx.open`

__version__: str
__all__ = ["__version__", "open", "open_sync"]
