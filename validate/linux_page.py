"""The page `docs/validation/linux.md`: a table for each mix with both engines."""

from linux_mixes import MIXES, QUEUES
from peer_page import JUDGEMENTS, overview, paragraph, sections

HEAD = """# Against the Linux kernel's queues

This page compares the same flows through Cutline's queues and through those of Linux
{kernel}, with {seeds} runs each and 95 % confidence intervals (Student's t;
the difference by Welch). `make validate-linux` rewrites this page.

The kernel is Debian's, unchanged. It runs in a virtual machine whose processor executes one
instruction per nanosecond of virtual time. Three namespaces are a sender, a router and a receiver.
The router's HTB sends 15 Mbit/s, one packet at a time, from the measured queue. The base round trip
is 300 ms. TCP is the kernel's own, without ECN. Every data packet has 1000 B with its Ethernet
header. The MTU is the same, and Linux's queues derive their quantum and thresholds from it.

Cutline runs the same flows with the queues' defaults, which are Linux's except for these 1000 B,
and with the TCP of `defaults = "linux"`. Linux's CUBIC and Reno are different implementations from
Cutline's. With UDP alone a difference is due to the queue. With TCP it may be due to either.
Therefore the mixes without TCP come first.

Delays are those of the packets of each UDP flow in the queue, as means over the flows. The kernel's
delays are from the sender's `send` to the arrival at the receiver, without the time on the wire.
`fq_codel-full` has a limit of 100 packets, which Poisson flows reach at times.

{judgements}

The virtual machine forwards in no virtual time, but its HTB sends 0.2 % less than the link's rate.
This kernel has no `dualpi2`.

CAKE and FQ-PIE have these settings:

- CAKE is measured with its own shaper instead of HTB, with `rtt 300ms`; `cake-100ms` has CAKE's
  default.
- All flows come from one host, and `triple-isolate` is active.
- `cake-hosts` is `dual-srchost`, with UDP and transfers, or the two classes of UDP, on separate
  hosts.
- `cake-diffserv4` has marks: EF for audio and the slow flows of `udp-fat`, AF31 for video.
  Cutline's flows have the hints that its router derives from these code points.
- FQ-PIE and CAKE have their default limits, and Cutline's have the same.
"""

TCP = (
    "with UDP alone this queue agrees, so TCP causes the difference: the simulated TCP reaches its loss later. "
    "`docs/validation/linux-tcp.md` has the same comparison with Cutline's queue on both sides."
)
FIFO = (
    "a full FIFO drops the arriving packet. Transfers send when one of their packets has left the queue, and audio sends at any time, so "
    "audio loses more. The kernel's transfers keep this rhythm more closely than the simulated transfers."
)
FEW = "three runs with 19 transfers are few, and the intervals of both sides are wide. The difference is close to the tolerance."
VIDEO = (
    "the video gets the capacity that 19 transfers leave. With FQ-CoDel, FQ-PIE and CAKE, Cutline's queue loses more of the video than "
    "Linux's. The queues agree with UDP alone and, for CAKE, if the video has its own host. This suggests TCP as the cause, but the cause "
    "has not been shown."
)
START = (
    "the largest delays of the marked flows occur in the first seconds after the warm-up, while their loss still grows. They depend on the "
    "start time of the fat flow. Eight runs of Cutline have 126 to 201 ms, with a mean of 162; the three runs of Linux have 127 to 164."
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
"""Patterns of a mix and of a queue, and the known causes of their differences."""


def not_measured(cases: list[dict]) -> list[str]:
    """The queues that have not been measured with all of their mixes, with those that are missing."""
    done = {(case["mix"], case["queue"]) for case in cases}
    missing = {queue.name: [mix.name for mix in MIXES if queue.has(mix) and (mix.name, queue.name) not in done] for queue in QUEUES}
    return [f"{queue} with {', '.join(mixes)}" for queue, mixes in missing.items() if mixes]


def page(cases: list[dict], kernel: str, seeds: int) -> tuple[str, list[str]]:
    """The page, and the cases that differ without a note."""
    head = [HEAD.format(kernel=kernel, seeds=seeds, judgements=JUDGEMENTS), overview(cases)]
    measured = {case["mix"] for case in cases}
    if missing := not_measured(cases):
        head.append(paragraph(f"Not measured yet: {'; '.join(missing)}."))
    parts, unexplained = sections(cases, [mix for mix in MIXES if mix.name in measured], ("linux", "Linux"), NOTES)
    return "\n".join([*head, *parts]), unexplained
