"""The page `docs/validation/qdisc.md`: the findings with both engines, and a table for each mix."""

from peer import mean
from peer_page import UNITS, overview, paragraph, sections, with_interval
from qdisc_mixes import AUDIO_HINTS, MIXES, Finding, Runs, qualities, values

HEAD = """# Queues in the kernel, with real TCP

This page has five experiments with Cutline's queueing disciplines (`cutline qdisc`) in Linux
{kernel}, beside the kernel's own queues and beside the simulator. The kernel has
{seeds} runs of each, and the simulator {simulated}, with 95 % confidence intervals (Student's t; a
difference by Welch). `make validate-qdisc` rewrites this page.

The kernel is Debian's, unchanged. It runs in a virtual machine whose processor executes one
instruction per nanosecond of virtual time. Three namespaces are a sender, a router and a receiver.
The queue under test is on the router's link of 15 Mbit/s, or of 2 Mbit/s for the ping. Cutline's
queues and CAKE shape by themselves; the other queues are below HTB, which sends one packet at a
time. TCP is the kernel's own, without ECN. Every data packet has 1000 B with its Ethernet header,
except those of the ping and the last one of a page. The simulator has the same flows, and the TCP
of `defaults = "linux"`.

- **audio**: the experiment of the TSQ paper's section 4.2 with one conference over UDP, for some
  of the hints. TSQ is over PI with the paper's parameters. With hint 16 for all the queue is first
  in, first out, as without TSQ.
  The kernel's transfers need half a minute to settle. A first run measured 14 s after 10 s, with
  intervals in which three of the six findings were unclear.
- **cheat**: a third of the transfers claims hint 1.
- **home**: uploads, readers of pages, videos and calls. With TSQ and Sieve calls and videos have
  hint 6, and pages hint 12. RED has thresholds of 30 and 90 packets, a largest probability of 0.1
  and a weight of 1/32. The other queues have their defaults.
- **ping**: echo requests beside uploads on a slow link.
- **flood**: calls and uploads beside a sender of UDP above the rate of the link. With Sieve it
  claims hint 1. Its rate over that of an upload counts headers, and the packets that arrive in the
  measured time.

Waits are those of the packets of UDP in the queue, as means over the flows: for the kernel from the
sender's `send` to the arrival at the receiver, without the time on the wire.

The instructions that a packet takes are not measured here. [The guide](../guide/qdisc.md#cost) has
them, beside those of FQ-CoDel and CAKE.
"""

RULES = """A finding holds if the whole interval is on the right side of its bound, fails if all of it is on
the other side, and is unclear otherwise. The rules are in `validate/qdisc_mixes.py`, and were fixed
before the first run. The program fails if a finding does not hold in the kernel and has no note.
"""

COMPARED = """## Beside the simulator

The judgement of a row has these meanings:

| judgement | meaning |
| --- | --- |
| agrees | the whole interval of the difference is within the tolerance |
| no difference seen | the interval contains zero, but is wider than the tolerance |
| small | there is a difference within the tolerance |
| **differs** | the difference is larger; a note below the table states the known causes |

The tolerances are those of [the comparison with Linux's queues](linux.md), with 0.03 of quality and
0.1 of the share of a transfer that claims a hint or of the flood.
"""

QUICK = (
    "Linux's receivers acknowledge each packet for a while after a loss (quick acknowledgements), and with windows of two to four packets "
    "losses are frequent. The simulator does not have that. With an acknowledgement for each packet throughout, it drops 8.6 % with CAKE, "
    "11.4 % with PIE, 7.2 % with FQ-CoDel and 2.0 % with Sieve. Linux is between the two in each case."
)
LATE = (
    "packets of the kernel count if they arrive up to two seconds after the end, while transfers still empty their buffers. This flow's wait "
    "for four seconds, and meanwhile nothing pushes them out. If the simulator counts them too, the 99th percentile is 4864 ± 37 ms."
)
COLLAPSE = (
    "with UDP alone PIE agrees ([`udp-110`](linux.md#udp-110)), so TCP causes the difference: at a loss of a third, the simulated "
    "transfers send three times as much as Linux's. The cause in TCP has not been found; a timeout of 400 ms and no RACK do not explain it."
)
NOTES: list[tuple[str, str, str]] = [("ping", "cake", QUICK), ("ping", "pie", QUICK), ("flood", "fq_codel", LATE), ("flood", "pie", COLLAPSE)]
"""Patterns of a mix and of a queue, and the known causes of their differences."""

FINDING_NOTES: dict[str, str] = {}
"""The known causes of findings that do not hold in the kernel, by the key of the finding."""

VERDICTS = {"holds": "holds", "unclear": "unclear", "fails": "**fails**"}


def judged(found: list[Finding], linux: Runs, cutline: Runs) -> list[dict]:
    """The findings with the values and verdicts of both engines."""
    rows = []
    for finding in found:
        sides = {}
        for engine, runs in (("linux", linux), ("cutline", cutline)):
            value = finding.value(runs)
            verdict = finding.verdict(value)
            sides[engine] = {"mean": value.mean, "low": value.low, "high": value.high, "n": value.n, "verdict": verdict}
        rule = {"above": finding.above} if finding.above is not None else {"below": finding.below}
        rows.append({"key": finding.key, "text": finding.text, "measure": finding.left[2], "rule": rule, **sides})
    return rows


def findings_table(rows: list[dict]) -> str:
    """The table of the findings."""
    lines = ["| finding | rule | Linux | verdict | simulator | verdict |", "| --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        title, scale = UNITS[row["measure"].rsplit(".", 1)[-1]]
        # The unit is the last part of a title such as "loss, %".
        unit = f" {title.rpartition(', ')[2]}" if scale != 1 else ""
        [(side, bound)] = row["rule"].items()
        cells = [f"{with_interval(row[engine], scale, '')}{unit} | {VERDICTS[row[engine]['verdict']]}" for engine in ("linux", "cutline")]
        lines.append(f"| {row['text']} | {side} {bound * scale:g}{unit} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def audio_table(linux: Runs, cutline: Runs) -> str:
    """The quality of audio by its hint, over that without TSQ."""
    lines = [
        "| hint | wait, ms: Linux | simulator | loss, %: Linux | simulator | quality: Linux | simulator | normalised: Linux | simulator |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    engines = [(runs, qualities(runs)) for runs in (linux, cutline)]
    without = AUDIO_HINTS[-1]
    for level in AUDIO_HINTS:
        cells = [str(level)]
        for measure, scale in (("p50", 1e3), ("loss", 100.0)):
            cells += [f"{mean(values(runs, (f'audio-{level}', 'tsq', f'audio.{measure}'))) * scale:.1f}" for runs, _ in engines]
        cells += [f"{quality[level]:.3f}" for _, quality in engines]
        cells += [normalised(quality[level], quality[without]) for _, quality in engines]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def normalised(quality: float, without: float) -> str:
    """A quality over that without TSQ: 1.05 for 0.84 and 0.80; a dash if there is none without TSQ."""
    return f"{quality / without:.2f}" if without else "-"


def unexplained_findings(rows: list[dict]) -> list[str]:
    """The findings that do not hold in the kernel and have no note."""
    return [f"{row['text']}: {row['linux']['verdict']}" for row in rows if row["linux"]["verdict"] != "holds" and row["key"] not in FINDING_NOTES]


def page(rows: list[dict], cases: list[dict], linux: Runs, cutline: Runs, about: dict) -> tuple[str, list[str]]:
    """The page, and what differs or does not hold without a note. `about` has the kernel, the numbers of runs, and the queues."""
    missing = [queue for queue in about["queues"] if queue not in {case["queue"] for case in cases}]
    head = [HEAD.format(**about)]
    if missing:
        head.append(paragraph(f"This kernel has no {' and no '.join(f'`{queue}`' for queue in missing)}."))
    head.append(
        paragraph(
            f"In all {about['accounted']} runs of TSQ and Sieve the counters of `cutline qdisc show --json` have every packet: received = "
            "sent + dropped + queued, for the whole queue, by hint and by wait; and no more datagrams were lost than the queue has dropped."
        )
    )
    head += ["## Findings\n", RULES, findings_table(rows)]
    head += [paragraph(f"{row['text']}: {FINDING_NOTES[row['key']]}") for row in rows if row["key"] in FINDING_NOTES]
    head += ["Audio by its hint; normalised is the quality over that without TSQ:\n", audio_table(linux, cutline), COMPARED, overview(cases)]
    parts, unexplained = sections(cases, MIXES, ("linux", "Linux"), NOTES)
    return "\n".join([*head, *parts]), [*unexplained_findings(rows), *unexplained]
