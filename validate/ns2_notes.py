"""What differs between Cutline and ns-2 beyond noise, and why: the words of `docs/validation/ns2.md`."""

import fnmatch

HEAD = """# Against ns-2

The same dumbbells in Cutline and in ns-2.35, {seeds} seeds each, side by side with 95 % confidence intervals (Student's t; the
difference by Welch). `make validate` writes this page anew.

Cutline runs here with `defaults = "ns-2"` in its transports: packets of 1000 B in all, an initial window of 2, a clock of 10 ms, a
least timeout of 0.2 s, growth by the acknowledgement (RFC 5681 eq. 3), and ns-2's ways to halve and deflate the window. Everywhere
else Cutline's own defaults are the RFCs' (RFC 5681, 6298, 6582, 6928); what ns-2 does differently is named, parameter by parameter,
in the documentation of `cutline_transport::tcp::Params` and `tfrc::Params`.

A measure *shows no difference* when the interval of the difference holds zero. It is *small* when it is more than noise but less
than matters (1 % of utilisation, 5 % of a queue or goodput, 10 % of a drop rate, 15 % of a spread). What differs beyond that is
explained beside it, or says that it is not explained yet.
"""

NOTES: list[tuple[str, str, str]] = []
"""Pattern of a case's name, pattern of a measure, and the explanation; the first that fits is taken."""


def note(case: str, measure: str) -> str | None:
    """Why a measure of a case differs."""
    fits = (why for cases, measures, why in NOTES if fnmatch.fnmatch(case, cases) and fnmatch.fnmatch(measure, measures))
    return next(fits, None)
