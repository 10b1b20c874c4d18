"""The page `docs/validation/ns2.md`: tables of both engines with judgements, and explanations of the differences."""

from ns2_notes import HEAD, note
from peer_page import paragraph

UNITS = {
    "utilisation": ("link utilisation, %", 100.0),
    "queue": ("mean queue, packets", 1.0),
    "average": ("RED's average queue, packets", 1.0),
    "max_p": ("max_p, %", 100.0),
    "drops": ("drop rate, %", 100.0),
    "goodput": ("goodput per flow, kbit/s", 1.0),
    "spread": ("coefficient of variation", 1.0),
    "fairness": ("Jain's index", 1.0),
    "timeouts": ("timeouts per flow", 1.0),
    "retransmissions": ("retransmissions per flow", 1.0),
}


def page(cases: list[dict], seeds: int) -> tuple[str, list[str]]:
    """The page, and the rows that differ without an explanation."""
    unexplained: list[str] = []
    parts = [HEAD.format(seeds=seeds), overview(cases)]
    for case in cases:
        parts.append(f"## {case['name']}\n\n{paragraph(case['description'] + '.')}\n{table(case, unexplained)}")
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
    """A case's table, with the explanations of its differences below it."""
    lines = ["| measure | Cutline | ns-2 | difference | judgement |", "| --- | --- | --- | --- | --- |"]
    explanations: dict[str, list[str]] = {}
    for row in case["rows"]:
        text = judgement(row)
        if row["verdict"] == "differs":
            why = note(case["name"], row["measure"])
            if why is not None:
                explanations.setdefault(why, []).append(title(row["measure"]))
            elif second_look(row) is None:
                unexplained.append(f"{case['name']} {row['measure']}: {row['relative']:+.1%}")
            text += f": {'see below' if why is not None else second_look(row) or 'not explained yet'}"
        lines.append(f"| {title(row['measure'])} | {' | '.join(cells(row))} | {text} |")
    notes = ["\n" + paragraph(f"*{'; '.join(measures)}*: {why}.") for why, measures in explanations.items()]
    return "\n".join(lines) + "\n" + "".join(notes)


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


def judgement(row: dict) -> str:
    """The judgement of a row, with the relative difference."""
    if row["verdict"] == "noise":
        return "no difference seen"
    relative = f"{row['relative']:+.1%}" if row["relative"] is not None else "from zero"
    return f"{relative}, {row['verdict']}"


def second_look(row: dict) -> str | None:
    """The result with new seeds for a row that differs; `None` if they differ, too."""
    again = row.get("again")
    if again is None or again["verdict"] == "differs":
        return None
    scale = UNITS[row["measure"].rsplit(".", 1)[-1]][1]
    gap = with_interval(again["difference"], scale, "+")
    verdict = "so it is due to chance" if again["verdict"] == "noise" else "so most of it is due to chance"
    return f"with {again['cutline']['n']} new seeds the difference is {gap} ({again['relative']:+.1%}), {verdict}"
