"""What differs between Cutline and ns-2 beyond noise, and why: the words of `docs/validation/ns2.md`."""

import fnmatch

HEAD = """# Against ns-2

The same dumbbells in Cutline and in ns-2.35, {seeds} seeds each, side by side with 95 % confidence intervals (Student's t; the
difference by Welch). `make validate` writes this page anew.

Cutline runs here with `defaults = "ns-2"` in its transports: packets of 1000 B in all, an initial window of 2, a clock of 10 ms, a
least timeout of 0.2 s, growth by the acknowledgement (RFC 5681 eq. 3), and ns-2's ways to halve and deflate the window, to answer
duplicates after a timeout, to hold back bursts in recovery, and to time one segment at a time. TFRC has ns-2's timeout in its
equation (from a clock of 100 ms, the factor of the timeout at most 1), its gains of 0.95, a rate that rises by a packet a round trip, a
receive rate that limits it to no less than a packet a round trip, and a nofeedback timer of two round trips that halves it. Everywhere else
Cutline's own defaults are the RFCs' (RFC 5681, 6298, 6582, 6928); what ns-2 does differently is named, parameter by parameter, in
the documentation of `cutline_transport::tcp::Params` and `tfrc::Params`.

RED and Adaptive RED have the same thresholds, weight, max_p, slope, spacing and steps in both engines, and count packets. Their
own average and max_p are read every 0.1 s. RED has ns-2's spacing (`wait`), Adaptive RED the papers' (`uniform`). `variant = "ns-2"`
makes Cutline's RED as ns-2's where that departs from the papers: it never hits the first packet above min_th nor one that finds
fewer than two waiting, lets max_p step over its floor and ceiling, counts the 0.5 s between its steps from the last that
changed something, and computes the gentle slope once, from the first max_p.

One difference is known and not explained. 20 TFRC flows alone over RED with max_p of 1 oscillate in step in ns-2: the standard deviation of
the queue is 8.1 packets (12.9 with uniform spacing), where Cutline's is 3.2 (3.1). Means of queue and drops agree. In ns-2 the
oscillation needs the clock of 100 ms in the equation's timeout (with 10 ms: 2.4) and one feedback a round trip (with two: 2.7); gains of 0.9
(8.6), no discounting (8.4) and other starts do not change it. In Cutline it is 4.8 without the feedback that a new loss event sends at once,
and 7.1 if a rate that rises may pass the equation's by a packet a round trip, but then every queue drops a tenth too much.

A measure *shows no difference* when the interval of the difference holds zero. It is *small* when it is more than noise but less
than matters (1 % of utilisation, 5 % of a queue or goodput, 10 % of a drop rate or max_p, 15 % of a spread). What differs beyond
that is explained beside it, or was looked at again with four times as many new seeds. ns-2's seeds are scattered: its generator
is linear in the seed, so that runs with 1, 2, 3 would be near relations.
"""

SYN = (
    "ns-2 begins with a SYN, which is a sample of the empty path's round trip more; its timeout is shorter when the queue "
    "fills in the first seconds, and runs out too early. Without the SYN both agree: see [no SYN](#{}-no-syn)"
)
PHASE = (
    "the phase of equal delays decides here whose packets find the queue full (Floyd and Jacobson 1991); with 0.03 ms less "
    "on each access link both agree: see [off phase](#newreno-100-drop-tail-small-off-phase)"
)
SACK = (
    "ns-2's Sack1 is older than RFC 6675, which Cutline follows: it counts what is in the network by duplicates, and takes no segment "
    "for lost by what was selectively acknowledged above it. Which of these makes the difference is not known"
)
LOSSY = (
    "at 40 % loss TFRC sends a packet in several round trips, and its rate is made by timers and limits rather than by the equation. "
    "Three rules of ns-2 were found and are in `defaults = \"ns-2\"` (`bound-timeouts`, `packet-per-round-trip`, `nofeedback-halves`); what "
    "is left has not been found"
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
"""Pattern of a case's name, pattern of a measure, and the explanation; the first that fits is taken."""


def note(case: str, measure: str) -> str | None:
    """Why a measure of a case differs."""
    fits = (why for cases, measures, why in NOTES if fnmatch.fnmatch(case, cases) and fnmatch.fnmatch(measure, measures))
    return next(fits, None)
