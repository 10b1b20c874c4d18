"""The page `docs/validation/linux.md`: a table for each mix, with both engines beside each other."""

import fnmatch

from linux_mixes import MIXES, Mix

HEAD = """# Against the Linux kernel's queues

The same flows through Cutline's queues and through those of Linux {kernel}, {seeds} runs each, with 95 % confidence intervals
(Student's t; the difference by Welch). `make validate-linux` writes this page anew.

The kernel is Debian's, unchanged, in a virtual machine whose processor executes one instruction in a nanosecond of virtual time. Three
namespaces are a sender, a router and a receiver. The router's HTB sends 15 Mbit/s, one packet at a time, from the queue that is
measured; the base round trip is 300 ms. TCP is the kernel's own, without ECN. Every data packet has 1000 B with its Ethernet header, and so
has the MTU, from which Linux's queues take their quantum and thresholds.

Cutline runs the same flows with the queues' defaults, which are Linux's, but for these 1000 B, and with the TCP of `defaults = "linux"`. Linux's
CUBIC and Reno are not Cutline's: with UDP alone the difference is the queue's, with TCP it may be either's. So the mixes without
TCP come first.

Delays are of the packets of each UDP flow in the queue, as means over the flows; the kernel's are from the sender's `send` to the
arrival at the receiver, without the time on the wire. `fq_codel-full` has a limit of 100 packets, which Poisson flows reach at times.

A row *agrees* if the whole interval of the difference lies within what matters: 1 % of utilisation, 10 % of the dropped share or 0.2 % of
all packets, 15 % of a loss or 0.5 %, 10 % of a median or 1 ms, 15 % of a 99th percentile or 3 ms, 5 % of goodput and
fairness. *No difference seen*: the interval holds zero, but is wider than that. *Small*: there is a difference, which does not matter.
What is known about a row that differs is below its table.

The virtual machine forwards in no time, but its HTB sends 0.2 % less than the link's rate. Linux has no `dualpi2` in this kernel.
"""

UNITS = {
    "utilisation": ("utilisation, %", 100.0),
    "drops": ("packets dropped, %", 100.0),
    "loss": ("loss, %", 100.0),
    "p50": ("delay, median, ms", 1e3),
    "p99": ("delay, 99th percentile, ms", 1e3),
    "goodput": ("goodput a flow, kbit/s", 1e-3),
    "fairness": ("Jain's index", 1.0),
}

VERDICTS = {"agrees": "agrees", "noise": "no difference seen", "small": "small", "differs": "**differs**"}

TCP = (
    "with TCP, Cutline drops a seventh to a quarter less than Linux at every queue that was measured, at the plain `pfifo` too. So most "
    "of the difference is TCP's, not the queue's. Which part of TCP it is has not been found."
)
SLOW = "one flow's largest delays differ by about 3 ms; this is not explained yet."
NOTES: list[tuple[str, str, str]] = [("bulk-*", "*", TCP), ("cubic-*", "*", TCP), ("udp-slow", "fq_codel*", SLOW)]
"""Patterns of a mix and of a queue, and what is known of their differences."""


def page(cases: list[dict], mixes: list[Mix], kernels: list[str], seeds: int) -> str:
    """The page."""
    parts = [HEAD.format(kernel=" and ".join(kernels), seeds=seeds), overview(cases)]
    if missing := [mix.name for mix in MIXES if mix not in mixes]:
        parts.append(f"Not measured yet: {', '.join(missing)}.\n")
    for mix in mixes:
        parts.append(f"## {mix.name}\n\n{mix.text[0].upper()}{mix.text[1:]}; measured for {mix.seconds - mix.warm_up} s.\n")
        of_mix = [case for case in cases if case["mix"] == mix.name]
        parts.append(table(of_mix))
        parts += [f"{case['queue']}: {why}\n" for case in of_mix if (why := note(case))]
    return "\n".join(parts)


def overview(cases: list[dict]) -> str:
    """The number of rows with each verdict, by queue."""
    lines = ["| queue | rows | agrees | no difference seen | small | differs |", "| --- | --- | --- | --- | --- | --- |"]
    for queue in dict.fromkeys(case["queue"] for case in cases):
        verdicts = [row["verdict"] for case in cases if case["queue"] == queue for row in case["rows"]]
        counts = " | ".join(str(verdicts.count(verdict)) for verdict in VERDICTS)
        lines.append(f"| {queue} | {len(verdicts)} | {counts} |")
    return "\n".join(lines) + "\n"


def table(cases: list[dict]) -> str:
    """A mix's table."""
    lines = ["| queue | measure | Cutline | Linux | difference | judgement |", "| --- | --- | --- | --- | --- | --- |"]
    for case in cases:
        for row in case["rows"]:
            *kind, name = row["measure"].split(".")
            text, scale = UNITS[name]
            cells = [with_interval(row[side], scale, sign) for side, sign in (("cutline", ""), ("linux", ""), ("difference", "+"))]
            title = "".join(f"{word}: " for word in kind) + text
            lines.append(f"| {case['queue']} | {title} | {' | '.join(cells)} | {VERDICTS[row['verdict']]} |")
    return "\n".join(lines) + "\n"


def with_interval(side: dict, scale: float, sign: str) -> str:
    """A mean and half of its interval, with the significant digits."""
    mean, half = side["mean"] * scale, (side["high"] - side["low"]) / 2 * scale
    digits = 2 if max(abs(mean), half) < 10 else 1
    return f"{mean:{sign}.{digits}f} ± {half:.{digits}f}"


def note(case: dict) -> str | None:
    """What is known of a case's differences, if it has any."""
    if all(row["verdict"] != "differs" for row in case["rows"]):
        return None
    fits = (why for mix, queue, why in NOTES if fnmatch.fnmatch(case["mix"], mix) and fnmatch.fnmatch(case["queue"], queue))
    return next(fits, None)
