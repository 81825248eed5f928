"""All sources are read, the stronger one wins, and all problems are reported at once with their lines."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from keryx.agents.model.choice import MODEL, access_of, model_choice
from keryx.config import Configuration
from keryx.config.setting import Setting
from keryx.config_load import explain_all, find_folders, get_value, load_config, set_value
from keryx.config_load.files import replace_file
from keryx.config_load.table import Table
from keryx.core.context.rules.prices import Price
from keryx.core.context.settings import HASH_USER_IDS, ID_SALT
from keryx.core.conversations.rules.session_settings import Personality
from keryx.core.conversations.rules.source import Source
from keryx.core.people.rules.toolset import ToolsetSettings
from keryx.core.turns.rules.reset import ResetPolicy
from keryx.errors import InvalidValue
from keryx.platforms.webhook.plugin import CALLBACK, ENABLED, HOST, PORT, SECRET
from keryx.tools.shell.plugin import VARIABLES, command_variables
from keryx.tools.web.plugin import FETCH_ALLOW, FETCH_PRIVATE
from tests.plugged import declare, declare_platforms

ROOT = Path(__file__).parents[2]


class Place:
    """A home with one profile, a project in it, and an environment."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = folder / "work" / "project"
        self.cwd = self.project / "deep" / "down"
        self.cwd.mkdir(parents=True)
        self.environ = {"KERYX_HOME": str(self.home), "TZ": "UTC"}
        self.user_file = self.home / "main" / "config.yaml"
        self.secrets_file = self.home / "main" / ".env"
        self.project_file = self.project / "keryx.yaml"

    def write(self, path: Path, text: str, *, mode: int = 0o600) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)

    def load(self, **variables: str) -> Configuration:
        return load_config(self.environ | variables, self.cwd)

    def problems(self, **variables: str) -> list[str]:
        with pytest.raises(InvalidValue) as caught:
            self.load(**variables)
        return str(caught.value).splitlines()

    def origin(self, name: str, **variables: str) -> tuple[str, str]:
        row = get_value(name, self.environ | variables, self.cwd)
        return row.value, row.origin

    def set(self, name: str, value: str, **variables: str) -> Configuration:
        return set_value(name, value, environ=self.environ | variables, cwd=self.cwd)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    platforms = declare_platforms(tmp_path / "site", "telegram", "discord", "signal", "matrix")
    monkeypatch.syspath_prepend(platforms)
    return Place(tmp_path)


def webhook_in(found: Configuration) -> tuple[object, ...]:
    return tuple(found.values.of(setting) for setting in (ENABLED, HOST, PORT, CALLBACK, SECRET))


def visible_to_commands(found: Configuration) -> dict[str, str]:
    return command_variables(found.environ, named=found.values.of(VARIABLES))


def test_without_any_file_everything_has_its_default(place: Place) -> None:
    found = place.load()

    assert found.profile == "main"
    assert found.database == str(place.home / "main" / "keryx.db")
    assert found.output_dir == place.home / "main" / "output"
    assert (found.values.of(MODEL), found.workspace, found.project_file) == (None, None, None)
    assert (found.timezone, found.turns_max) == ("UTC", 64)
    assert webhook_in(found) == (False, "127.0.0.1", 8460, None, None)
    assert found.settings.reset.default == ResetPolicy()
    assert found.settings.welcome is not None
    assert {row.origin for row in found.rows} == {"default"}
    assert not place.home.exists()


def test_without_a_file_the_yaml_library_is_not_loaded(place: Place) -> None:
    program = "import sys, keryx.config_load as c; c.load_config(); assert 'ruamel.yaml' not in sys.modules"
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src"), **place.environ}
    subprocess.run([sys.executable, "-c", program], env=environ, cwd=place.cwd, check=True)


def test_without_keryx_home_the_system_s_folders_are_used(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    found = load_config({"KERYX_PROFILE": "work"}, place.cwd)

    assert found.config_dir == tmp_path / "config" / "keryx" / "work"
    assert found.database == str(tmp_path / "data" / "keryx" / "work" / "keryx.db")


def test_the_stronger_source_wins_and_is_the_origin(place: Place) -> None:
    assert place.origin("model") == ("none", "default")
    place.write(place.project_file, "# ours\nmodel: openai:project\n")
    assert place.origin("model") == ("openai:project", f"{place.project_file}:2")
    place.write(place.user_file, "model: openai:user\n")
    assert place.origin("model") == ("openai:user", f"{place.user_file}:1")
    place.write(place.secrets_file, "\nKERYX_MODEL=openai:secrets\n")
    assert place.origin("model") == ("openai:secrets", f"{place.secrets_file}:2")
    assert place.origin("model", KERYX_MODEL="openai:env") == ("openai:env", "KERYX_MODEL")
    assert place.origin("model", KERYX_MODEL="") == ("openai:secrets", f"{place.secrets_file}:2")
    assert place.load().project_file == place.project_file


def test_models_are_chosen_by_platform_with_fallbacks(place: Place) -> None:
    text = """\
model: openai:gpt-5
models:
  on: {telegram: "ollama:qwen3", matrix: none}
  fallbacks: [anthropic:claude, openai:gpt-5]
  timeout_seconds: 30
"""
    place.write(place.user_file, text)
    found = place.load()
    choice = model_choice(found.values)
    assert (choice.model, choice.by_platform) == ("openai:gpt-5", {"telegram": "ollama:qwen3"})
    assert choice.fallbacks == ("anthropic:claude", "openai:gpt-5")
    assert access_of(found).timeout_seconds == 30
    assert model_choice(place.load(KERYX_MODELS_FALLBACKS="none").values).fallbacks == ()
    for wrong in ("gpt-5", ":gpt-5", "openai:"):
        with pytest.raises(InvalidValue, match="names no model; write it as provider:name"):
            place.load(KERYX_MODEL=wrong)


def test_titles_are_generated_unless_switched_off(place: Place) -> None:
    assert place.load().settings.titles is True
    assert place.load(KERYX_MODELS_TITLES="no").settings.titles is False


def test_user_ids_are_hashed_only_if_configured(place: Place) -> None:
    assert place.load().values.of(HASH_USER_IDS) is False
    place.write(place.user_file, "prompt:\n  hash_user_ids: true\n")
    found = place.load(KERYX_PROMPT_ID_SALT="pepper")
    assert (found.values.of(HASH_USER_IDS), found.values.of(ID_SALT)) == (True, "pepper")
    assert "pepper" not in repr(found)
    assert place.origin("prompt.id_salt", KERYX_PROMPT_ID_SALT="pepper")[0] == "set"


def test_the_owner_s_prices_are_read_by_the_names_of_models(place: Place) -> None:
    text = """\
models:
  prices:
    openai:gpt-4.1: [2, 0.5, 8]
    ollama:qwen3: 0, 0
    anthropic:claude: none
"""
    place.write(place.user_file, text)
    found = place.load()
    assert access_of(found).prices == {
        "openai:gpt-4.1": Price(input=2_000_000, cached=500_000, output=8_000_000),
        "ollama:qwen3": Price(input=0, cached=0, output=0),
    }
    shown = {row.name: row.value for row in found.rows if row.name.startswith("models.prices")}
    assert shown == {
        "models.prices.openai:gpt-4.1": "2, 0.5, 8",
        "models.prices.ollama:qwen3": "0, 0, 0",
        "models.prices.anthropic:claude": "none",
    }
    place.write(place.user_file, "models:\n  prices:\n    openai:gpt-5: cheap\n")
    with pytest.raises(
        InvalidValue, match=r"config.yaml:3: models.prices.openai:gpt-5: write what a million"
    ):
        place.load()


def test_the_providers_own_variables_are_read_and_never_shown(place: Place) -> None:
    place.write(place.secrets_file, "OPENAI_API_KEY='sk-file'\nexport GROQ_API_KEY=gsk # mine\nPATH=/x\n")
    found = place.load(
        OPENAI_API_KEY="sk-env", OLLAMA_BASE_URL="http://o/v1", KERYX_API_KEY="x", EMPTY_API_KEY=""
    )
    assert access_of(found).variables == {
        "OPENAI_API_KEY": "sk-env",
        "GROQ_API_KEY": "gsk",
        "OLLAMA_BASE_URL": "http://o/v1",
    }
    assert "sk-" not in repr(found)
    assert "sk-" not in repr(access_of(found))


def test_every_value_of_a_file_is_read(place: Place) -> None:
    place.write(
        place.user_file,
        """\
database: kept/here.db
model: openai:gpt-5
timezone: Europe/Rome
workspace: ~/work
welcome: |
  Hello,
  you.
scope: {dm: person, group: user, thread: user}
reset:
  mode: both
  idle_minutes: 90
  at_hour: 0
  on:
    telegram: {mode: none}
    dm: {at_hour: 5}
    telegram:group: {mode: idle, idle_minutes: 10}
busy:
  mode: collect
  on:
    discord: steer
    matrix:!abc:example.org: interrupt
pairing: [telegram, discord, telegram]
toolsets:
  guest: state
  owner: none
  telegram:owner: [all, terminal]
personalities:
  pirate: Speak like one.
  plain: none
turns_max: 8
log: {level: debug, format: json}
platforms:
  webhook: {enabled: yes, host: "::1", port: "0", callback: "https://example.org/in"}
""",
    )
    found = place.load(KERYX_PLATFORMS_WEBHOOK_SECRET="whsec_x")

    assert found.database == str(place.home / "main" / "kept" / "here.db")
    assert found.values.of(MODEL) == "openai:gpt-5"
    assert found.workspace == Path.home() / "work"
    assert webhook_in(found) == (True, "::1", 0, "https://example.org/in", "whsec_x")
    assert (found.turns_max, found.log.level, found.log.format) == (8, "debug", "json")
    settings = found.settings
    assert settings.welcome == "Hello,\nyou.\n"
    assert (settings.scope.dm, settings.scope.group, settings.scope.thread) == ("person", "user", "user")
    assert settings.pairing_platforms == {"telegram", "discord"}
    assert settings.toolsets == ToolsetSettings(
        by_role={"guest": frozenset({"state"}), "owner": frozenset()},
        by_platform_and_role={("telegram", "owner"): frozenset({"all", "terminal"})},
    )
    assert settings.personalities == {"pirate": Personality(name="pirate", text="Speak like one.")}
    assert settings.busy.mode_for(Source(platform="discord", chat_id="1", chat_type="dm")) == "steer"
    room = Source(platform="matrix", chat_id="!abc:example.org", chat_type="group")
    assert settings.busy.mode_for(room) == "interrupt"
    assert settings.busy.default == "collect"


def test_a_reset_policy_takes_missing_values_from_the_default(place: Place) -> None:
    place.write(
        place.user_file,
        """\
timezone: Asia/Tokyo
reset:
  mode: daily
  at_hour: 0
  on:
    telegram: {mode: none}
    dm: {at_hour: 5}
    telegram:group: {mode: idle, idle_minutes: 10}
""",
    )
    reset = place.load().settings.reset

    assert reset.default == ResetPolicy(mode="daily", at_hour=0, zone="Asia/Tokyo")
    assert reset.resolve("telegram", "dm").mode == "none"
    assert reset.resolve("signal", "dm") == ResetPolicy(mode="daily", at_hour=5, zone="Asia/Tokyo")
    assert reset.resolve("telegram", "group") == ResetPolicy(
        mode="idle", idle_minutes=10, at_hour=0, zone="Asia/Tokyo"
    )


def test_variables_set_settings_with_fixed_names(place: Place) -> None:
    found = place.load(
        KERYX_SCOPE_DM="platform",
        KERYX_PAIRING="telegram, signal,",
        KERYX_WELCOME="none",
        KERYX_DATABASE="here.db",
        KERYX_PLATFORMS_WEBHOOK_ENABLED="off",
        KERYX_SESSION_ID="20260101_000000_00000000",
        KERYX_SERVICE_HOST="10.0.0.1",
    )
    assert found.settings.scope.dm == "platform"
    assert found.settings.pairing_platforms == {"telegram", "signal"}
    assert found.settings.welcome is None
    assert found.database == str(place.cwd / "here.db")


def test_profiles_share_no_folder_and_no_setting(place: Place) -> None:
    place.write(place.user_file, "model: openai:main\n")
    place.write(place.secrets_file, "KERYX_PLATFORMS_WEBHOOK_SECRET=x\n")

    main, work = place.load(), place.load(KERYX_PROFILE="work")

    assert (main.values.of(MODEL), work.values.of(MODEL)) == ("openai:main", None)
    assert (main.values.of(SECRET), work.values.of(SECRET)) == ("x", None)
    assert (work.profile, work.settings.profile) == ("work", "work")
    folders = [(found.config_dir, found.data_dir, found.database, found.output_dir) for found in (main, work)]
    assert not set(folders[0]) & set(folders[1])


@pytest.mark.parametrize("profile", ["../main", "Main", "a b", "x" * 33])
def test_an_invalid_profile_name_is_refused(place: Place, profile: str) -> None:
    [problem] = place.problems(KERYX_PROFILE=profile)
    assert problem.startswith("KERYX_PROFILE: the profile name ")


def test_all_problems_of_all_sources_are_reported_at_once(place: Place) -> None:
    place.write(place.project_file, "timezone: Europe/Rom\nscop: {}\n")
    place.write(place.user_file, "scope:\n  dm: chats\n  grup: chat\nturns_max: many\n")
    place.write(
        place.secrets_file, "KERYX_PLATFORMS_WEBHOOK_SECRET\nKERYX_FOO=1\nKERYX_HOME=/tmp\nKERYX_PROFILE=x\n"
    )

    said = place.problems(KERYX_LOG_LEVEL="loud", KERYX_MODLE="x", KERYX_RESET_ON_TELEGRAM_MODE="idle")

    project, user, env = place.project_file, place.user_file, place.secrets_file
    assert said[0].startswith(
        f"{project}:1: timezone: time zone 'Europe/Rom' is not known: did you mean Europe/Rome"
    )
    assert said[1:] == [
        f"{project}:2: there is no setting 'scop'; did you mean scope?",
        f"{user}:2: scope.dm: 'chats' is not known; use one of chat, platform, person",
        f"{user}:3: there is no setting 'scope.grup'; did you mean scope.group?",
        f"{user}:4: turns_max: 'many' is not valid; write a whole number from 1 to 10000",
        f"{env}:1: this is not a variable; write NAME=value",
        f"{env}:2: there is no setting KERYX_FOO; remove the line",
        f"{env}:3: KERYX_HOME determines where this file is; set it in the environment",
        f"{env}:4: profile: this cannot be set in a file; set the environment variable KERYX_PROFILE",
        "KERYX_LOG_LEVEL: log.level: 'loud' is not known; use one of debug, info, warning, error",
        "KERYX_MODLE: there is no setting KERYX_MODLE; did you mean KERYX_MODEL?",
        f"KERYX_RESET_ON_TELEGRAM_MODE: no variable can set reset.on.<where>.mode; write it into {user}",
    ]


WRONG_FILES = {
    "a list": ("- a\n", ":1: the file must contain settings by name: profile, database"),
    "a word": ("hello\n", ":1: the file must contain settings by name"),
    "no YAML": ("model: a\nscope: [\n", ":3: this is not YAML: "),
    "two documents": ("model: a\n---\nmodel: b\n", ":2: this is not YAML: "),
    "a tab": ("scope:\n\tdm: chat\n", ":2: this is not YAML: "),
    "a control character": ("model: \x01\n", ": this is not YAML"),
    "too deep": ("[" * 1000, "this is not YAML"),
    "twice": ("model: openai:b\nturns_max: 2\nmodel: google:c\n", ":3: model is also in line 1; keep one"),
    "a key that is none": ("? [a]\n: b\n", ":1: a name is expected before the colon"),
    "a section with a value": (
        "model: openai:b\nscope: chat\n",
        ":2: scope must contain settings by name: dm, group, thread",
    ),
    "a value with a section": ("model: {a: b}\n", ":1: model: this is a list or a mapping; write one value"),
    "a list for a text": ("model: [a]\n", ":1: model: this is a list; write one text"),
    "nothing for a number": (
        "turns_max:\n",
        ":1: turns_max: the value is empty; write a value, or remove the line",
    ),
    "dots": (
        "scope.dm: chat\n",
        ":1: there is no setting 'scope.dm'; write dm on a line of its own, indented under",
    ),
    "the wrong level": (
        "idle_minutes: 3\n",
        ":1: there is no setting 'idle_minutes'; did you mean reset.idle_minutes?",
    ),
    "nothing like it": (
        "scope:\n  xyz: 3\n",
        ":2: there is no setting 'scope.xyz'; the settings here are dm, group, thread",
    ),
    "a slip in the depth": (
        "reset:\n  on:\n    dm:\n      mod: idle\n",
        ":4: there is no setting 'reset.on.dm.mod'; did you mean reset.on.dm.mode?",
    ),
    "a secret": (
        "platforms:\n  webhook:\n    secret: x\n",
        ":3: platforms.webhook.secret: this is a secret and does not belong here; write",
    ),
    "a password": (
        "database: postgresql://me:pw@h/d\n",
        ":1: database: this contains a password and does not belong here;",
    ),
    "a profile": (
        "profile: x\n",
        ":1: profile: this cannot be set in a file; set the environment variable KERYX_PROFILE",
    ),
    "another store": (
        "database: mysql://h/d\n",
        ":1: database: this is not a store; write a path, sqlite:///path or",
    ),
    "a callback": (
        "platforms: {webhook: {callback: 'ftp://h'}}\n",
        ":1: platforms.webhook.callback: this is not a web address; write http",
    ),
    "its port": (
        "platforms: {webhook: {callback: 'http://h:x'}}\n",
        ":1: platforms.webhook.callback: this is not a web address; write http",
    ),
    "a switch": (
        "platforms: {webhook: {enabled: maybe}}\n",
        ":1: platforms.webhook.enabled: 'maybe' is not valid; write true or false",
    ),
    "a chat type": ("reset: {on: {'telegram:pm': {mode: idle}}}\n", "chat_type 'pm': use one of dm, group"),
    "a platform": ("busy: {on: {Telegram: steer}}\n", "platform 'Telegram': use at most 32 lower-case"),
    "a platform that is none": (
        "busy: {on: {webhok: steer}}\n",
        "there is no platform 'webhok'; did you mean webhook?",
    ),
    "a platform in a list": ("pairing: [telegram, webhok]\n", "did you mean webhook?"),
    "a platform to start over on": ("reset: {on: {grop: {mode: idle}}}\n", "did you mean group?"),
    "a platform with a model": ("models: {on: {telegam: 'openai:a'}}\n", "did you mean telegram?"),
    "a platform like no other": (
        "toolsets: {'irc:guest': all}\n",
        "there is no platform 'irc'; use one of discord, local, matrix, ",
    ),
    "no chat": ("busy: {on: {'telegram:': steer}}\n", "'telegram:' names no chat"),
    "a role": ("toolsets: {boss: all}\n", "role 'boss'"),
    "a platform of a role": ("toolsets: {'Telegram:owner': all}\n", "platform 'Telegram'"),
    "a set of tools": ("toolsets: {owner: [all, Shell]}\n", "toolset 'Shell': use a letter"),
    "two words": ("personalities: {'a b': text}\n", "the personality's name 'a b' must be one word"),
    "an escape": ('model: "\\0"\n', ":1: model: the text contains control characters; remove them"),
}


@pytest.mark.parametrize(("text", "sentence"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_a_problem_of_a_file_is_reported_with_its_line(place: Place, text: str, sentence: str) -> None:
    place.write(place.user_file, text)
    [problem] = place.problems()
    assert problem.startswith(f"{place.user_file}:")
    assert sentence in problem
    assert "pw" not in problem


def test_a_file_may_be_empty_or_have_empty_sections(place: Place) -> None:
    place.write(place.project_file, "")
    place.write(place.user_file, "# later\nscope:\nmodel:\npairing:\n")
    assert place.load().values.of(MODEL) is None
    assert place.load().settings.pairing_platforms == frozenset()


def test_yaml_aliases_cannot_cause_an_endless_loop(place: Place) -> None:
    place.write(place.user_file, "reset: &all\n  mode: idle\n  on:\n    telegram: *all\n")
    [problem] = place.problems()
    assert problem.startswith(f"{place.user_file}:3: there is no setting 'reset.on.telegram.on'; ")


def test_unreadable_files_are_reported(place: Place) -> None:
    place.user_file.mkdir(parents=True)
    place.secrets_file.mkdir(parents=True)
    assert place.problems() == [
        f"{place.user_file}: cannot be read: Is a directory",
        f"{place.secrets_file}: cannot be read: Is a directory",
    ]


def test_files_in_another_encoding_are_reported(place: Place) -> None:
    for path in (place.user_file, place.secrets_file):
        place.write(path, "")
        path.write_bytes(b"model: a\nwelcome: \xff\n")
    assert place.problems() == [
        f"{place.user_file}:2: this is not UTF-8; save the file in that encoding",
        f"{place.secrets_file}:2: this is not UTF-8; save the file in that encoding",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "database: x.db",
        "pairing: [telegram]",
        "toolsets: {guest: all}",
        "platforms: {webhook: {host: 0.0.0.0}}",
        "tools: {fetch: {private: true}}",
    ],
)
def test_a_project_cannot_redirect_conversations(place: Place, line: str) -> None:
    place.write(place.project_file, line + "\n")
    [problem] = place.problems()
    assert problem.startswith(f"{place.project_file}:1: ")
    assert problem.endswith(f"a project cannot set this; write it into {place.user_file}")


def test_an_unreadable_folder_has_no_project_file(place: Place, tmp_path: Path) -> None:
    too_long = tmp_path / ("x" * 300)
    assert load_config(place.environ, too_long).project_file is None


def test_a_workspace_starts_at_the_folder_of_its_file(place: Place) -> None:
    place.write(place.project_file, "workspace: here\n")
    assert place.load().workspace == place.project / "here"


@pytest.mark.parametrize("path", ["..", "/", "~/x", "link"])
def test_a_project_s_workspace_must_be_inside_the_project(place: Place, path: str) -> None:
    """Otherwise the author of the project could let tools read every file."""
    place.write(place.project_file, f"workspace: {path}\n")
    (place.project / "link").symlink_to("/")
    [problem] = place.problems()
    assert problem == (
        f"{place.project_file}:1: workspace: a project's path must be inside the project; "
        f"write any other path into {place.user_file}"
    )
    place.write(place.project_file, "workspace: none\n")
    assert place.load().workspace is None


def test_only_the_owner_s_file_sets_what_tools_may_access(place: Place) -> None:
    values = place.load().values
    assert (values.of(FETCH_PRIVATE), values.of(FETCH_ALLOW)) == (False, ())
    place.write(
        place.user_file,
        "tools:\n  fetch: {private: true, allow: [NAS.local, 10.0.0.1]}\n  terminal: {variables: [MY_TOKEN]}\n",
    )
    found = place.load(MY_TOKEN="m", YOUR_TOKEN="y")
    assert (found.values.of(FETCH_PRIVATE), found.values.of(FETCH_ALLOW)) == (True, ("nas.local", "10.0.0.1"))
    assert {"MY_TOKEN"} == {"MY_TOKEN", "YOUR_TOKEN"} & set(visible_to_commands(found))
    with pytest.raises(InvalidValue, match="'http://a' is no host"):
        place.load(KERYX_TOOLS_FETCH_ALLOW="http://a")
    with pytest.raises(InvalidValue, match="'A=1' is no variable"):
        place.load(KERYX_TOOLS_TERMINAL_VARIABLES="A=1")
    assert place.load(KERYX_TOOLS_FETCH_ALLOW="none").values.of(FETCH_ALLOW) == ()


def test_commands_see_no_variable_that_looks_like_a_secret(place: Place) -> None:
    secrets = (
        "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "GH_PAT", "PGPASSWORD", "MY_PASSPHRASE",
        "GOOGLE_APPLICATION_CREDENTIALS", "API_KEYS", "npm_config_token", "KERYX_PLATFORMS_WEBHOOK_SECRET",
    )  # fmt: skip
    plain = {
        "PATH": "/bin",
        "HOME": "/home/ana",
        "SSH_AUTH_SOCK": "/s",
        "KEYBOARD": "de",
        "MONKEY": "x",
        "PATTERN": "x",
    }
    given = dict.fromkeys(secrets, "whsec_x") | plain
    found = place.load(
        **given, KERYX_MODEL="openai:b", DATABASE_URL="postgres://ana:tea@h/x", HOMEPAGE="http://h/a:b@c"
    )
    assert visible_to_commands(found) == plain | place.environ | {"HOMEPAGE": "http://h/a:b@c"}
    assert "whsec" not in repr(found)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_secrets_that_other_users_can_read_are_refused(place: Place, mode: int) -> None:
    place.write(place.secrets_file, "KERYX_PLATFORMS_WEBHOOK_SECRET=x\n", mode=mode)
    assert place.problems() == [
        (
            f"{place.secrets_file}: other users can read these secrets (mode {mode:04o}); "
            f"run: chmod 600 {place.secrets_file}"
        )
    ]


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        ("KERYX_PLATFORMS_WEBHOOK_SECRET=plain", "plain"),
        ("export KERYX_PLATFORMS_WEBHOOK_SECRET = spaced ", "spaced"),
        ("KERYX_PLATFORMS_WEBHOOK_SECRET='a # b'  # why", "a # b"),
        ('KERYX_PLATFORMS_WEBHOOK_SECRET="a=b"', "a=b"),
        ("KERYX_PLATFORMS_WEBHOOK_SECRET=a#b # why", "a#b"),
        ("KERYX_PLATFORMS_WEBHOOK_SECRET=", None),
        ("# KERYX_PLATFORMS_WEBHOOK_SECRET=x", None),
        ("OPENAI_API_KEY=not ours", None),
    ],
)
def test_secrets_are_read_in_the_syntax_of_shells(place: Place, line: str, secret: str | None) -> None:
    place.write(place.secrets_file, f"\n{line}\n", mode=0o400)
    assert place.load().values.of(SECRET) == secret


def test_secrets_are_never_shown(place: Place) -> None:
    place.write(place.secrets_file, "KERYX_PLATFORMS_WEBHOOK_SECRET=tell-nobody\n")
    assert place.origin("platforms.webhook.secret") == ("set", f"{place.secrets_file}:1")

    addresses = ["postgresql://me:tell-nobody@h/d", "postgresql://me@h/d?password=tell-nobody&x=1"]
    for address in addresses:
        found = place.load(KERYX_DATABASE=address)
        assert found.database == address
        assert "tell-nobody" not in repr(found)
        assert "tell-nobody" not in str(found.rows)
    assert place.origin("database", KERYX_DATABASE=addresses[0])[0] == "postgresql://me:***@h/d"
    assert place.origin("database", KERYX_DATABASE=addresses[1])[0] == "postgresql://me@h/d?password=***&x=1"
    assert place.origin("platforms.webhook.secret", KERYX_PROFILE="work") == ("not set", "default")


def test_a_value_is_changed_in_place_and_comments_are_kept(place: Place) -> None:
    place.write(
        place.user_file,
        """\
# My settings.
model: 'openai:b'   # the cheap one

reset:
  # at night
  mode: daily
pairing:
  - telegram  # friends
""",
        mode=0o640,
    )
    place.set("model", "google:d")
    place.set("reset.at_hour", "5")
    place.set("reset.on.telegram:dm.mode", "none")
    place.set("busy.on.matrix:!a.b:example.org", "steer")
    place.set("personalities.poet", "In verse.\nAlways.")
    found = place.set("pairing", "telegram,signal")

    assert (
        place.user_file.read_text()
        == """\
# My settings.
model: 'google:d'   # the cheap one

reset:
  # at night
  mode: daily
  at_hour: 5
  on:
    telegram:dm:
      mode: none
pairing:
  - telegram
  - signal
busy:
  on:
    matrix:!a.b:example.org: steer
personalities:
  poet: |-
    In verse.
    Always.
"""
    )
    assert place.user_file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in place.user_file.parent.iterdir()] == ["config.yaml"]
    assert found.rows == place.load().rows
    assert found.settings.reset.resolve("telegram", "dm").mode == "none"


def test_the_first_value_creates_a_file_that_only_its_owner_can_read(place: Place) -> None:
    place.set("workspace", "here")
    assert place.user_file.read_text() == f"workspace: {place.cwd / 'here'}\n"
    assert place.user_file.stat().st_mode & 0o777 == 0o600
    place.set("workspace", "none")
    assert place.load().workspace is None


def test_a_file_of_comments_keeps_them(place: Place) -> None:
    place.write(place.user_file, "# one\n# two")
    place.set("turns_max", "3")
    assert place.user_file.read_text() == "# one\n# two\nturns_max: 3\n"


def test_a_wrong_value_can_be_corrected_with_set(place: Place) -> None:
    place.write(place.user_file, "turns_max: many\n")
    assert place.set("turns_max", "3").turns_max == 3


REFUSED = {
    "unknown": ("scope.dn", "chat", "there is no setting 'scope.dn'; did you mean scope.dm?"),
    "unlike anything": ("qqq", "chat", "there is no setting 'qqq'; the settings here are profile, database"),
    "no name": ("personalities.", "x", "there is no setting 'personalities.'"),
    "wrong": ("scope.dm", "chats", "scope.dm: 'chats' is not known; use one of chat, platform, person"),
    "a wrong place": ("reset.on.signal:b.mode", "idle", "chat_type 'b': use one of"),
    "a secret": (
        "platforms.webhook.secret",
        "x",
        "platforms.webhook.secret: this is a secret; write KERYX_PLATFORMS_WEBHOOK_SECRET=… into ",
    ),
    "a password": ("database", "postgresql://a:pw@h/d", "database: this contains a password"),
    "the profile": (
        "profile",
        "x",
        "profile: this cannot be set in a file; set the environment variable KERYX_PROFILE",
    ),
}


@pytest.mark.parametrize(("name", "value", "sentence"), REFUSED.values(), ids=REFUSED)
def test_a_value_that_would_not_load_is_not_written(
    place: Place, name: str, value: str, sentence: str
) -> None:
    place.write(place.user_file, "model: openai:b\n")
    with pytest.raises(InvalidValue, match=re.escape(sentence)):
        place.set(name, value)
    assert place.user_file.read_text() == "model: openai:b\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("scope: [\n", ":2: this is not YAML"),
        ("scope: chat\n", "scope must contain settings by name; correct it first"),
        ("- a\n", "the file must contain settings by name; correct it first"),
        ("unknown: 1\n", ":1: there is no setting 'unknown'"),
        ("welcome: 2026-99-99\n", "cannot be changed in place; edit it"),
    ],
)
def test_a_broken_file_is_not_changed(place: Place, text: str, sentence: str) -> None:
    place.write(place.user_file, text)
    with pytest.raises(InvalidValue, match=re.escape(sentence)):
        place.set("scope.dm", "platform")
    assert place.user_file.read_text() == text


def test_a_failed_write_changes_nothing_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(InvalidValue, match=r"cannot be written: .*nothing was changed"):
        replace_file(tmp_path / "there", "x")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_link_to_the_file_stays_a_link(place: Place, tmp_path: Path) -> None:
    place.write(tmp_path / "dotfiles.yaml", "model: openai:b\n")
    place.user_file.parent.mkdir(parents=True)
    place.user_file.symlink_to(tmp_path / "dotfiles.yaml")
    place.set("model", "google:c")
    assert place.user_file.is_symlink()
    assert (tmp_path / "dotfiles.yaml").read_text() == "model: google:c\n"


def test_the_process_s_own_environment_and_folder_are_the_default(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERYX_HOME", str(place.home))
    monkeypatch.chdir(place.cwd)
    place.write(place.project_file, "model: openai:b\n")
    assert load_config().values.of(MODEL) == "openai:b"
    assert find_folders().user_file == place.user_file


ROW = re.compile(r"^\| `([^`]+)` \| (\S+) \| (.+?) \| (.+) \|$", re.MULTILINE)


def test_the_reference_matches_the_table(place: Place) -> None:
    defaults = {row.name: row.value for row in explain_all(place.environ, place.cwd)}
    defaults["database"] = "keryx.db"

    def expected(setting: Setting[object]) -> tuple[str, str, str, str]:
        default = defaults.get(setting.name)
        variable = f"`{setting.variable}`" if setting.variable else "–"
        return setting.name, variable, f"`{default}`" if default else "–", setting.help

    table = Table()
    table.load_all()
    text = (ROOT / "docs" / "reference" / "config.md").read_text(encoding="utf-8")
    assert ROW.findall(text) == [expected(setting) for setting in table.rows]


def test_every_value_that_is_shown_can_be_set(place: Place) -> None:
    def all_shown() -> dict[str, str]:
        rows = explain_all(place.environ, place.cwd)
        return {row.name: row.value for row in rows if row.origin != "not loaded"}

    shown = all_shown()
    for name in shown.keys() - {"profile", "platforms.webhook.secret", "prompt.id_salt"}:
        place.set(name, shown[name])
    assert all_shown() == shown


def test_an_old_name_of_a_platform_s_setting_is_refused_with_the_new_one(place: Place) -> None:
    place.write(place.user_file, "webhook:\n  port: 1\n")
    place.write(place.secrets_file, "KERYX_WEBHOOK_SECRET=x\n")
    assert place.problems(KERYX_WEBHOOK_PORT="1", KERYX_WEBHOOK_SERVICE_HOST="10.0.0.1") == [
        f"{place.user_file}:1: there is no setting 'webhook'; write platforms.webhook",
        f"{place.secrets_file}:1: there is no setting KERYX_WEBHOOK_SECRET; write KERYX_PLATFORMS_WEBHOOK_SECRET",
        "KERYX_WEBHOOK_PORT: there is no setting KERYX_WEBHOOK_PORT; write KERYX_PLATFORMS_WEBHOOK_PORT",
    ]
    with pytest.raises(InvalidValue, match=r"no setting 'webhook.port'; write platforms.webhook.port"):
        place.set("webhook.port", "1")


@pytest.mark.parametrize("setting", ["enabled: true", "port: 1", "secret: x"])
def test_a_project_cannot_set_any_setting_of_a_platform(place: Place, setting: str) -> None:
    place.write(place.project_file, f"platforms: {{webhook: {{{setting}}}}}\n")
    [problem] = place.problems()
    assert problem.startswith(f"{place.project_file}:1: platforms.webhook.")
    assert "a project cannot set this" in problem


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("platforms: {webhok: {port: 1}}", "no setting 'platforms.webhok'; did you mean platforms.webhook?"),
        ("platforms: {webhook: {prot: 1}}", "did you mean platforms.webhook.port?"),
        ("platforms: {telegram: {token: x}}", "package declared cannot be loaded: ModuleNotFoundError"),
        ("agent: {comand: x}", "no setting 'agent.comand'; did you mean agent.command?"),
    ],
)
def test_a_missing_or_broken_plug_in_is_reported(place: Place, text: str, sentence: str) -> None:
    place.write(place.user_file, text)
    [problem] = place.problems()
    assert problem.startswith(f"{place.user_file}:1: ")
    assert sentence in problem


def test_a_variable_of_an_unknown_platform_is_refused(place: Place) -> None:
    assert place.problems(KERYX_PLATFORMS_WEBHOOK_PROT="1", KERYX_PLATFORMS_IRC_PORT="1") == [
        (
            "KERYX_PLATFORMS_IRC_PORT: there is no setting KERYX_PLATFORMS_IRC_PORT; the platforms are "
            "discord, local, matrix, signal, telegram, webhook"
        ),
        (
            "KERYX_PLATFORMS_WEBHOOK_PROT: there is no setting KERYX_PLATFORMS_WEBHOOK_PROT; did you mean "
            "KERYX_PLATFORMS_WEBHOOK_PORT?"
        ),
    ]


LAMP = """
from keryx.config.readers import whole
from keryx.config.setting import Setting
from keryx.tools.plugin import MadeTools, ToolPlugin

POWER = Setting(name="tools.lamp.power", read=whole(1, 9), default=1, help="How bright it is.")
PLUGIN = ToolPlugin(settings=(POWER,), make=lambda _: MadeTools())
"""
IMPORTED = """
import sys, keryx.config_load as c
found = c.load_config()
plugins = ("keryx.platforms.terminal", "keryx.platforms.webhook", "keryx.agents.acp", "keryx.agents.command", "lamp")
print(*(name for name in plugins if name in sys.modules))
print(*found.plugins.platforms, *found.plugins.agents, *found.plugins.tools)
"""


@pytest.mark.parametrize(
    ("text", "imported", "used"),
    [
        ("", "", "model files keryx mcp shell web"),
        ("tools: {fetch: {private: yes}}", "", "model files keryx mcp shell web"),
        ("tools: {lamp: {power: 3}}", "lamp", "model files keryx lamp mcp shell web"),
        (
            "agent: {command: cat, timeout_seconds: 3}",
            "keryx.agents.command",
            "model command files keryx mcp shell web",
        ),
        (
            "platforms: {webhook: {enabled: yes}}",
            "keryx.platforms.webhook",
            "webhook model files keryx mcp shell web",
        ),
    ],
)
def test_a_plug_in_is_imported_and_used_only_if_configured(
    place: Place, tmp_path: Path, *, text: str, imported: str, used: str
) -> None:
    site = declare(tmp_path / "lamp", "keryx.tools", lamp="lamp:PLUGIN")
    (tmp_path / "lamp" / "lamp.py").write_text(LAMP)
    place.write(place.user_file, text)
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), site]),
        "KERYX_TOOLS_FETCH_ALLOW": "none",
        **place.environ,
    }
    program = [sys.executable, "-c", IMPORTED]
    said = subprocess.run(program, env=environ, cwd=place.cwd, capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == [imported, used]


def test_every_installed_plug_in_is_shown_and_a_broken_one_with_the_reason(place: Place) -> None:
    rows = {row.name: row for row in explain_all(place.environ, place.cwd)}
    assert rows["platforms.webhook.port"].value == "8460"
    assert rows["agent.format"].value == "text"
    assert (rows["platforms.telegram"].origin, "nowhere" in rows["platforms.telegram"].value) == (
        "not loaded",
        True,
    )
    assert get_value("platforms.webhook.port", place.environ, place.cwd).value == "8460"


def test_a_setting_without_a_plug_in_s_name_is_found(place: Place) -> None:
    place.write(place.user_file, "agent: {format: jsonl}\n")
    assert place.origin("agent.format") == ("jsonl", f"{place.user_file}:1")
    assert place.origin("agent.timeout_seconds", KERYX_AGENT_TIMEOUT_SECONDS="5")[0] == "5"
    assert place.load().plugins.agent == "model"


def test_two_packages_with_one_name_are_refused(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = declare(tmp_path / "other", "keryx.platforms", webhook="nowhere:PLUGIN")
    (tmp_path / "other" / "declared-1.0.dist-info").rename(tmp_path / "other" / "rival-1.0.dist-info")
    monkeypatch.syspath_prepend(folder)
    place.write(place.user_file, "platforms: {webhook: {port: 1}}\n")
    [problem] = place.problems()
    assert "the packages rival and keryx provide the same plug-in; remove one" in problem
