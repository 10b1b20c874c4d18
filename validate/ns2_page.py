"""The page `docs/validation/ns2.md`: tables of both engines, a sentence a row, and what is followed where they differ."""

from ns2_notes import HEAD, note

UNITS = {
    "utilisation": ("link utilisation, %", 100.0),
    "queue": ("mean queue, packets", 1.0),
    "average": ("average queue as RED has it, packets", 1.0),
    "max_p": ("max_p, %", 100.0),
    "drops": ("drop rate, %", 100.0),
    "goodput": ("goodput a flow, kbit/s", 1.0),
    "spread": ("coefficient of variation", 1.0),
    "fairness": ("Jain's index", 1.0),
    "timeouts": ("timeouts a flow", 1.0),
    "retransmissions": ("retransmissions a flow", 1.0),
}


def page(cases: list[dict], seeds: int) -> tuple[str, list[str]]:
    """The page, and the rows that differ without an explanation."""
    unexplained: list[str] = []
    parts = [HEAD.format(seeds=seeds), overview(cases)]
    for case in cases:
        parts.append(f"## {case['name']}\n\n{case['description']}.\n\n" + table(case, unexplained))
    return "\n".join(parts), unexplained


def overview(cases: list[dict]) -> str:
    """The number of rows that agree, for each case."""
    lines = ["| case | rows | no difference seen | small | differs |", "| --- | --- | --- | --- | --- |"]
    for case in cases:
        verdicts = [row["verdict"] for row in case["rows"]]
        counts = [verdicts.count(verdict) for verdict in ("noise", "small", "differs")]
        lines.append(f"| [{case['name']}](#{case['name']}) | {len(verdicts)} | {counts[0]} | {counts[1]} | {counts[2]} |")
    return "\n".join(lines) + "\n"


def table(case: dict, unexplained: list[str]) -> str:
    """A case's table."""
    lines = ["| measure | Cutline | ns-2 | difference | judgement |", "| --- | --- | --- | --- | --- |"]
    for row in case["rows"]:
        text = judgement(case["name"], row)
        if text is None:
            unexplained.append(f"{case['name']} {row['measure']}: {row['relative']:+.1%}")
            text = "differs, not explained yet"
        lines.append(f"| {title(row['measure'])} | {' | '.join(cells(row))} | {text} |")
    return "\n".join(lines) + "\n"


def title(measure: str) -> str:
    """The name of a measure such as `newreno.goodput` in words."""
    *kind, name = measure.split(".")
    names = {"newreno": "NewReno", "tfrc": "TFRC", "udp": "UDP"}
    return "".join(f"{names[k]}: " for k in kind) + UNITS[name][0]


def cells(row: dict) -> list[str]:
    """Both engines and the difference, each with half of its interval."""
    scale = UNITS[row["measure"].rsplit(".", 1)[-1]][1]
    return [with_interval(row[side], scale, sign) for side, sign in (("cutline", ""), ("ns2", ""), ("difference", "+"))]


def with_interval(side: dict, scale: float, sign: str) -> str:
    """A mean and half of its interval, with the significant digits."""
    mean, half = side["mean"] * scale, (side["high"] - side["low"]) / 2 * scale
    digits = 3 if max(abs(mean), half) < 10 else 1
    return f"{mean:{sign}.{digits}f} ± {half:.{digits}f}"


def judgement(case: str, row: dict) -> str | None:
    """A sentence; `None` for a difference without an explanation."""
    if row["verdict"] == "noise":
        return "no difference seen"
    relative = f"{row['relative']:+.1%}" if row["relative"] is not None else "from zero"
    if row["verdict"] == "small":
        return f"{relative}: more than noise, too small to matter"
    why = note(case, row["measure"]) or second_look(row)
    return None if why is None else f"{relative}: {why}"


def second_look(row: dict) -> str | None:
    """The result with new seeds for a row that differs; `None` if they differ, too."""
    again = row.get("again")
    if again is None or again["verdict"] == "differs":
        return None
    scale = UNITS[row["measure"].rsplit(".", 1)[-1]][1]
    gap = with_interval(again["difference"], scale, "+")
    verdict = "this is chance" if again["verdict"] == "noise" else "most of it is chance"
    return f"with {again['cutline']['n']} new seeds the difference is {gap} ({again['relative']:+.1%}), so {verdict}"
