"""The file that starts the supervisor, as ``python -I -S``: without Keryx and with nothing but the standard library."""

import os
import sys

# At the end of the path, so that no module of this folder hides one of the standard library.
sys.path.append(os.path.dirname(os.path.abspath(__file__)))

from supervisor.main import main  # type: ignore[import-not-found]

if __name__ == "__main__":
    main()
