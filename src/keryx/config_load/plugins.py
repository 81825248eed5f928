"""Loads plug-ins: of each kind those that Keryx always uses, and any other once it is configured.

A plug-in is configured by a setting in its section of the table: ``platforms.<name>``, ``agent.<name>``,
``tools.<name>`` or ``backends.<name>``. Nothing of a plug-in is imported before.
"""

import importlib
from collections.abc import Collection, Mapping
from typing import Final, Literal, get_args

from keryx.agents.plugin import AgentPlugin
from keryx.backends.plugin import BackendPlugin
from keryx.config import DEFAULT_AGENT, DEFAULT_BACKEND, Plugin, Plugins
from keryx.config.values import Found, Values
from keryx.config_load.entry_points import OWN, EntryPoints
from keryx.errors import InvalidValue
from keryx.platforms.plugin import PlatformPlugin
from keryx.tools.plugin import ToolPlugin

Section = Literal["agent", "tools", "backends", "platforms"]
SECTIONS: Final[tuple[Section, ...]] = get_args(Section)
"""The parts of the table in which plug-ins have their settings, in the order of the reference."""
_GROUPS: Final[Mapping[Section, str]] = {
    "agent": "keryx.agents",
    "tools": "keryx.tools",
    "backends": "keryx.backends",
    "platforms": "keryx.platforms",
}
_KINDS: Final[Mapping[Section, type[Plugin]]] = {
    "agent": AgentPlugin,
    "tools": ToolPlugin,
    "backends": BackendPlugin,
    "platforms": PlatformPlugin,
}


class InstalledPlugins:
    """The plug-ins that are installed, and those of them that were loaded."""

    def __init__(self, entry_points: EntryPoints) -> None:
        self._entries = {section: entry_points.get(group, {}) for section, group in _GROUPS.items()}
        self.loaded: dict[tuple[Section, str], Plugin] = {}
        if DEFAULT_AGENT not in self._entries["agent"]:
            raise InvalidValue("Keryx's own plug-ins are not installed; install the package keryx again")

    def names(self, section: Section) -> Collection[str]:
        """Return the names of the installed plug-ins of a kind."""
        return sorted(self._entries[section])

    def always_used(self) -> list[tuple[Section, str]]:
        """Return the plug-ins that need no setting: the default agent and backend, and Keryx's own tools."""
        tools = [name for name, entries in self._entries["tools"].items() if entries[0].package == OWN]
        return [
            ("agent", DEFAULT_AGENT),
            *(("tools", name) for name in sorted(tools)),
            ("backends", DEFAULT_BACKEND),
        ]

    def load(self, section: Section, name: str) -> Plugin:
        """Return a plug-in, imported now at the latest; raise ``InvalidValue`` if it cannot be used."""
        plugin = self.loaded.get((section, name))
        if plugin is None:
            plugin = self.loaded[section, name] = self._import(section, name)
        return plugin

    def used(self, values: Values) -> Plugins:
        """Return the plug-ins that are always used or configured, which were loaded before."""
        of_tools = {name for section, name in self.always_used() if section == "tools"}
        agent = self._only("agent", values, otherwise=DEFAULT_AGENT)
        backend = self._only("backends", values, otherwise=DEFAULT_BACKEND)
        return Plugins(
            platforms={name: self.load("platforms", name) for name in self._configured("platforms", values)},
            agents={name: self.load("agent", name) for name in dict.fromkeys((DEFAULT_AGENT, agent))},
            agent=agent,
            tools={
                name: self.load("tools", name)
                for name in sorted(of_tools | self._configured("tools", values).keys())
            },
            backend=self.load("backends", backend),
        )

    def _configured(self, section: Section, values: Values) -> dict[str, Found]:
        """Return the plug-ins with a setting of their own that has a value, with the last one of these."""
        return {
            name: found
            for name in self.names(section)
            for found in values.under(f"{section}.{name}").values()
            if _is_set(found.value)
        }

    def _only(self, section: Section, values: Values, *, otherwise: str) -> str:
        configured = self._configured(section, values)
        if len(configured) > 1:
            first, second = list(configured)[:2]
            raise InvalidValue(
                f"{configured[second].origin}: {section}.{second}: {section}.{first} is set too; keep one of them"
            )
        return next(iter(configured), otherwise)

    def _import(self, section: Section, name: str) -> Plugin:
        entry, *others = self._entries[section][name]
        full_name = f"{section}.{name}"
        if others:
            raise InvalidValue(
                f"{full_name}: the packages {entry.package} and {others[0].package} both bring this plug-in; remove one"
            )
        try:
            plugin = getattr(importlib.import_module(entry.module), entry.attribute)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise InvalidValue(
                f"{full_name}: the plug-in of the package {entry.package} cannot be loaded: {reason}"
            ) from error
        if not isinstance(plugin, _KINDS[section]):
            raise InvalidValue(
                f"{full_name}: the package {entry.package} is made for another version of Keryx: "
                f"{entry.module}:{entry.attribute} is no {_KINDS[section].__name__}"
            )
        if section == "platforms":
            _check_names(full_name, plugin)
        return plugin


def _is_set(value: object) -> bool:
    return value is not None and value is not False and value != ()


def _check_names(full_name: str, plugin: Plugin) -> None:
    for setting in plugin.settings:
        if not setting.name.startswith(f"{full_name}."):
            raise InvalidValue(f"{full_name}: its setting {setting.name} must be called {full_name}.…")
