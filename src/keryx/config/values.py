"""The values that were found for settings, each with where it came from."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, cast

from keryx.config.readers import T
from keryx.config.setting import Setting
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One value that counts."""

    setting: Setting[Any]
    chosen: str | None
    """The part in angle brackets."""
    value: object
    origin: str
    """A file and its line, or a variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What was found, by name; what was not found has its default."""

    found: Mapping[str, Found] = field(repr=False)

    def of(self, setting: Setting[T], chosen: str | None = None) -> T:
        """Return the value of a setting, or its default."""
        found = self.found.get(setting.named(chosen))
        return setting.default if found is None else cast(T, found.value)

    def origin_of(self, setting: Setting[Any]) -> str:
        """Return where the value of a setting comes from."""
        found = self.found.get(setting.name)
        return "default" if found is None else found.origin

    def chosen(self, setting: Setting[Any]) -> list[tuple[str, Found]]:
        """Return the full names and values of a setting with a chosen part, in the order of the names."""
        return sorted(
            ((name, found) for name, found in self.found.items() if found.setting is setting),
            key=lambda pair: pair[0],
        )

    def by_choice(self, setting: Setting[T]) -> dict[str, T]:
        """Return the values of a setting with a chosen part, by that part."""
        return {found.chosen or "": cast(T, found.value) for _, found in self.chosen(setting)}

    def under(self, section: str) -> dict[str, Found]:
        """Return what was found for the setting ``section`` and those below it."""
        return {
            name: found
            for name, found in self.found.items()
            if name == section or name.startswith(f"{section}.")
        }
