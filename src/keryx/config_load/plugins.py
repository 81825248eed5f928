"""Load the plug-ins that Keryx always uses, and the others that are configured.

A plug-in is configured by a setting in its section of the table: ``platforms.<name>``, ``agent.<name>``,
``tools.<name>`` or ``backends.<name>``. A plug-in that is not configured is not imported.
"""

import importlib
from collections.abc import Collection, Mapping
from typing import Final, Literal, get_args

from keryx.agents.plugin import AgentPlugin
from keryx.backends.plugin import BackendPlugin
from keryx.config import DEFAULT_AGENT, DEFAULT_BACKEND, Plugin, Plugins
from keryx.config.setting import Found, Values
from keryx.config_load.entry_points import OWN, installed_entry_points
from keryx.errors import InvalidValue
from keryx.platforms.plugin import PlatformPlugin
from keryx.tools.plugin import ToolPlugin

Section = Literal["agent", "tools", "backends", "platforms"]
SECTIONS: Final[tuple[Section, ...]] = get_args(Section)
"""The parts of the table with the settings of plug-ins, in the order of the reference."""
_KINDS: Final[Mapping[Section, tuple[str, type[Plugin]]]] = {
    "agent": ("keryx.agents", AgentPlugin),
    "tools": ("keryx.tools", ToolPlugin),
    "backends": ("keryx.backends", BackendPlugin),
    "platforms": ("keryx.platforms", PlatformPlugin),
}
"""The group of entry points and the type of each kind of plug-in."""


class InstalledPlugins:
    """The installed plug-ins."""

    def __init__(self) -> None:
        entry_points = installed_entry_points()
        self._entries = {section: entry_points.get(group, {}) for section, (group, _) in _KINDS.items()}
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

    def used(self, values: Values) -> Plugins:
        """Return the plug-ins that are always used or configured."""
        own_tools = {name for section, name in self.always_used() if section == "tools"}
        agent = self._only("agent", values, otherwise=DEFAULT_AGENT)
        backend = self._only("backends", values, otherwise=DEFAULT_BACKEND)
        return Plugins(
            platforms={name: self.load("platforms", name) for name in self._configured("platforms", values)},
            agents={name: self.load("agent", name) for name in dict.fromkeys((DEFAULT_AGENT, agent))},
            agent=agent,
            tools={
                name: self.load("tools", name)
                for name in sorted(own_tools | self._configured("tools", values).keys())
            },
            backend=self.load("backends", backend),
        )

    def _configured(self, section: Section, values: Values) -> dict[str, Found]:
        """Return the plug-ins with a setting that has a value, each with the last one of these settings."""
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
                f"{configured[second].origin}: {section}.{second}: {section}.{first} is also set; keep one of them"
            )
        return next(iter(configured), otherwise)

    def load(self, section: Section, name: str) -> Plugin:
        """Import a plug-in and return it; raise ``InvalidValue`` if it cannot be used."""
        entry, *others = self._entries[section][name]
        full_name = f"{section}.{name}"
        if others:
            packages = f"{entry.package} and {others[0].package}"
            raise InvalidValue(f"{full_name}: the packages {packages} provide the same plug-in; remove one")
        try:
            plugin = getattr(importlib.import_module(entry.module), entry.attribute)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise InvalidValue(
                f"{full_name}: the plug-in of the package {entry.package} cannot be loaded: {reason}"
            ) from error
        _, kind = _KINDS[section]
        if not isinstance(plugin, kind):
            raise InvalidValue(
                f"{full_name}: the package {entry.package} is made for another version of Keryx: "
                f"{entry.module}:{entry.attribute} is not a {kind.__name__}"
            )
        for setting in plugin.settings if section == "platforms" else ():
            if not setting.name.startswith(f"{full_name}."):
                raise InvalidValue(f"{full_name}: its setting {setting.name} must be named {full_name}.…")
        return plugin


def _is_set(value: object) -> bool:
    return value is not None and value is not False and value != ()
