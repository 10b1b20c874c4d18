"""The page `docs/validation/linux.md`: a table for each mix, with both engines beside each other."""

from linux_mixes import MIXES, Mix
from peer_page import overview, sections

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

TCP = (
    "with UDP alone this queue agrees, so what differs is TCP: the simulated one comes later to its loss. `docs/validation/linux-tcp.md` has the "
    "same with our own queue on both sides."
)
FIFO = (
    "a full FIFO drops whoever arrives. Transfers send when a packet has left it, audio sends at any time, and so loses more; the "
    "kernel's transfers keep that rhythm more closely than ours."
)
FEW = "with 19 transfers three runs are few, and the intervals of both sides are wide; the difference is near the tolerance."
NOTES: list[tuple[str, str, str]] = [
    ("bulk-*", "pfifo", FIFO),
    ("cubic-*", "pfifo", FIFO),
    ("bulk-*", "fq_codel", TCP),
    ("cubic-*", "codel", TCP),
    ("above-share", "*", FEW),
]
"""Patterns of a mix and of a queue, and what is known of their differences."""


def page(cases: list[dict], mixes: list[Mix], kernels: list[str], seeds: int) -> tuple[str, list[str]]:
    """The page, and the cases that differ without a note."""
    head = [HEAD.format(kernel=" and ".join(kernels), seeds=seeds), overview(cases)]
    if missing := [mix.name for mix in MIXES if mix not in mixes]:
        head.append(f"Not measured yet: {', '.join(missing)}.\n")
    parts, unexplained = sections(cases, mixes, ("linux", "Linux"), NOTES)
    return "\n".join([*head, *parts]), unexplained
