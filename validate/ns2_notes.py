"""Differences between Cutline and ns-2 beyond noise, with their causes: the texts of `docs/validation/ns2.md`."""

import fnmatch

HEAD = """# Against ns-2

This page compares the same dumbbells in Cutline and in ns-2.35, with {seeds} seeds each and 95 %
confidence intervals (Student's t; the difference by Welch). `make validate` rewrites this page.

## Conditions

Cutline runs here with `defaults = "ns-2"` in its transports. TCP has these settings:

- packets of 1000 B in all, an initial window of 2, a clock of 10 ms, a minimum timeout of 0.2 s,
  growth by the acknowledgement (RFC 5681 eq. 3),
- ns-2's rules for halving and deflating the window, for duplicates after a timeout, for bursts in
  recovery, and for timing one segment at a time.

TFRC has these settings:

- ns-2's timeout in its equation (from a clock of 100 ms, the factor of the timeout at most 1),
- ns-2's gains of 0.95,
- a rate that rises by a packet per round trip,
- a receive rate that limits the sending rate to no less than a packet per round trip,
- a nofeedback timer of two round trips that halves the rate.

Cutline's own defaults elsewhere are those of the RFCs (RFC 5681, 6298, 6582, 6928). The
documentation of `cutline_transport::tcp::Params` and `tfrc::Params` lists ns-2's differences,
parameter by parameter.

RED and Adaptive RED have the same thresholds, weight, max_p, slope, spacing and steps in both
engines, and count packets. Their own average and max_p are read every 0.1 s. RED has ns-2's spacing
(`wait`), Adaptive RED the spacing of the papers (`uniform`). `variant = "ns-2"` gives Cutline's RED
the rules of ns-2 that differ from the papers:

- RED never drops the first packet above min_th, nor a packet that finds fewer than two packets
  waiting.
- max_p may cross its lower and upper bound in a step.
- The 0.5 s between two steps are counted from the last step that changed max_p.
- The gentle slope is computed once, from the first max_p.

## A known difference without an explanation

20 TFRC flows alone over RED with max_p of 1 oscillate synchronously in ns-2. The standard deviation
of the queue in packets is:

| engine and settings | standard deviation |
| --- | --- |
| ns-2 | 8.1 |
| ns-2, uniform spacing | 12.9 |
| ns-2, a clock of 10 ms in the equation's timeout | 2.4 |
| ns-2, two feedbacks per round trip | 2.7 |
| ns-2, gains of 0.9 | 8.6 |
| ns-2, no discounting | 8.4 |
| Cutline | 3.2 |
| Cutline, uniform spacing | 3.1 |
| Cutline, without the feedback that a new loss event sends at once | 4.8 |
| Cutline, with a rising rate that may exceed the equation's by a packet per round trip | 7.1 |

In ns-2 the oscillation needs the clock of 100 ms and one feedback per round trip. Other start times
do not change it. With the last setting of Cutline every queue drops a tenth too much. The means of
queue and drops agree.

## Judgements

| judgement | meaning |
| --- | --- |
| no difference seen | the interval of the difference contains zero |
| small | the difference is more than noise, but within the tolerance |
| differs | the difference is larger; an explanation is below the table, or the case was measured again with four times as many new seeds |

The tolerances are 1 % of utilisation, 5 % of a queue or goodput, 10 % of a drop rate or max_p, and
15 % of a spread. The seeds of ns-2 are scattered, because its generator is linear in the seed, so
that runs with the seeds 1, 2, 3 would be correlated.

## Results
"""

SYN = (
    "ns-2 begins with a SYN, which is an additional sample of the round-trip time of the empty path. Its timeout is shorter "
    "when the queue fills in the first seconds, and expires too early. Without the SYN both engines agree: see "
    "[no SYN](#{}-no-syn)"
)
PHASE = (
    "the phase of equal delays decides here whose packets find the queue full (Floyd and Jacobson 1991). With 0.03 ms less "
    "on each access link both engines agree: see [off phase](#newreno-100-drop-tail-small-off-phase)"
)
SACK = (
    "ns-2's Sack1 is older than RFC 6675, which Cutline follows. Sack1 counts the packets in the network by duplicates, and does "
    "not infer the loss of a segment from selective acknowledgements above it. It is not known which of the two causes the "
    "difference"
)
LOSSY = (
    "at 40 % loss TFRC sends a packet in several round trips, and timers and limits determine its rate rather than the equation. "
    "Three rules of ns-2 were found and are in `defaults = \"ns-2\"` (`bound-timeouts`, `packet-per-round-trip`, "
    "`nofeedback-halves`). The cause of the remaining difference has not been found"
)
NOTES: list[tuple[str, str, str]] = [
    ("tfrc-10-under-udp-*", "tfrc.*", LOSSY),
    ("sack-*", "newreno.timeouts", SACK),
    ("sack-*", "newreno.retransmissions", SACK),
    ("mixed-three", "newreno.retransmissions", SYN.format("mixed-three")),
    ("newreno-20-pi-window-20", "newreno.timeouts", SYN.format("newreno-20-pi-window-20")),
    ("newreno-20-pi-window-20", "newreno.retransmissions", SYN.format("newreno-20-pi-window-20")),
    ("newreno-100-drop-tail-small", "newreno.timeouts", PHASE),
    ("newreno-100-drop-tail-small", "newreno.spread", PHASE),
    ("newreno-100-drop-tail-small", "queue", PHASE),
]
"""Pattern of a case's name, pattern of a measure, and the explanation. The first match applies."""


def note(case: str, measure: str) -> str | None:
    """The explanation of a difference in a measure of a case, if there is one."""
    fits = (why for cases, measures, why in NOTES if fnmatch.fnmatch(case, cases) and fnmatch.fnmatch(measure, measures))
    return next(fits, None)
