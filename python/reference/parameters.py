"""Makes lists of the parameters in docstrings, which are lines such as `seeds: the number of replications`, and code of their examples."""

import re

import griffe

PARAMETER = re.compile(r"^( *)(\w+(?:, \w+)*): (?=\S)", re.MULTILINE)


def listed(text, names):
    """Returns a docstring whose lines about parameters are items of a list."""
    lines = []
    for line in text.split("\n"):
        found = PARAMETER.match(line)
        if found and not found[1] and set(found[2].split(", ")) <= names:
            if lines and lines[-1] and not lines[-1].startswith(("- ", "  ")):
                lines.append("")
            lines.append(f"- `{found[2]}`: {line[found.end():]}")
        else:
            lines.append(line)
    return "\n".join(lines)


class Parameters(griffe.Extension):
    """Extension of griffe."""

    def on_function_instance(self, *, func, **options):
        if func.docstring:
            func.docstring.value = listed(func.docstring.value, {parameter.name.lstrip("*") for parameter in func.parameters})

    def on_class_members(self, *, cls, **options):
        if cls.docstring and "__init__" in cls.members:
            cls.docstring.value = listed(cls.docstring.value, {parameter.name for parameter in cls.members["__init__"].parameters})
