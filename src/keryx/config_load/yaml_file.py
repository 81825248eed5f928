"""Settings in YAML: read with their lines, and changed in place with their comments.

A scalar is taken as the text that was written, whatever YAML would make of it; the table says what it means. The YAML
library is loaded only here, and only when there is a file: without one, nobody waits for it.
"""

import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from keryx.config.readers import Raw
from keryx.config.setting import Setting
from keryx.config_load.sources import Given
from keryx.config_load.table import NamedSetting, Table, Tree
from keryx.errors import InvalidValue
from keryx.values import dataclass

_NULL = "tag:yaml.org,2002:null"
_INDENTED_LIST = re.compile(r"^ +- ", re.MULTILINE)
_WIDTH = 4096
"""Beyond any line a person writes: nothing is folded anew."""


def read_text(path: Path) -> str | None:
    """Return what a file says, None where there is none; raise ``InvalidValue`` if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidValue(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InvalidValue(f"{path}:{line}: this is not UTF-8; save the file in that encoding") from error


def given_by(table: Table, path: Path, text: str) -> Iterator[Given | str]:
    """Yield every value of a file with its line, and every problem with its shape."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - see the module's promise
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415

    try:
        root = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        yield f"{where}: this is not YAML: {error.problem or error.context}"
    except (YAMLError, RecursionError):
        yield f"{path}: this is not YAML; it holds characters or a depth that no settings need"
    else:
        # Without a value the file is empty, or all comments.
        if root is not None and str(root.tag) != _NULL:
            yield from _Walk(table, path).level(root, (), table.tree)


@dataclass(frozen=True, slots=True)
class _Walk:
    """Goes through a file and the table at once, so no deeper than the table is, whatever the file refers to."""

    table: Table
    path: Path

    def level(self, node: Any, above: tuple[str, ...], here: Tree) -> Iterator[Given | str]:
        """Yield what stands under ``above``."""
        is_mapping = node.id == "mapping"
        names = [str(key.value) for key, _ in node.value if key.id == "scalar"] if is_mapping else [""]
        try:
            self.table.enter(above, names)
        except InvalidValue as error:
            yield f"{self._at(node)}: {error}"
            return
        if not is_mapping:
            what = ".".join(above) or "the file"
            yield f"{self._at(node)}: {what} must hold settings by name: {', '.join(here)}"
            return
        seen: dict[str, int] = {}
        for key, value in node.value:
            if key.id != "scalar":
                yield f"{self._at(key)}: a name is expected before the colon"
                continue
            name = str(key.value)
            if name in seen:
                yield f"{self._at(key)}: {'.'.join((*above, name))} stands in line {seen[name]} too; keep one"
                continue
            seen[name] = key.start_mark.line + 1
            yield from self._entry(key, value, (*above, name), here)

    def _entry(self, key: Any, value: Any, path: tuple[str, ...], here: Tree) -> Iterator[Given | str]:
        free = next((name for name in here if name.startswith("<")), None)
        below = here.get(path[-1] if free is None else free)
        if below is None:
            yield f"{self._at(key)}: {self.table.unknown_key(path, here)}"
        elif isinstance(below, Setting):
            yield self._value(key, value, NamedSetting(setting=below, keys=path))
        elif str(value.tag) != _NULL:
            yield from self.level(value, path, below)

    def _value(self, key: Any, value: Any, named: NamedSetting) -> Given | str:
        try:
            raw = _pairs(value) if named.setting.holds_pairs and value.id == "mapping" else _raw(value)
            return Given(named=named, raw=raw, origin=self._at(key))
        except InvalidValue as error:
            return f"{self._at(key)}: {named.name}: {error}"

    def _at(self, node: Any) -> str:
        return f"{self.path}:{node.start_mark.line + 1}"


def _raw(node: Any) -> Raw:
    if node.id == "scalar":
        return None if str(node.tag) == _NULL else str(node.value)
    if node.id == "sequence" and all(item.id == "scalar" for item in node.value):
        return tuple(str(item.value) for item in node.value)
    raise InvalidValue("one value is expected here, and more is given")


def _pairs(node: Any) -> Raw:
    if any(part.id != "scalar" for pair in node.value for part in pair):
        raise InvalidValue("a name is expected before each colon, and one value behind it")
    return tuple(f"{name.value}={value.value}" for name, value in node.value)


def with_value(table: Table, path: Path, text: str, *, named: NamedSetting, value: object) -> str:
    """Return the text of a file with one setting changed or added, and everything else left as it was."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - see the module's promise
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
        # The reader has the better sentence, unless only a scalar's meaning, which it does not look at, is wrong.
        problems = [each for each in given_by(table, path, text) if isinstance(each, str)]
        raise InvalidValue("\n".join(problems) or f"{path}: cannot be changed in place; edit it") from None
    # The library drops the comments of a file that has nothing else.
    before, root = ("", root) if root is not None else (text and text.rstrip("\n") + "\n", {})
    if isinstance(value, str) and "\n" in value:
        value = LiteralScalarString(value)
    level: Any = root
    for depth, key in enumerate(named.keys):
        if not isinstance(level, dict):
            where = ".".join(named.keys[:depth]) or "the file"
            raise InvalidValue(f"{path}: {where} must hold settings by name; correct it first")
        if depth == len(named.keys) - 1:
            level[key] = list(value) if isinstance(value, tuple) else value
        elif level.get(key) is None:
            level[key] = {}
        level = level[key]
    written = StringIO()
    yaml.dump(root, written)
    return before + written.getvalue()
