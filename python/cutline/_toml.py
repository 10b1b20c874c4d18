"""TOML of Python's values, as scenarios need it: for `Scenario.from_dict`, and for settings."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any

from .errors import ArgumentError

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def value(parameter: str, key: str, found: Any) -> str:
    """Returns a value as TOML on one line."""
    found = _plain(found)
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, int):
        if not -(2**63) <= found < 2**63:
            raise _wrong(parameter, key, found, "a whole number of 64 bits")
        return str(found)
    if isinstance(found, float):
        if not math.isfinite(found):
            raise _wrong(parameter, key, found, "a finite number")
        return repr(found)
    if isinstance(found, str):
        return _quoted(found)
    if isinstance(found, Mapping):
        parts = (f"{_name(parameter, key, name)} = {value(parameter, f'{key}.{name}', item)}" for name, item in found.items())
        return "{ " + ", ".join(parts) + " }"
    if _is_list(found):
        return "[" + ", ".join(value(parameter, key, item) for item in found) + "]"
    raise _wrong(parameter, key, found, "a bool, number, str, list or mapping")


def setting(parameter: str, key: str, found: Any) -> str:
    """Returns a value as the command's `--set` takes it: a text has quotes only if it would otherwise be another type."""
    found = _plain(found)
    if isinstance(found, str) and found and found == found.strip() and "\n" not in found:
        try:
            tomllib.loads(f"value = {found}")
        except tomllib.TOMLDecodeError:
            return found
    return value(parameter, key, found)


def document(parameter: str, content: Mapping[str, Any]) -> str:
    """Returns a mapping as a TOML file, in its order: a table for each mapping, and one for each member of a list of mappings."""
    lines: list[str] = []
    _table(parameter, (), content, lines)
    return "\n".join(lines).strip("\n") + "\n"


def _table(parameter: str, path: tuple[str, ...], content: Mapping[str, Any], lines: list[str]) -> None:
    tables: list[tuple[str, Any]] = []
    for key, found in content.items():
        name = _name(parameter, ".".join(path), key)
        found = _plain(found)
        is_tables = _is_list(found) and len(found) > 0 and all(isinstance(item, Mapping) for item in found)
        # A sweep's first key varies slowest, so their order stays.
        if (isinstance(found, Mapping) or is_tables) and path != ("sweep",):
            tables.append((key, found))
        else:
            lines.append(f"{name} = {value(parameter, '.'.join([*path, key]), found)}")
    for key, found in tables:
        inner = (*path, key)
        header = ".".join(_name(parameter, "", part) for part in inner)
        for item in [found] if isinstance(found, Mapping) else found:
            lines += ["", f"[{header}]" if isinstance(found, Mapping) else f"[[{header}]]"]
            _table(parameter, inner, item, lines)


def _plain(found: Any) -> Any:
    """Returns a number of numpy as one of Python, and a path as text."""
    if isinstance(found, PathLike):
        return fspath(found)
    if hasattr(found, "dtype") and hasattr(found, "tolist"):
        return found.tolist()
    return found


def _is_list(found: Any) -> bool:
    return isinstance(found, Sequence) and not isinstance(found, (str, bytes, bytearray))


def _name(parameter: str, where: str, key: Any) -> str:
    if not isinstance(key, str):
        raise ArgumentError(f"{parameter}: {where or 'it'} has the key {key!r}: expected a str", parameter)
    return key if _BARE.fullmatch(key) else _quoted(key)


def _quoted(text: str) -> str:
    # JSON escapes as TOML does, except this one.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _wrong(parameter: str, key: str, found: Any, allowed: str) -> ArgumentError:
    return ArgumentError(f"{parameter}: {key} = {found!r} is not allowed: expected {allowed}", parameter)
