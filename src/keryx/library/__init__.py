"""The library: the calls behind ``keryx.open`` and ``keryx.open_sync``. Programs import its names from ``keryx``."""
