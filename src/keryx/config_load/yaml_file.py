"""Read settings from YAML with their lines, and change a setting in place without losing comments.

A scalar is read as the text in the file, not as YAML's type; the setting's reader interprets it. Loading the YAML
library is slow, so it is imported here only, and only if there is a file.
"""

import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from keryx.config.readers import Raw
from keryx.config.setting import Setting
from keryx.config_load.files import read_text
from keryx.config_load.sources import RawValue
from keryx.config_load.table import NamedSetting, Table, Tree
from keryx.errors import InvalidValue
from keryx.values import dataclass

_NULL = "tag:yaml.org,2002:null"
_INDENTED_LIST = re.compile(r"^ +- ", re.MULTILINE)
_WIDTH = 4096
"""Longer than any line that a person writes, so that no line is folded."""


def read_yaml(table: Table, path: Path, text: str | None = None) -> Iterator[RawValue | str]:
    """Yield every value of a file with its line, and every problem. ``text`` replaces the file's content."""
    try:
        text = read_text(path) if text is None else text
    except InvalidValue as error:
        yield str(error)
        return
    if text is None:
        return
    from ruamel.yaml import YAML  # noqa: PLC0415 - slow, see the module's docstring
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415

    try:
        root = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        yield f"{where}: this is not YAML: {error.problem or error.context}"
    except (YAMLError, RecursionError):
        yield f"{path}: this is not YAML; it contains characters or nesting that settings do not need"
    else:
        # Without a value, the file is empty or contains only comments.
        if root is not None and str(root.tag) != _NULL:
            yield from _Walk(table, path).level(root, (), table.tree)


@dataclass(frozen=True, slots=True)
class _Walk:
    """Walks through a file and the table together: at most as deep as the table, even if YAML aliases form a loop."""

    table: Table
    path: Path

    def level(self, node: Any, above: tuple[str, ...], here: Tree) -> Iterator[RawValue | str]:
        """Yield the values and problems under the keys ``above``."""
        is_mapping = node.id == "mapping"
        names = [str(key.value) for key, _ in node.value if key.id == "scalar"] if is_mapping else [""]
        try:
            self.table.enter(above, names)
        except InvalidValue as error:
            yield f"{self._at(node)}: {error}"
            return
        if not is_mapping:
            what = ".".join(above) or "the file"
            yield f"{self._at(node)}: {what} must contain settings by name: {', '.join(here)}"
            return
        seen: dict[str, int] = {}
        for key, value in node.value:
            if key.id != "scalar":
                yield f"{self._at(key)}: a name is expected before the colon"
                continue
            name = str(key.value)
            if name in seen:
                yield f"{self._at(key)}: {'.'.join((*above, name))} is also in line {seen[name]}; keep one"
                continue
            seen[name] = key.start_mark.line + 1
            yield from self._entry(key, value, (*above, name), here)

    def _entry(self, key: Any, value: Any, path: tuple[str, ...], here: Tree) -> Iterator[RawValue | str]:
        free = next((name for name in here if name.startswith("<")), None)
        below = here.get(path[-1] if free is None else free)
        if below is None:
            yield f"{self._at(key)}: {self.table.unknown_key(path, here)}"
        elif isinstance(below, Setting):
            yield self._value(key, value, NamedSetting(setting=below, keys=path))
        elif str(value.tag) != _NULL:
            yield from self.level(value, path, below)

    def _value(self, key: Any, value: Any, named: NamedSetting) -> RawValue | str:
        try:
            raw = _pairs(value) if named.setting.holds_pairs and value.id == "mapping" else _raw(value)
            return RawValue(named=named, raw=raw, origin=self._at(key))
        except InvalidValue as error:
            return f"{self._at(key)}: {named.name}: {error}"

    def _at(self, node: Any) -> str:
        return f"{self.path}:{node.start_mark.line + 1}"


def _raw(node: Any) -> Raw:
    if node.id == "scalar":
        return None if str(node.tag) == _NULL else str(node.value)
    if node.id == "sequence" and all(item.id == "scalar" for item in node.value):
        return tuple(str(item.value) for item in node.value)
    raise InvalidValue("this is a list or a mapping; write one value")


def _pairs(node: Any) -> Raw:
    if any(part.id != "scalar" for pair in node.value for part in pair):
        raise InvalidValue("write a name before each colon, and one value after it")
    return tuple(f"{name.value}={value.value}" for name, value in node.value)


def with_value(table: Table, path: Path, text: str, *, named: NamedSetting, value: object) -> str:
    """Return the text of a file with one setting changed or added, and nothing else."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - slow, see the module's docstring
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415
    from ruamel.yaml.scalarstring import LiteralScalarString  # noqa: PLC0415

    yaml = YAML()
    yaml.width = _WIDTH
    yaml.preserve_quotes = True
    if _INDENTED_LIST.search(text):
        yaml.indent(mapping=2, sequence=4, offset=2)
    try:
        root = yaml.load(text)
    except (YAMLError, ValueError, RecursionError):
        # read_yaml has better messages. It finds no problem if only the type of a scalar is invalid.
        problems = [each for each in read_yaml(table, path, text) if isinstance(each, str)]
        raise InvalidValue("\n".join(problems) or f"{path}: cannot be changed in place; edit it") from None
    # The library drops the comments of a file without values.
    before, root = ("", root) if root is not None else (text and text.rstrip("\n") + "\n", {})
    if isinstance(value, str) and "\n" in value:
        value = LiteralScalarString(value)
    level: Any = root
    for depth, key in enumerate(named.keys):
        if not isinstance(level, dict):
            where = ".".join(named.keys[:depth]) or "the file"
            raise InvalidValue(f"{path}: {where} must contain settings by name; correct it first")
        if depth == len(named.keys) - 1:
            level[key] = list(value) if isinstance(value, tuple) else value
        elif level.get(key) is None:
            level[key] = {}
        level = level[key]
    written = StringIO()
    yaml.dump(root, written)
    return before + written.getvalue()
