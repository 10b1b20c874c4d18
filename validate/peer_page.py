"""Common parts of the pages that compare with the kernel's queues and with ns-3: tables and notes."""

import fnmatch
import textwrap

UNITS = {
    "utilisation": ("utilisation, %", 100.0),
    "drops": ("packets dropped, %", 100.0),
    "loss": ("loss, %", 100.0),
    "p50": ("delay, median, ms", 1e3),
    "p99": ("delay, 99th percentile, ms", 1e3),
    "goodput": ("goodput per flow, kbit/s", 1e-3),
    "fairness": ("Jain's index", 1.0),
    "share": ("goodput over that of a bulk transfer", 1.0),
    "quality": ("quality", 1.0),
}

VERDICTS = {"agrees": "agrees", "noise": "no difference seen", "small": "small", "differs": "**differs**"}

JUDGEMENTS = """The judgement of a row has these meanings:

| judgement | meaning |
| --- | --- |
| agrees | the whole interval of the difference is within the tolerance |
| no difference seen | the interval contains zero, but is wider than the tolerance |
| small | there is a difference within the tolerance |
| **differs** | the difference is larger; a note below the table states the known causes |

The tolerances are:

| measure | tolerance |
| --- | --- |
| utilisation | 1 % |
| packets dropped | 10 % of the dropped share, or 0.2 % of all packets |
| loss | 15 %, or 0.5 % of the packets |
| median of the delay | 10 %, or 1 ms |
| 99th percentile of the delay | 15 %, or 3 ms |
| goodput, fairness | 5 % |"""
"""Meanings of the judgements, with the tolerances of `peer.TOLERANCE`."""


def overview(cases: list[dict]) -> str:
    """The number of rows with each verdict, by queue."""
    lines = ["| queue | rows | agrees | no difference seen | small | differs |", "| --- | --- | --- | --- | --- | --- |"]
    for queue in dict.fromkeys(case["queue"] for case in cases):
        verdicts = [row["verdict"] for case in cases if case["queue"] == queue for row in case["rows"]]
        counts = " | ".join(str(verdicts.count(verdict)) for verdict in VERDICTS)
        lines.append(f"| {queue} | {len(verdicts)} | {counts} |")
    return "\n".join(lines) + "\n"


def table(cases: list[dict], peer: str, name_of_peer: str) -> str:
    """A mix's table; `peer` is the other engine in the rows."""
    lines = [f"| queue | measure | Cutline | {name_of_peer} | difference | judgement |", "| --- | --- | --- | --- | --- | --- |"]
    for case in cases:
        for row in case["rows"]:
            *kind, name = row["measure"].split(".")
            text, scale = UNITS[name]
            cells = [with_interval(row[side], scale, sign) for side, sign in (("cutline", ""), (peer, ""), ("difference", "+"))]
            title = "".join(f"{word}: " for word in kind) + text
            lines.append(f"| {case['queue']} | {title} | {' | '.join(cells)} | {VERDICTS[row['verdict']]} |")
    return "\n".join(lines) + "\n"


def with_interval(side: dict, scale: float, sign: str) -> str:
    """A mean and half of its interval, with the significant digits."""
    mean, half = side["mean"] * scale, (side["high"] - side["low"]) / 2 * scale
    digits = 2 if max(abs(mean), half) < 10 else 1
    return f"{mean:{sign}.{digits}f} ± {half:.{digits}f}"


def paragraph(text: str) -> str:
    """A paragraph in lines of at most 100 characters."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def note(case: dict, notes: list[tuple[str, str, str]]) -> str | None:
    """The known causes of a case's differences, if it has any."""
    if all(row["verdict"] != "differs" for row in case["rows"]):
        return None
    fits = (why for mix, queue, why in notes if fnmatch.fnmatch(case["mix"], mix) and fnmatch.fnmatch(case["queue"], queue))
    return next(fits, None)


def sections(cases: list[dict], mixes: list, peer: tuple[str, str], notes: list[tuple[str, str, str]]) -> tuple[list[str], list[str]]:
    """A section for each mix, with the known causes of its differences, and the cases that differ without a note.

    `peer` is the other engine: in the rows, and its name.
    """
    parts: list[str] = []
    unexplained: list[str] = []
    for mix in mixes:
        about = paragraph(f"{mix.text[0].upper()}{mix.text[1:]}; measured for {mix.seconds - mix.warm_up} s.")
        parts.append(f"## {mix.name}\n\n{about}")
        of_mix = [case for case in cases if case["mix"] == mix.name]
        parts.append(table(of_mix, *peer))
        for case in of_mix:
            why = note(case, notes)
            if why is not None:
                parts.append(paragraph(f"{case['queue']}: {why}"))
            elif any(row["verdict"] == "differs" for row in case["rows"]):
                unexplained.append(f"{case['mix']} {case['queue']}")
    return parts, unexplained
