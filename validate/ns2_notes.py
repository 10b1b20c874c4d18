"""What differs between Cutline and ns-2 beyond noise, and why: the words of `docs/validation/ns2.md`."""

import fnmatch

HEAD = """# Against ns-2

Placeholder {seeds}.
"""

NOTES: list[tuple[str, str, str]] = []
"""Pattern of a case's name, pattern of a measure, and the explanation; the first that fits is taken."""


def note(case: str, measure: str) -> str | None:
    """Why a measure of a case differs."""
    fits = (why for cases, measures, why in NOTES if fnmatch.fnmatch(case, cases) and fnmatch.fnmatch(measure, measures))
    return next(fits, None)
