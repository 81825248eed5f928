"""Where each contender's interpreter is, and how a missing one is made.

A peer gets an environment of its own under ``.bench/``; nothing is ever installed beside Keryx.
"""

import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A peer's released package."""

    requirement: str
    title: str


PEERS = {
    "hermes": Peer(requirement="hermes-agent==0.19.0", title="Hermes"),
    "openai-agents": Peer(requirement="openai-agents==0.24.*", title="openai-agents"),
    # The extra brings SQLAlchemy, without which its DatabaseSessionService cannot be imported.
    "adk": Peer(requirement="google-adk[db]==2.13.*", title="google-adk"),
    "nanobot": Peer(requirement="nanobot-ai==0.3.5", title="nanobot"),
}
OURS = ("keryx", "raw")


def title(contender: str) -> str:
    """What the table calls a contender."""
    ours = {"keryx": "Keryx", "postgres": "PostgreSQL", "sqlite": "SQLite"}
    return PEERS[contender].title if contender in PEERS else ours.get(contender, contender)


def interpreter(contender: str, folder: Path) -> Path:
    """Return the Python that runs *contender*, installing a peer into *folder* if it is not there yet."""
    if contender not in PEERS:
        return Path(sys.executable)
    home = folder / f"venv-{contender}"
    python = home / "bin" / "python"
    stamp = home / "requirement.txt"
    requirement = PEERS[contender].requirement
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != requirement:
        print(f"bench: installing {requirement} into {home}", file=sys.stderr)
        venv.create(home, clear=True, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"bench: {requirement} could not be installed.\n{done.stderr}")
        stamp.write_text(requirement, encoding="utf-8")
    return python
