"""A platform in its own wheel, installed beside Keryx: its settings and errors are shown, and messages are answered."""

import base64
import hashlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

import pytest

from keryx.agents.model.guide import SETUP
from tests.architecture.source import ROOT

MODULE = ROOT / "tests" / "platforms" / "mailbox" / "keryx_mailbox.py"
NAME = "keryx_mailbox-1.0"
PATIENCE_SECONDS = 60.0


def build_wheel(folder: Path) -> Path:
    """Build a wheel of the platform."""
    files = {
        "keryx_mailbox.py": MODULE.read_text(encoding="utf-8"),
        f"{NAME}.dist-info/METADATA": "Metadata-Version: 2.1\nName: keryx-mailbox\nVersion: 1.0\n",
        f"{NAME}.dist-info/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
        f"{NAME}.dist-info/entry_points.txt": "[keryx.platforms]\nmailbox = keryx_mailbox:PLUGIN\n",
    }
    record = [f"{name},sha256={_digest(text)},{len(text.encode())}" for name, text in files.items()]
    files[f"{NAME}.dist-info/RECORD"] = "\n".join([*record, f"{NAME}.dist-info/RECORD,,", ""])
    wheel = folder / f"{NAME}-py3-none-any.whl"
    with ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wheel


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of packages in which the wheel is installed, without a download."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    subprocess.run(
        [*command, "--no-index", "--no-deps", "--target", folder / "site", build_wheel(folder)], check=True
    )
    return folder / "site"


class Home:
    """A profile on a machine with the wheel."""

    def __init__(self, folder: Path, site: Path) -> None:
        self.mailbox = folder / "mailbox"
        self.file = folder / "home" / "main" / "config.yaml"
        self.secrets = self.file.with_name(".env")
        self.cwd = folder / "project"
        self.cwd.mkdir()
        self.environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(site)]),
            "KERYX_HOME": str(folder / "home"),
        }

    def write(self, text: str, *, secrets: str = "KERYX_PLATFORMS_MAILBOX_TOKEN=tell-nobody\n") -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(text)
        self.secrets.write_text(secrets)
        self.secrets.chmod(0o600)

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "keryx", *arguments],
            env=self.environ | variables,
            cwd=self.cwd,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    @contextmanager
    def serving(self) -> Iterator["subprocess.Popen[str]"]:
        """Run a gateway during the block."""
        command = [sys.executable, "-m", "keryx", "serve"]
        with subprocess.Popen(
            command, env=self.environ, cwd=self.cwd, stderr=subprocess.PIPE, text=True
        ) as gateway:
            assert gateway.stderr is not None
            try:
                assert any("ready as" in line and "mailbox" in line for line in gateway.stderr)
                yield gateway
            finally:
                gateway.send_signal(signal.SIGTERM)
                gateway.communicate(timeout=PATIENCE_SECONDS)


@pytest.fixture
def home(tmp_path: Path, site: Path) -> Home:
    return Home(tmp_path, site)


def answer(home: Home, gateway: "subprocess.Popen[str]", message: str, *, ref: str) -> str:
    """Put a message from Ana into the mailbox, and return the answer."""
    draft = home.mailbox / f"ana.{ref}"
    draft.write_text(message)
    draft.rename(home.mailbox / f"ana.{ref}.in")
    assert gateway.stderr is not None
    delivered = (re.search(r"delivered (\S+)", line) for line in gateway.stderr)
    name = next(found[1] for found in delivered if found)
    return (home.mailbox / name).read_text()


def test_a_message_is_answered_through_a_platform_of_another_package(home: Home) -> None:
    home.write(f"platforms: {{mailbox: {{folder: {home.mailbox}}}}}\nwelcome: none\n")
    code = re.search(r"/link (\w+)", home.run("--print", "/link").stdout)
    assert code is not None
    with home.serving() as gateway:
        assert "both belong to owner now" in answer(home, gateway, f"/link {code[1]}", ref="1")
        assert answer(home, gateway, "hello", ref="2").startswith(SETUP[:40])
        assert list(home.mailbox.glob("*.in")) == []


def test_its_settings_are_shown_and_set_like_any_other(home: Home) -> None:
    shown = home.run("config", "show").stdout
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines()}
    assert rows["platforms.mailbox.folder"] == ["none", "default"]
    assert rows["platforms.mailbox.text_max"] == ["1000", "default"]
    home.write("pairing: [mailbox]\nbusy: {on: {mailbox: steer}}\n")
    assert "was written to" in home.run("config", "set", "platforms.mailbox.text_max", "500").stdout
    assert "platforms:\n  mailbox:\n    text_max: 500" in home.file.read_text()
    assert home.run("config", "get", "platforms.mailbox.text_max").stdout == "500\n"
    assert home.run("config", "get", "platforms.mailbox.token").stdout == "set\n"
    by_variable = home.run(
        "config", "get", "platforms.mailbox.text_max", KERYX_PLATFORMS_MAILBOX_TEXT_MAX="40"
    )
    assert by_variable.stdout == "40\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "platforms: {mailbox: {text_max: 1}}",
            ":1: platforms.mailbox.text_max: '1' is not valid; write a whole number from 10 to 10000",
        ),
        ("platforms: {mailbox: {foldr: x}}", "did you mean platforms.mailbox.folder?"),
        ("platforms: {mailbx: {folder: x}}", "did you mean platforms.mailbox?"),
        ("mailbox: {folder: x}", "there is no setting 'mailbox'; write platforms.mailbox"),
        (
            "platforms: {mailbox: {token: x}}",
            "this is a secret and does not belong here; write KERYX_PLATFORMS_MAILBOX_TOKEN",
        ),
        ("platforms: {mailbox: {folder: .}}", ":1: platforms.mailbox.folder: this is Keryx's own folder"),
    ],
)
def test_problems_of_its_settings_are_reported_with_their_lines(home: Home, text: str, problem: str) -> None:
    home.write(text)
    told = home.run("serve")
    assert (told.returncode, problem in told.stderr, "Traceback" in told.stderr) == (1, True, False)


def test_its_own_message_reports_a_missing_setting_at_the_start(home: Home) -> None:
    home.write("platforms: {mailbox: {folder: box}}", secrets="")
    told = home.run("serve")
    assert told.returncode == 1
    assert told.stderr == (
        "keryx: platforms.mailbox.folder: the mailbox needs a token; write "
        f"KERYX_PLATFORMS_MAILBOX_TOKEN=… into {home.secrets}\n"
    )


def test_a_project_cannot_set_any_setting_of_the_platform(home: Home) -> None:
    (home.cwd / "keryx.yaml").write_text("platforms: {mailbox: {folder: x}}\n")
    told = home.run("--print", "hello")
    assert f"platforms.mailbox.folder: a project cannot set this; write it into {home.file}" in told.stderr


def test_it_is_not_imported_until_it_is_configured(home: Home) -> None:
    program = "import sys, keryx.config_load as c; c.load_config(); print('keryx_mailbox' in sys.modules)"

    def is_imported() -> str:
        command = [sys.executable, "-c", program]
        return subprocess.run(
            command, env=home.environ, cwd=home.cwd, capture_output=True, text=True, check=True
        ).stdout

    assert is_imported() == "False\n"
    home.write("platforms: {mailbox: {text_max: 20}}\n")
    assert is_imported() == "True\n"
