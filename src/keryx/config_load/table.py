"""The one table of settings: collect the rows of the subjects and of the plug-ins, and find a row by its name.

The owner chooses the part of a name in angle brackets. A test compares the table with ``docs/reference/config.md``. A
plug-in's rows are added when a source or a command first names its section.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, Final, TypeAlias

from keryx.config import Explained
from keryx.config.setting import PREFIX, Setting, variable_of
from keryx.config_load import own_rows
from keryx.config_load.plugins import SECTIONS, InstalledPlugins, Section
from keryx.core.context import settings as context
from keryx.core.conversations import settings as conversations
from keryx.core.people import settings as people
from keryx.core.turns import settings as turns
from keryx.errors import InvalidValue
from keryx.values import dataclass

_ROWS: Final = (*own_rows.ROWS, *conversations.ROWS, *turns.ROWS, *people.ROWS, *context.ROWS)

Tree: TypeAlias = "dict[str, Tree | Setting[Any]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSetting:
    """A setting by its name in a source: the row, and the keys in a file with the owner's choice among them."""

    setting: Setting[Any]
    keys: tuple[str, ...]

    @property
    def choice(self) -> str | None:
        """The part that the owner chose, if the name has one."""
        pairs = zip(self.keys, self.setting.parts, strict=True)
        return next((key for key, part in pairs if part.startswith("<")), None)

    @property
    def name(self) -> str:
        """The whole name."""
        return ".".join(self.keys)


class Table:
    """The rows of the subjects and of the plug-ins that are loaded so far."""

    def __init__(self) -> None:
        self.plugins = InstalledPlugins()
        self.tree: Tree = {}
        """The rows by the keys in a file, level by level."""
        self._variables: dict[str, Setting[Any]] = {}
        self._loaded: dict[tuple[Section, str], tuple[Setting[Any], ...]] = {}
        self._add(_ROWS)
        for section, name in self.plugins.always_used():
            self.load(section, name)
        for section in SECTIONS:
            self._level(section)
        for name in self.plugins.names("platforms"):
            self._level("platforms", name)

    @property
    def rows(self) -> list[Setting[Any]]:
        """Every row, in the order of the reference."""
        ordered = sorted(self._loaded.items(), key=lambda item: (SECTIONS.index(item[0][0]), item[0][1]))
        return [*_ROWS, *(row for _, rows in ordered for row in rows)]

    def load(self, section: Section, name: str) -> None:
        """Add the rows of a plug-in; raise ``InvalidValue`` if it cannot be used."""
        if (section, name) not in self._loaded:
            rows = self.plugins.load(section, name).settings
            self._add(rows)
            self._loaded[section, name] = rows

    def load_all(self) -> list[Explained]:
        """Add the rows of every plug-in; return a row with the reason for each plug-in that cannot be used."""
        broken: list[Explained] = []
        for section in SECTIONS:
            for name in self.plugins.names(section):
                try:
                    self.load(section, name)
                except InvalidValue as error:
                    broken.append(Explained(f"{section}.{name}", str(error), "not loaded"))
        return broken

    def enter(self, above: tuple[str, ...], names: Iterable[str]) -> None:
        """Load the plug-ins whose settings may be among ``names`` below ``above``, or raise ``InvalidValue``."""
        section = next((each for each in SECTIONS if above == (each,)), None)
        if section is None:
            return
        known = self.plugins.names(section)
        for name in names:
            if name in known:
                self.load(section, name)
        if section != "platforms" and any(name not in self._level(section) for name in names):
            # A setting such as agent.format does not contain the name of its plug-in, so load all of them.
            for name in known:
                with suppress(InvalidValue):  # this plug-in was not named
                    self.load(section, name)

    def for_variable(self, variable: str) -> Setting[Any] | None:
        """Return the row that a variable sets, or None; raise ``InvalidValue`` for an unknown setting of a platform."""
        for section in SECTIONS:
            if variable not in self._variables and variable.startswith(f"{variable_of(section)}_"):
                prefixes = {name: variable_of(f"{section}.{name}") for name in self.plugins.names(section)}
                named = [name for name, prefix in prefixes.items() if f"{variable}_".startswith(f"{prefix}_")]
                self.enter((section,), named or ("",))
        found = self._variables.get(variable)
        if found is None:
            self._refuse_variable(variable)
        return found

    def named(self, name: str) -> NamedSetting:
        """Return the setting with this name, or raise ``InvalidValue`` with the nearest name.

        The owner's part may contain dots, as ids of chats do. It extends as far as the rest of the row's name allows.
        """
        first, *rest = name.split(".")
        self.enter((first,), rest[:1])
        rows = self.rows
        for setting in rows:
            before, bracket, after = setting.name.partition("<")
            after = after.partition(">")[2]
            if not bracket and name == setting.name:
                return NamedSetting(setting=setting, keys=tuple(setting.parts))
            choice = name[len(before) : len(name) - len(after)]
            if bracket and choice and name == before + choice + after:
                keys = tuple(choice if part.startswith("<") else part for part in setting.parts)
                return NamedSetting(setting=setting, keys=keys)
        below = [setting.name for setting in rows if setting.name.startswith(f"{name}.")]
        if below:
            raise InvalidValue(f"{name} is a group of settings: {', '.join(below)}")
        raise InvalidValue(f"there is no setting {name!r}; {self._hint(tuple(name.split('.')), {})}")

    def unknown_key(self, path: tuple[str, ...], here: Tree) -> str:
        """Return the message for an unknown key, with the setting that was probably meant at the level ``here``."""
        return f"there is no setting {'.'.join(path)!r}; {self._hint(path, here)}"

    def nearest_variable(self, variable: str) -> str | None:
        """Return the setting's variable with the most similar name, or None."""
        return next(iter(get_close_matches(variable, self._variables, n=1, cutoff=0.85)), None)

    def find_family(self, variable: str) -> Setting[Any] | None:
        """Return the row with a chosen part that the variable seems to set: no variable can set such a row."""
        for setting in self.rows:
            before, bracket, _ = setting.name.partition("<")
            if bracket and variable.startswith(variable_of(before)):
                return setting
        return None

    def _add(self, rows: Iterable[Setting[Any]]) -> None:
        for setting in rows:
            *above, leaf = setting.parts
            here = self._level(*above)
            if leaf in here:
                raise InvalidValue(f"two plug-ins provide the setting {setting.name}; remove one of them")
            here[leaf] = setting
            if setting.variable:
                self._variables[setting.variable] = setting

    def _level(self, *above: str) -> Tree:
        here = self.tree
        for part in above:
            below = here.setdefault(part, {})
            assert isinstance(below, dict), f"{'.'.join(above)} is a setting"
            here = below
        return here

    def _refuse_variable(self, variable: str) -> None:
        """Raise ``InvalidValue`` for an unknown setting of a platform, and for one without the section's name."""
        if variable.startswith(variable_of("platforms.")):
            near = self.nearest_variable(variable)
            hint = (
                f"did you mean {near}?"
                if near
                else f"the platforms are {', '.join(self._level('platforms'))}"
            )
            raise InvalidValue(f"there is no setting {variable}; {hint}")
        for name in self.plugins.names("platforms"):
            if variable.startswith(variable_of(f"{name}.")):
                self.load("platforms", name)
                new = variable_of(f"platforms.{variable.removeprefix(PREFIX)}")
                if new in self._variables:
                    raise InvalidValue(f"there is no setting {variable}; write {new}")

    def _hint(self, path: tuple[str, ...], here: Tree) -> str:
        name = ".".join(path)
        if path[0] in self.plugins.names("platforms"):
            return f"write platforms.{name}"
        if len(path) == 1 and any(name == setting.name for setting in self.rows):
            above, _, leaf = name.rpartition(".")
            return f"write {leaf} on a line of its own, indented under {above}"
        near = get_close_matches(path[-1].lower(), here, n=1)
        meant = ".".join((*path[:-1], near[0])) if near else next(self._meant(name), None)
        return f"did you mean {meant}?" if meant else f"the settings here are {', '.join(here or self.tree)}"

    def _meant(self, name: str) -> Iterator[str]:
        """Yield the settings that a name at the wrong level could mean, best first."""
        names = [setting.name for setting in self.rows]
        leaf = name.rpartition(".")[2]
        yield from get_close_matches(name, names, n=1, cutoff=0.75)
        yield from (known for known in names if known.rpartition(".")[2] == leaf)
