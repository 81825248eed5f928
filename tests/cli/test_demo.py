"""``keryx serve --demo`` in its own process: the owner's files are not touched, and no file is left behind."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from keryx.agents.model.choice import MODEL
from keryx.cli.demo import make_demo
from keryx.config_load import load_config
from tests.architecture.source import ROOT

PATIENCE_SECONDS = 60


async def test_the_demo_serves_sample_conversations_and_leaves_nothing_behind(tmp_path: Path) -> None:
    scratch, home = tmp_path / "scratch", tmp_path / "home"
    scratch.mkdir()
    home.mkdir()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "keryx", "serve", "--demo"),
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "src"),
            "TMPDIR": str(scratch),
            # The owner's settings are not read: this one would be refused.
            "KERYX_HOME": str(home),
            "KERYX_TIMEZONE": "Nowhere/Nothing",
        },
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    told = ""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while "keryx: ready" not in told:
            line = await process.stderr.readline()
            assert line, told
            told += line.decode()
        (folder,) = scratch.glob("keryx-demo-*")
        assert f"sample conversations in {folder}, deleted at the end" in told
        assert f"KERYX_HOME={folder} keryx chat" in told
        assert (folder / "main" / "keryx.db").exists()
        process.send_signal(signal.SIGTERM)
        await process.communicate()
    assert process.returncode == 0
    assert list(scratch.iterdir()) == []
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("model", ["offline:smollm2", None])
def test_the_demo_s_folder_is_a_home_with_the_chosen_model(tmp_path: Path, model: str | None) -> None:
    (tmp_path / "keryx.yaml").write_text("model: openai:gpt-5\n")
    home = tmp_path / "home"
    home.mkdir()
    made = make_demo(home, model=model)
    assert (made.values.of(MODEL), made.data_dir) == (model, home / "main")
    assert load_config({"KERYX_HOME": str(home)}, home).values.of(MODEL) == model
