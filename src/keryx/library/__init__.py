"""Keryx for programs: the calls behind ``keryx.open`` and ``keryx.open_sync``; and what keeps the index up to date."""
