"""The page `docs/validation/ns3.md`: a table for each mix, with both engines beside each other."""

from linux_mixes import Mix
from peer_page import overview, sections

HEAD = """# Against ns-3

The same flows through Cutline's queues and through those of ns-3.37, {seeds} runs each, with 95 % confidence intervals (Student's t; the
difference by Welch). `make validate-ns3` writes this page anew.

A dumbbell of 15 Mbit/s with a base round trip of 300 ms. Every data packet has 1000 B as an IP packet; ns-3's links add 2 B of PPP,
for which the rate of its bottleneck makes up. ns-3's device holds one packet besides the one that it sends. TCP is NewReno without SACK and
limited transmit in both, with delayed acknowledgements and growth by the acknowledgement.

CoDel, FQ-CoDel and PIE have the variants of the RFCs, which ns-3 follows, and not Cutline's defaults, which are Linux's: FQ-CoDel spares a
flow with at most an MTU behind its head, and PIE decays by 2 % whenever it is idle. RED and Adaptive RED have the same thresholds, weight
and spacing, and `variant = "ns-2"`, whose rules ns-3 has taken over. ns-3 has no DualPI2.

Delays are of the packets of each UDP flow in the queue, as means over the flows.

A row *agrees* if the whole interval of the difference lies within what matters: 1 % of utilisation, 10 % of the dropped share or 0.2 % of
all packets, 15 % of a loss or 0.5 %, 10 % of a median or 1 ms, 15 % of a 99th percentile or 3 ms, 5 % of goodput and
fairness. *No difference seen*: the interval holds zero, but is wider than that. *Small*: there is a difference, which does not matter.
What is known about a row that differs is below its table.
"""

TCP = (
    "with UDP alone this queue agrees, so what differs is TCP: after a loss ns-3's NewReno leaves the link idle for longer, where the queue is too "
    "short to hide it, and keeps a shorter queue elsewhere. Which rule does so has not been found."
)
NOTES: list[tuple[str, str, str]] = [("bulk-*", "*", TCP)]
"""Mix, queue, and what is known of their differences."""


def page(cases: list[dict], mixes: list[Mix], seeds: int) -> tuple[str, list[str]]:
    """The page, and the cases that differ without a note."""
    parts, unexplained = sections(cases, mixes, ("ns3", "ns-3"), NOTES)
    return "\n".join([HEAD.format(seeds=seeds), overview(cases), *parts]), unexplained
