"""``python -m keryx`` is ``keryx``."""

from keryx.cli.main import main

main()
