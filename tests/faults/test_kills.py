"""Processes killed before any statement on a message's way: after a restart the message is answered once."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
STATEMENTS_MIN = 50


def test_a_message_is_answered_once_wherever_the_process_is_killed(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.faults.kill_story", tmp_path],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) >= STATEMENTS_MIN, "the whole way must have more statements"
