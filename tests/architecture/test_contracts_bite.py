"""Each rule of the tools is alive: a planted violation fails it, and without the plant it holds.

The plants go into a copy of the package, checked with the project's own configuration.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, ROOT

BIN = Path(sys.executable).parent


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package, under the project's configuration."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    ignored = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(PACKAGE, tmp_path / "src" / "keryx", ignore=ignored)


def run(tool: str, *arguments: str, package: Path) -> subprocess.CompletedProcess[str]:
    root = package.parents[1]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(root / "src"), "HOME": str(root)}
    return subprocess.run(
        [BIN / tool, *arguments], cwd=root, env=environment, capture_output=True, text=True, check=False
    )


PLANTED_IMPORTS = {
    "packages: upwards": ("packages", "gateway/planted.py", "import keryx.cli"),
    "packages: siblings": ("packages", "agents/planted.py", "import keryx.tools"),
    "packages: a module without a layer": ("packages", "helpers.py", "X = 1"),
    "integrations: the library": ("integrations", "integrations/planted.py", "import keryx.library.client"),
    "integrations: a rule": (
        "integrations",
        "integrations/openai_agents.py",
        "from keryx.core.conversations.rules.message import Message",
    ),
    "values": ("values", "core/values/planted.py", "import keryx.core.people.rules.person"),
    "rules: the store": ("rules", "core/turns/rules/planted.py", "import keryx.store"),
    "rules: a table, flat layers": ("rules", "core/media/rules.py", "import keryx.core.schedules.tables"),
    "tables: a view": ("table-layer", "core/turns/tables/planted.py", "import keryx.core.turns.views"),
    "tables: a transaction, flat": (
        "table-layer",
        "core/media/tables.py",
        "import keryx.core.media.transactions",
    ),
    "views: a transaction": (
        "views",
        "core/people/views/planted.py",
        "import keryx.core.turns.transactions.begin_turn",
    ),
    "views: a transaction, flat": (
        "views",
        "core/people/views/planted.py",
        "import keryx.core.media.transactions",
    ),
    "settings: a table": ("settings", "core/turns/settings.py", "import keryx.core.turns.tables"),
    "tables: a plug-in": ("tables", "platforms/webhook/planted.py", "from keryx.core.turns import tables"),
    "core: a plug-in": ("core", "core/turns/transactions/planted.py", "import keryx.tools.tool"),
    "gateway: a platform": ("gateway", "gateway/planted.py", "import keryx.platforms.webhook.wire"),
    "gateway: a backend": ("gateway", "gateway/planted.py", "import keryx.backends.local.folder"),
    "gateway: an agent, through another module": (
        "gateway",
        "gateway/runtime/metrics.py",
        "import keryx.agents.model.guide",
    ),
    "store": ("store", "store/planted.py", "import keryx.core.turns.tables"),
    "drivers: SQLite": ("drivers", "core/turns/views/planted.py", "import apsw"),
    "drivers: the standard library's": ("drivers", "core/turns/rules/planted.py", "import sqlite3"),
    "drivers: PostgreSQL": ("drivers", "core/turns/tables/planted.py", "from psycopg import connect"),
    "providers: the layer over them": ("providers", "agents/planted.py", "import pydantic_ai"),
    "providers: one of them": ("providers", "agents/model/agent.py", "from openai import OpenAI"),
    "protocols: ACP": ("protocols", "agents/acp/agent.py", "import acp"),
    "protocols: MCP": ("protocols", "tools/planted.py", "from mcp.client.client import Client"),
    "tables": ("tables", "cli/planted.py", "from keryx.core.turns import tables"),
    "tables, flat": ("tables", "gateway/planted.py", "from keryx.core.schedules import tables"),
    "rules: files": ("pure-rules", "core/turns/rules/planted.py", "from pathlib import Path"),
    "rules: time": ("pure-rules", "core/turns/rules/planted.py", "import time"),
    "rules: time, flat": ("pure-rules", "core/processes/rules.py", "import time"),
    "rules: randomness": ("pure-rules", "core/values/planted.py", "from random import Random"),
}


@pytest.mark.parametrize(("contract", "module", "line"), PLANTED_IMPORTS.values(), ids=PLANTED_IMPORTS)
def test_an_import_contract_bites(copy: Path, contract: str, module: str, line: str) -> None:
    check = ("lint-imports", "--no-cache", "--contract", contract)
    before = run(*check, package=copy)
    assert before.returncode == 0, before.stdout

    (copy / module).write_text(f"{line}\n")

    after = run(*check, package=copy)
    assert after.returncode == 1
    assert "0 kept, 1 broken" in after.stdout


PLANTED_LINES = {
    "BLE001": "try:\n    x = 1\nexcept Exception:\n    x = 2",
    "S110": "try:\n    x = 1\nexcept Exception:\n    pass",
    "PLC0415": "def f() -> None:\n    import json\n",
    "DTZ005": "import datetime\n\nx = datetime.datetime.now()",
    "TID251 wall time": "import time\n\nx = time.time()",
    "TID251 monotonic time": "from time import monotonic",
    "TID251 today": "from datetime import date\n\nx = date.today()",
    "TID251 environment": "import os\n\nx = os.environ",
    "TID251 one variable": "import os\n\nx = os.getenv('HOME')",
    "TID251 randomness": "import random",
    "TID251 ids": "from uuid import uuid4",
    "TID252": "from . import errors",
    "C901": "def f(a: int) -> None:\n" + "".join(f"    if a == {n}:\n        f({n})\n" for n in range(10)),
    "PLR0913": "def f(a: int, b: int, c: int, d: int, e: int, f: int, g: int) -> None: ...",
    "PLR0915": "def f() -> None:\n" + "".join(f"    x{n} = {n}\n" for n in range(51)),
    "ASYNC251": "import time\n\n\nasync def f() -> None:\n    time.sleep(1)",
    "FBT001": "def f(a: bool) -> None: ...",
    "SLF001": "import json\n\nx = json._private",
    "T201": "print(1)",
    "S608": "def f(x: str) -> str:\n    return 'SELECT a FROM ' + x",
    "B006": "def f(a: list[int] = []) -> None: ...",
    "D100": "x = 1",
    "D103": "def f() -> None: ...",
    "ERA001": "# x = 1",
    "PGH003": "x = 1  # type: ignore",
}


def test_every_lint_rule_we_rely_on_bites(copy: Path) -> None:
    for number, lines in enumerate(PLANTED_LINES.values()):
        (copy / f"planted_{number}.py").write_text(f"{lines}\n")

    found = json.loads(run("ruff", "check", "--no-cache", "--output-format=json", "src", package=copy).stdout)

    bitten = {(Path(complaint["filename"]).name, complaint["code"]) for complaint in found}
    expected = {(f"planted_{number}.py", name.split()[0]) for number, name in enumerate(PLANTED_LINES)}
    assert expected - bitten == set()


@pytest.mark.parametrize("name", ["clock.py", "ids.py"])
def test_the_leaves_alone_may_read_time_and_make_ids(copy: Path, name: str) -> None:
    (copy / name).write_text('"""Doc."""\n\nimport random\nimport time\n\nX = (time.time(), random)\n')
    ended = run("ruff", "check", "--no-cache", f"src/keryx/{name}", package=copy)
    assert ended.returncode == 0, ended.stdout


def test_the_type_check_is_strict(copy: Path) -> None:
    (copy / "planted.py").write_text("def f(x): return x\n")
    ended = run("mypy", "--cache-dir=/dev/null", "src/keryx/planted.py", package=copy)
    assert "Function is missing a type annotation" in ended.stdout


def test_the_format_is_checked(copy: Path) -> None:
    (copy / "planted.py").write_text("x  =  1\n")
    assert (
        run("ruff", "format", "--no-cache", "--check", "src/keryx/planted.py", package=copy).returncode == 1
    )
