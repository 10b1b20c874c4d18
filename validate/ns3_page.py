"""The page `docs/validation/ns3.md`: a table for each mix with both engines."""

from linux_mixes import Mix
from peer_page import JUDGEMENTS, overview, sections

HEAD = """# Against ns-3

This page compares the same flows through Cutline's queues and through those of ns-3.37, with
{seeds} runs each and 95 % confidence intervals (Student's t; the difference by Welch).
`make validate-ns3` rewrites this page.

The network is a dumbbell of 15 Mbit/s with a base round trip of 300 ms. Every data packet has 1000
B as an IP packet. ns-3's links add 2 B of PPP; a higher rate of its bottleneck compensates for
them. ns-3's device holds one packet besides the packet that it sends. TCP is NewReno without SACK
and limited transmit in both engines, with delayed acknowledgements and growth by the
acknowledgement.

CoDel, FQ-CoDel and PIE have the variants of the RFCs, which ns-3 follows. Cutline's defaults are
the variants of Linux. In the RFCs' variants, FQ-CoDel does not drop from a flow with at most an MTU
behind its head, and PIE decays by 2 % whenever it is idle. RED and Adaptive RED have the same
thresholds, weight and spacing, and `variant = "ns-2"`, because ns-3 has the rules of ns-2. ns-3 has
no DualPI2.

Delays are those of the packets of each UDP flow in the queue, as means over the flows.

{judgements}
"""

TCP = (
    "with UDP alone this queue agrees, so TCP causes the difference. After a loss ns-3's NewReno leaves a link with a short queue idle for "
    "longer, and keeps a shorter queue elsewhere. The rule that causes this has not been found."
)
NOTES: list[tuple[str, str, str]] = [("bulk-*", "*", TCP)]
"""Mix, queue, and the known causes of their differences."""


def page(cases: list[dict], mixes: list[Mix], seeds: int) -> tuple[str, list[str]]:
    """The page, and the cases that differ without a note."""
    parts, unexplained = sections(cases, mixes, ("ns3", "ns-3"), NOTES)
    return "\n".join([HEAD.format(seeds=seeds, judgements=JUDGEMENTS), overview(cases), *parts]), unexplained
