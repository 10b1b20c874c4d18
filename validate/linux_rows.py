"""Measures of the simulator and of Linux's TCP in the laboratory side by side, and the verdict on their difference.

A measure has a tolerance, which is fixed before the runs. It is the same when the whole 95 % interval of the difference (Welch) lies
inside the tolerance, differs when it lies outside, and is unclear otherwise.
"""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass

import stats
from peer_page import paragraph

Run = dict[str, float]
"""The results of one run: measures by name."""

HEADER = """\
| measure | simulated | Linux | difference | tolerance | verdict |
| --- | --- | --- | --- | --- | --- |"""


VERDICTS = """\
The verdict of a measure depends on the 95 % interval of the difference (Welch) and on the
tolerance, which was fixed before the runs:

| verdict | meaning |
| --- | --- |
| {inside} | the whole interval is inside the tolerance |
| differs | the whole interval is outside the tolerance |
| unclear | all other cases |
"""


def verdict_rules(inside_word: str = "same") -> str:
    """The part of a page that defines the verdicts of `row`."""
    return VERDICTS.format(inside=inside_word)


@dataclass(frozen=True)
class Measure:
    """A quantity of a run."""

    title: str
    share: float
    """The tolerance, as a share of Linux's value."""
    least: float
    """The tolerance is no less than this."""


def row(name: str, measure: Measure, ours: list[Run], linux: list[Run], inside_word: str = "same") -> dict:
    """A measure of both sides with intervals, and the verdict on the difference."""
    left, right = [run[name] for run in ours], [run[name] for run in linux]
    sides = {"cutline": stats.estimate(left), "linux": stats.estimate(right), "difference": stats.difference(left, right)}
    gap = sides["difference"]
    tolerance = max(measure.share * abs(sides["linux"].mean), measure.least)
    inside = -tolerance <= gap.low and gap.high <= tolerance
    outside = gap.low > tolerance or gap.high < -tolerance
    verdict = inside_word if inside else "differs" if outside else "unclear"
    as_dict = {side: {"mean": e.mean, "low": e.low, "high": e.high, "n": e.n} for side, e in sides.items()}
    return {"measure": name, **as_dict, "tolerance": tolerance, "verdict": verdict}


def table(rows: list[dict], measures: dict[str, Measure], note: Callable[[str], str]) -> tuple[str, list[str]]:
    """The table of a case with its notes below, and the measures that differ without a note.

    `note` returns the known cause of a measure's difference, or an empty text.
    """
    lines, unexplained = [HEADER], []
    explanations: dict[str, list[str]] = {}
    for row in rows:
        name, verdict, why = row["measure"], row["verdict"], note(row["measure"])
        if verdict == "differs" and not why:
            unexplained.append(name)
        if why:
            explanations.setdefault(why, []).append(measures[name].title)
        judgement = f"{verdict}: see below" if why else verdict
        cells = [with_interval(row[side]) for side in ("cutline", "linux", "difference")]
        lines.append(f"| {measures[name].title} | {' | '.join(cells)} | {row['tolerance']:.3g} | {judgement} |")
    notes = ["\n" + paragraph(f"*{'; '.join(titles)}*: {why}.") for why, titles in explanations.items()]
    return "\n".join(lines) + "\n" + "".join(notes) + "\n", unexplained


def with_interval(side: dict) -> str:
    """A mean and half of its interval."""
    mean, half = side["mean"], (side["high"] - side["low"]) / 2
    digits = 2 if max(abs(mean), half) < 10 else 1
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


def kernel() -> str:
    """The name and the version of the running kernel."""
    return subprocess.run(["uname", "-sr"], capture_output=True, text=True, check=True).stdout.strip()
