"""The page `docs/validation/linux.md`: a table for each mix, with both engines beside each other."""

from linux_mixes import MIXES, QUEUES
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

CAKE is measured with its own shaper instead of HTB, with `rtt 300ms`; `cake-100ms` has CAKE's default. All flows come from one host, and
`triple-isolate` is in force. `cake-hosts` is `dual-srchost`, with UDP and transfers, or the two classes of UDP, on a host each.
`cake-diffserv4` has marks: EF for audio and the slow flows of `udp-fat`, AF31 for video; Cutline's flows have the hints that its router
takes from these code points. FQ-PIE and CAKE have their default limits, and Cutline's the same.
"""

TCP = (
    "with UDP alone this queue agrees, so what differs is TCP: the simulated one comes later to its loss. `docs/validation/linux-tcp.md` has the "
    "same with our own queue on both sides."
)
FIFO = (
    "a full FIFO drops the packet that arrives. Transfers send when a packet has left it, audio sends at any time, and so loses more; the "
    "kernel's transfers keep that rhythm more closely than ours."
)
FEW = "with 19 transfers three runs are few, and the intervals of both sides are wide; the difference is near the tolerance."
VIDEO = (
    "the video gets what 19 transfers leave to it. With FQ-CoDel, FQ-PIE and CAKE alike Cutline's loses more of it than Linux's, while the queues agree "
    "with UDP alone and, for CAKE, where the video has a host of its own. That points to TCP, but the cause has not been shown."
)
START = (
    "the largest delays of the marked flows are those of the first seconds after the warm-up, while their loss still grows, and depend on when "
    "the fat flow starts. Eight runs of Cutline have 126 to 201 ms, and a mean of 162; Linux's three 127 to 164."
)
NOTES: list[tuple[str, str, str]] = [
    ("bulk-*", "pfifo", FIFO),
    ("cubic-*", "pfifo", FIFO),
    ("bulk-*", "fq_codel", TCP),
    ("cubic-*", "codel", TCP),
    ("above-share", "cake", VIDEO),
    ("above-share", "fq_pie", VIDEO),
    ("above-share", "*", FEW),
    ("udp-fat", "cake-diffserv4", START),
]
"""Patterns of a mix and of a queue, and what is known of their differences."""


def not_measured(cases: list[dict]) -> list[str]:
    """The queues that have not been measured with all of their mixes, with those that are missing."""
    done = {(case["mix"], case["queue"]) for case in cases}
    missing = {queue.name: [mix.name for mix in MIXES if queue.has(mix) and (mix.name, queue.name) not in done] for queue in QUEUES}
    return [f"{queue} with {', '.join(mixes)}" for queue, mixes in missing.items() if mixes]


def page(cases: list[dict], kernel: str, seeds: int) -> tuple[str, list[str]]:
    """The page, and the cases that differ without a note."""
    head = [HEAD.format(kernel=kernel, seeds=seeds), overview(cases)]
    measured = {case["mix"] for case in cases}
    if missing := not_measured(cases):
        head.append(f"Not measured yet: {'; '.join(missing)}.\n")
    parts, unexplained = sections(cases, [mix for mix in MIXES if mix.name in measured], ("linux", "Linux"), NOTES)
    return "\n".join([*head, *parts]), unexplained
