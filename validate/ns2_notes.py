"""What differs between Cutline and ns-2 beyond noise, and why: the words of `docs/validation/ns2.md`."""

import fnmatch

HEAD = """# Against ns-2

The same dumbbells in Cutline and in ns-2.35, {seeds} seeds each, side by side with 95 % confidence intervals (Student's t; the
difference by Welch). `make validate` writes this page anew.

Cutline runs here with `defaults = "ns-2"` in its transports: packets of 1000 B in all, an initial window of 2, a clock of 10 ms, a
least timeout of 0.2 s, growth by the acknowledgement (RFC 5681 eq. 3), and ns-2's ways to halve and deflate the window, to answer
duplicates after a timeout, to hold back bursts in recovery, and to time one segment at a time. TFRC has ns-2's timeout in its
equation (the round-trip time and 300 ms), its gains of 0.95, and a rate that rises by a packet a round trip. Everywhere else
Cutline's own defaults are the RFCs' (RFC 5681, 6298, 6582, 6928); what ns-2 does differently is named, parameter by parameter, in
the documentation of `cutline_transport::tcp::Params` and `tfrc::Params`.

RED and Adaptive RED have the same thresholds, weight, max_p, slope, spacing and steps in both engines, and count packets. Their
own average and max_p are read every 0.1 s. RED has ns-2's spacing (`wait`), Adaptive RED the papers' (`uniform`). Where they
depart from the papers ns-2's are not followed: it never hits the first packet above min_th nor one that finds fewer than two
waiting, lets max_p step over its floor and ceiling, and counts the 0.5 s between its steps from the last that changed something.

A measure *shows no difference* when the interval of the difference holds zero. It is *small* when it is more than noise but less
than matters (1 % of utilisation, 5 % of a queue or goodput, 10 % of a drop rate or max_p, 15 % of a spread). What differs beyond that is
explained beside it, or says that it is not explained yet.
"""

SYN = (
    "ns-2 begins with a SYN, which is a sample of the empty path's round trip more; the timeout is shorter when the queue "
    "fills in the first seconds, and runs out too early (0.050 timeouts a flow in the first 21 s, Cutline 0.015; from then "
    "on both have 0.01 to 0.02). With `syn_ false` ns-2 has 0.025 timeouts and 4.96 retransmissions a flow where Cutline "
    "has 0.031 and 4.86 (8 seeds)"
)
PHASE = (
    "the phase of equal delays decides here whose packets find the queue full (Floyd and Jacobson 1991): 0.03 ms less on "
    "each access link makes 1.0 timeouts a flow 2.4 in ns-2, and then both agree; see "
    "[off phase](#newreno-100-drop-tail-small-off-phase). In step, each flow has its first timeout in the first seconds "
    "(1.01 a flow in both by 21 s) and next to none in ns-2 after that (0.05), a few in Cutline (0.3)"
)

SYN_MIXED = "ns-2's SYN: with `syn_ false` ns-2 has 76.2 ± 2.1 retransmissions a flow (20 seeds)"
START = (
    "what the first seconds leave behind: 0.86 timeouts a flow in the overshoot of slow start against 0.98; measured from "
    "60 s to 200 s instead, the variation is 0.049 ± 0.005 in Cutline and 0.049 ± 0.006 in ns-2 (12 seeds)"
)

RED_NS2 = (
    "three rules of ns-2's code that the papers do not have, and that tell where the queue is short and max_p at its floor: the "
    "first packet above min_th, and one that finds fewer than two waiting, is never hit; max_p may fall below the floor by "
    "a step; and a step is taken with the first arrival 0.5 s after the last change, not every 0.5 s. With all three put "
    "into Cutline's RED the mean queue is 15.90 against ns-2's 15.91, RED's average 15.49 against 15.50, the goodput a flow "
    "1299 against 1298 kbit/s and the timeouts 1.17 ± 0.04 against 1.23 ± 0.05; without them 15.18, 14.77, 1291 and 1.45; "
    "with the first alone 15.59, 15.17, 1296 and 1.21 (100 seeds). Cutline keeps to Floyd and Jacobson's figure 2 and to "
    "Adaptive RED's figure 1"
)
ONE_NEWRENO = (
    "one flow has what 19 TFRC leave of a full link, and each of those takes 0.2 % more: with 100 seeds NewReno has "
    "233.7 ± 3.9 against 242.6 ± 3.3 kbit/s, TFRC 250.7 ± 0.2 against 250.3 ± 0.2. RED itself is the same: with max_p held at 4 % "
    "its average is 46.03 packets against 46.02 under 20 NewReno, and 47.8 against 47.4 under 20 TFRC (60 seeds). Only "
    "uniform spacing, where two drops may follow each other closely, shows this of TFRC; with `wait` the averages are 50.14 and "
    "50.07 ± 0.1. What in TFRC it is has not been found"
)
RED_SPREAD = "chance: with 100 seeds the difference is 0.003 ± 0.004 of 0.070"
UDP_RED = "chance: with 100 seeds the difference is -0.0003 ± 0.0007 of 0.008"

NOTES: list[tuple[str, str, str]] = [
    ("newreno-3-ared", "*", RED_NS2),
    ("ared-1-19", "newreno.goodput", ONE_NEWRENO),
    ("red-15-5", "newreno.spread", RED_SPREAD),
    ("udp-overload-red", "udp.spread", UDP_RED),
    ("newreno-20-drop-tail", "newreno.spread", START),
    ("mixed-three", "newreno.retransmissions", SYN_MIXED),
    ("newreno-20-pi-window-20", "newreno.timeouts", SYN),
    ("newreno-20-pi-window-20", "newreno.retransmissions", SYN),
    ("newreno-100-drop-tail-small", "newreno.timeouts", PHASE),
    ("newreno-100-drop-tail-small", "newreno.spread", PHASE),
    ("newreno-100-drop-tail-small", "queue", PHASE),
]
"""Pattern of a case's name, pattern of a measure, and the explanation; the first that fits is taken."""


def note(case: str, measure: str) -> str | None:
    """Why a measure of a case differs."""
    fits = (why for cases, measures, why in NOTES if fnmatch.fnmatch(case, cases) and fnmatch.fnmatch(measure, measures))
    return next(fits, None)
