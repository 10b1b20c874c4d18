"""Writes cutline/_aqms.py, the class of each AQM, and cutline/_tfrc_parameters.py from the parameter system.

    python python/tools/generate_aqms.py

A test compares both files.
"""

import keyword
import textwrap
from pathlib import Path

from cutline import _native, extend

FILE = Path(__file__).parents[1] / "cutline/_aqms.py"
TFRC_FILE = FILE.with_name("_tfrc_parameters.py")
WIDTH = 130
HEAD = '''"""The AQMs of the registry. Written by python/tools/generate_aqms.py; do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._queue import Queue

'''
TYPES = {
    "number": "float | str", "count": "int | str", "duration": "str", "frequency": "str", "flag": "bool", "choice": "str",
    "count or choice": "int | str", "durations": "Sequence[str]", "counts": "Sequence[int]", "distribution": "float | Mapping[str, Any]",
}
NAMES = {"codel": "CoDel", "fq-codel": "FqCoDel", "dual-pi2": "DualPi2"}


def class_name(name):
    return NAMES.get(name) or "".join(part.capitalize() for part in name.split("-"))


def argument(name):
    name = name.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def paragraph(text, rest=0):
    return textwrap.wrap(text, WIDTH - 4, subsequent_indent=" " * rest, break_long_words=False, break_on_hyphens=False)


def documentation(name, title, source, takes_tsq, parameters):
    lines = paragraph(f"{title} ({source}).")
    lines += ["", "TSQ works over it." if takes_tsq else "TSQ does not work over it."]
    lines += [""] if parameters else []
    return "\n".join([*lines, *described(parameters)])


def described(parameters):
    lines = []
    for parameter, _, allowed, default, origin, meaning in parameters:
        start = f"{argument(parameter)}: {meaning.rstrip('.')}. Allowed is {allowed}; the default is {default}"
        lines += [*paragraph(start + (f" ({origin})." if origin else "."), 4)]
    return lines


def type_of(kind, allowed):
    return TYPES[kind] + " | bool" * (kind != "flag" and "or off" in allowed)


def filled(words, first, rest):
    return textwrap.fill(words, WIDTH, initial_indent=" " * first, subsequent_indent=" " * rest, break_long_words=False,
                         break_on_hyphens=False)


def code(name, title, source, takes_tsq, parameters):
    has_below = name == "strict-priority"
    typed = [(argument(parameter), type_of(kind, allowed)) for parameter, kind, allowed, *_ in parameters]
    typed += [("below", "Mapping[str, Any]")] * has_below
    shared = ["limit", "ecn", *["tsq"] * takes_tsq, "seed"]
    types = {"limit": 'str = "1000 packets"', "ecn": "bool = True", "tsq": "bool | Mapping[str, Any] = False", "seed": "int = 1"}
    signature = ["self", "rate: str | float", "*", *(f"{one}: {types[one]}" for one in shared),
                 *(f"{one}: {kind} | None = None" for one, kind in typed)]
    given = ["rate", *(f"{one}={one}" for one in shared), *(f"{one}={one}" for one, _ in typed)]
    text = documentation(name, title, source, takes_tsq, parameters)
    if has_below:
        text += "\nbelow: The AQM below it, as a table of a scenario, such as {'aqm': 'pi2'}."
    quotes = '"' * 3
    lines = [f"class {class_name(name)}(Queue):", textwrap.indent(quotes + text.replace("\\", "\\\\"), "    "), f"    {quotes}", "",
             f'    name = "{name}"', "", "    def __init__(", *(f"        {one}," for one in signature), "    ) -> None:",
             filled(f"super().__init__({', '.join(given)})", 8, 12)]
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()) + "\n"


def text():
    added = {extension.name for extension in extend.registered()}
    aqms = [aqm for aqm in _native.aqms() if aqm[0] not in added]
    names = textwrap.fill(", ".join(f'"{class_name(name)}"' for name, *_ in aqms) + ",", WIDTH, initial_indent="    ", subsequent_indent="    ")
    return HEAD + f"__all__ = [\n{names}\n]\n" + "".join("\n\n" + code(*aqm) for aqm in aqms)


def tfrc_text():
    parameters = _native.tfrc_parameters()
    quotes = '"' * 3
    documented = textwrap.indent("\n".join(["Parameters of TFRC.", "", *described(parameters)]).replace("\\", "\\\\"), "    ")
    lines = [f"{quotes}The parameters of TFRC. Written by python/tools/generate_aqms.py; do not edit.{quotes}", "",
             "from __future__ import annotations", "", "from typing import TypedDict", "", "", "class Parameters(TypedDict, total=False):",
             f"    {quotes}{documented.lstrip()}", f"    {quotes}", "",
             *(f"    {argument(parameter)}: {type_of(kind, allowed)} | None" for parameter, kind, allowed, *_ in parameters)]
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
    TFRC_FILE.write_text(tfrc_text())
