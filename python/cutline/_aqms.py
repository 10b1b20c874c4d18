"""The AQMs of the registry. Written by python/tools/generate_aqms.py; do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._queue import Queue

__all__ = [
    "DropTail", "Pi", "Red", "Ared", "RedWorcester", "Blue", "Sfc", "Pie", "Pi2", "CoDel", "FqCoDel", "FqPie", "Cake",
    "StrictPriority", "Drr", "Afd", "DualPi2", "ProtectedDualPi2", "Deltic", "Abe", "Sieve",
]


class DropTail(Queue):
    """Drop-tail (RFC 7567 section 2.1).

    TSQ works over it.
    """

    name = "drop-tail"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        tsq: bool | Mapping[str, Any] = False,
        seed: int = 1,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, tsq=tsq, seed=seed)


class Pi(Queue):
    """PI (Hollot, Misra, Towsley, Gong, INFOCOM 2001).

    TSQ works over it.

    a: The gain on the present error of the queue. Allowed is a number from 0 to 1 per packet; the default is 1.822e-5 (Hollot et
        al. 2001 section IV).
    b: The gain on the error one sample ago; below `a`. Allowed is a number from 0 to 1 per packet; the default is 1.816e-5
        (Hollot et al. 2001 section IV).
    frequency: Sampling frequency of the queue. Allowed is a frequency from 0.001 Hz to 1000000 Hz; the default is 170 Hz (Hollot
        et al. 2001 section IV).
    q_ref: The length at which the queue is held. Allowed is a number from 0 to 10000000 packets; the default is 200 (Hollot et
        al. 2001 section V; TSQ section 4.1).
    mean_packet: Packet size by which the queue in bytes is divided; off counts whole packets. Allowed is a whole number from 1 to
        1000000 B, or off; the default is off (off: whole packets are counted, as in the paper).
    """

    name = "pi"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        tsq: bool | Mapping[str, Any] = False,
        seed: int = 1,
        a: float | str | None = None,
        b: float | str | None = None,
        frequency: str | None = None,
        q_ref: float | str | None = None,
        mean_packet: int | str | bool | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, tsq=tsq, seed=seed, a=a, b=b, frequency=frequency, q_ref=q_ref,
            mean_packet=mean_packet)


class Red(Queue):
    """RED (Floyd, Jacobson, IEEE/ACM ToN 1993).

    TSQ works over it.

    min_th: Average queue below which no packet is hit; off is automatic, from the link's rate. Allowed is a number from 0 to
        10000000 packets, or off; the default is 5 (Floyd and Jacobson 1993 section VI).
    max_th: Average queue at which the probability reaches max-p, above min-th; off is automatic, 3 min-th. Allowed is a number
        from 0 to 10000000 packets, or off; the default is 15 (Floyd and Jacobson 1993 section VI).
    max_p: Probability at max-th; the initial value if max-p adapts. Allowed is a number from 0.0001 to 1; the default is 0.02
        (Floyd and Jacobson 1993 section VI).
    w_q: The weight of each arrival in the average queue; off is automatic, from the link's rate. Allowed is a number from
        0.000001 to 1, or off; the default is 0.002 (Floyd and Jacobson 1993 section VI).
    gentle: Rise of the probability from max-p at max-th to 1 at twice max-th, instead of a jump to 1. Allowed is true or false;
        the default is false (Floyd and Jacobson 1993; Floyd 2000 recommends true).
    mode: Unit of the queue's length: packets, or bytes, in which a packet is hit in proportion to its size. Allowed is one of
        packets, bytes; the default is packets (Floyd and Jacobson 1993 section VII).
    spacing: Number of packets between hits: uniform over 1 to 1/p - 1; wait for 1/p, then uniform over the next 1/p; none draws
        for each packet. Allowed is one of uniform, wait, none; the default is uniform (Floyd and Jacobson 1993 figure 2).
    mean_packet: Packet size that converts bytes to packets. Allowed is a whole number from 1 to 1000000 B; the default is 1000
        (the papers' packets).
    target_delay: Target of the average delay from which an automatic min-th follows. Allowed is a time from 100 us to 10 s; the
        default is 5 ms (Adaptive RED 2001 section 6).
    variant: Variant of RED: that of the papers, or that of ns-2. Allowed is one of papers, ns-2; the default is papers (the
        papers; ns-2.35 for ns-2).
    """

    name = "red"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        tsq: bool | Mapping[str, Any] = False,
        seed: int = 1,
        min_th: float | str | bool | None = None,
        max_th: float | str | bool | None = None,
        max_p: float | str | None = None,
        w_q: float | str | bool | None = None,
        gentle: bool | None = None,
        mode: str | None = None,
        spacing: str | None = None,
        mean_packet: int | str | None = None,
        target_delay: str | None = None,
        variant: str | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, tsq=tsq, seed=seed, min_th=min_th, max_th=max_th, max_p=max_p, w_q=w_q,
            gentle=gentle, mode=mode, spacing=spacing, mean_packet=mean_packet, target_delay=target_delay, variant=variant)


class Ared(Queue):
    """Adaptive RED (Floyd, Gummadi, Shenker, ICSI 2001).

    TSQ works over it.

    min_th: Average queue below which no packet is hit; off is automatic, from the link's rate. Allowed is a number from 0 to
        10000000 packets, or off; the default is off (automatic: Adaptive RED 2001 section 6).
    max_th: Average queue at which the probability reaches max-p, above min-th; off is automatic, 3 min-th. Allowed is a number
        from 0 to 10000000 packets, or off; the default is off (automatic: Adaptive RED 2001 section 6).
    max_p: Probability at max-th; the initial value if max-p adapts. Allowed is a number from 0.0001 to 1; the default is 0.02
        (Floyd and Jacobson 1993).
    w_q: The weight of each arrival in the average queue; off is automatic, from the link's rate. Allowed is a number from
        0.000001 to 1, or off; the default is off (automatic: Adaptive RED 2001 section 5).
    gentle: Rise of the probability from max-p at max-th to 1 at twice max-th, instead of a jump to 1. Allowed is true or false;
        the default is true (Adaptive RED 2001 section 4).
    mode: Unit of the queue's length: packets, or bytes, in which a packet is hit in proportion to its size. Allowed is one of
        packets, bytes; the default is packets (Floyd and Jacobson 1993 section VII).
    spacing: Number of packets between hits: uniform over 1 to 1/p - 1; wait for 1/p, then uniform over the next 1/p; none draws
        for each packet. Allowed is one of uniform, wait, none; the default is uniform (Floyd and Jacobson 1993 figure 2).
    mean_packet: Packet size that converts bytes to packets. Allowed is a whole number from 1 to 1000000 B; the default is 1000
        (the papers' packets).
    target_delay: Target of the average delay from which an automatic min-th follows. Allowed is a time from 100 us to 10 s; the
        default is 5 ms (Adaptive RED 2001 section 6).
    variant: Variant of RED: that of the papers, or that of ns-2. Allowed is one of papers, ns-2; the default is papers (the
        papers; ns-2.35 for ns-2).
    interval: The time between changes of max_p. Allowed is a time from 1 ms to 100 s; the default is 500 ms (Adaptive RED 2001
        figure 1).
    alpha: Increment of max_p; off is min(0.01, max_p / 4). In the variant ns-2 at most max_p / 4. Allowed is a number from 0.0001
        to 1, or off; the default is off (off: Adaptive RED 2001 figure 1; RED-Worcester's figure 4 has 0.1).
    beta: Factor by which max_p is decreased. Allowed is a number from 0.01 to 0.999; the default is 0.9 (Adaptive RED 2001 figure
        1).
    range: Largest deviation of the average from its target, as a share of max-th - min-th. Allowed is a number from 0 to 0.5; the
        default is 0.1 (Adaptive RED 2001 figure 1).
    floor: The least max_p. Allowed is a number from 0.0001 to 1; the default is 0.01 (Adaptive RED 2001 figure 1).
    ceiling: The largest max_p; not below floor. Allowed is a number from 0.0001 to 1; the default is 0.5 (Adaptive RED 2001
        figure 1).
    """

    name = "ared"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        tsq: bool | Mapping[str, Any] = False,
        seed: int = 1,
        min_th: float | str | bool | None = None,
        max_th: float | str | bool | None = None,
        max_p: float | str | None = None,
        w_q: float | str | bool | None = None,
        gentle: bool | None = None,
        mode: str | None = None,
        spacing: str | None = None,
        mean_packet: int | str | None = None,
        target_delay: str | None = None,
        variant: str | None = None,
        interval: str | None = None,
        alpha: float | str | bool | None = None,
        beta: float | str | None = None,
        range: float | str | None = None,
        floor: float | str | None = None,
        ceiling: float | str | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, tsq=tsq, seed=seed, min_th=min_th, max_th=max_th, max_p=max_p, w_q=w_q,
            gentle=gentle, mode=mode, spacing=spacing, mean_packet=mean_packet, target_delay=target_delay, variant=variant,
            interval=interval, alpha=alpha, beta=beta, range=range, floor=floor, ceiling=ceiling)


class RedWorcester(Queue):
    """RED-Worcester (the RED-Worcester paper, section 2).

    TSQ works over it.

    min_th: Average queue below which no packet is hit; off is automatic, from the link's rate. Allowed is a number from 0 to
        10000000 packets, or off; the default is off (automatic: Adaptive RED 2001 section 6).
    max_th: Average queue at which the probability reaches max-p, above min-th; off is automatic, 3 min-th. Allowed is a number
        from 0 to 10000000 packets, or off; the default is off (automatic: Adaptive RED 2001 section 6).
    max_p: Probability at max-th; the initial value if max-p adapts. Allowed is a number from 0.0001 to 1; the default is 0.02
        (Floyd and Jacobson 1993).
    w_q: The weight of each arrival in the average queue; off is automatic, from the link's rate. Allowed is a number from
        0.000001 to 1, or off; the default is off (automatic: Adaptive RED 2001 section 5).
    gentle: Rise of the probability from max-p at max-th to 1 at twice max-th, instead of a jump to 1. Allowed is true or false;
        the default is true (Adaptive RED 2001 section 4).
    mode: Unit of the queue's length: packets, or bytes, in which a packet is hit in proportion to its size. Allowed is one of
        packets, bytes; the default is packets (Floyd and Jacobson 1993 section VII).
    spacing: Number of packets between hits: uniform over 1 to 1/p - 1; wait for 1/p, then uniform over the next 1/p; none draws
        for each packet. Allowed is one of uniform, wait, none; the default is uniform (Floyd and Jacobson 1993 figure 2).
    mean_packet: Packet size that converts bytes to packets. Allowed is a whole number from 1 to 1000000 B; the default is 1000
        (the papers' packets).
    target_delay: Target of the average delay from which an automatic min-th follows. Allowed is a time from 100 us to 10 s; the
        default is 5 ms (Adaptive RED 2001 section 6).
    variant: Variant of RED: that of the papers, or that of ns-2. Allowed is one of papers, ns-2; the default is papers (the
        papers; ns-2.35 for ns-2).
    interval: The time between changes of max_p. Allowed is a time from 1 ms to 100 s; the default is 500 ms (Adaptive RED 2001
        figure 1).
    alpha: Increment of max_p; off is min(0.01, max_p / 4). In the variant ns-2 at most max_p / 4. Allowed is a number from 0.0001
        to 1, or off; the default is off (off: Adaptive RED 2001 figure 1; RED-Worcester's figure 4 has 0.1).
    beta: Factor by which max_p is decreased. Allowed is a number from 0.01 to 0.999; the default is 0.9 (Adaptive RED 2001 figure
        1).
    range: Largest deviation of the average from its target, as a share of max-th - min-th. Allowed is a number from 0 to 0.5; the
        default is 0.1 (Adaptive RED 2001 figure 1).
    floor: The least max_p. Allowed is a number from 0.0001 to 1; the default is 0.01 (Adaptive RED 2001 figure 1).
    ceiling: The largest max_p; not below floor. Allowed is a number from 0.0001 to 1; the default is 1 (RED-Worcester figure 10).
    w_t: The weight of each arrival in the moving target. Allowed is a number from 0.0001 to 1; the default is 0.02 (RED-Worcester
        section 2.3).
    step: Delay that level 1 requests; level n requests n times as much. Allowed is a time from 100 us to 1 s; the default is 5 ms
        (RED-Worcester section 4: level 16 is 80 ms).
    delays: The delay that each level requests, from 1 to 16. Allowed is a list of 16 times from 0 ns to 10 s, or off; the default
        is off (off: step times the level).
    largest_is_unmarked: Treatment of packets of the largest level as unmarked ones, which count with the middle of the
        thresholds. Allowed is true or false; the default is false (RED-Worcester's experiments mark all traffic).
    """

    name = "red-worcester"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        tsq: bool | Mapping[str, Any] = False,
        seed: int = 1,
        min_th: float | str | bool | None = None,
        max_th: float | str | bool | None = None,
        max_p: float | str | None = None,
        w_q: float | str | bool | None = None,
        gentle: bool | None = None,
        mode: str | None = None,
        spacing: str | None = None,
        mean_packet: int | str | None = None,
        target_delay: str | None = None,
        variant: str | None = None,
        interval: str | None = None,
        alpha: float | str | bool | None = None,
        beta: float | str | None = None,
        range: float | str | None = None,
        floor: float | str | None = None,
        ceiling: float | str | None = None,
        w_t: float | str | None = None,
        step: str | None = None,
        delays: Sequence[str] | bool | None = None,
        largest_is_unmarked: bool | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, tsq=tsq, seed=seed, min_th=min_th, max_th=max_th, max_p=max_p, w_q=w_q,
            gentle=gentle, mode=mode, spacing=spacing, mean_packet=mean_packet, target_delay=target_delay, variant=variant,
            interval=interval, alpha=alpha, beta=beta, range=range, floor=floor, ceiling=ceiling, w_t=w_t, step=step,
            delays=delays, largest_is_unmarked=largest_is_unmarked)


class Blue(Queue):
    """BLUE (Feng, Shin, Kandlur, Saha, IEEE/ACM ToN 2002).

    TSQ works over it.

    d1: Increment of p at a loss. Allowed is a number from 0.000001 to 1; the default is 0.02 (Feng et al. 2002, configuration
        B4).
    d2: Decrement of p at an idle link. Allowed is a number from 0.000001 to 1; the default is 0.002 (Feng et al. 2002,
        configuration B4).
    freeze_time: The shortest time between two changes of p. Allowed is a time from 1 ms to 100 s; the default is 100 ms (Feng et
        al. 2002, configuration B4).
    threshold: Queue length above which an arrival counts as a loss; off counts losses alone. Allowed is a number from 0 to
        10000000 packets, or off; the default is off (off: Feng et al. 2002 figure 4).
    """

    name = "blue"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        tsq: bool | Mapping[str, Any] = False,
        seed: int = 1,
        d1: float | str | None = None,
        d2: float | str | None = None,
        freeze_time: str | None = None,
        threshold: float | str | bool | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, tsq=tsq, seed=seed, d1=d1, d2=d2, freeze_time=freeze_time,
            threshold=threshold)


class Sfc(Queue):
    """SFC (after Gao, Hou, INFOCOM 2003; gains derived here).

    TSQ works over it.

    flows: N: number of TCP flows for which the gains are computed. Allowed is a whole number from 1 to 1000000; the default is 60
        (Hollot et al. 2001 section IV).
    rtt: R: round-trip time for which the gains are computed, queue included. Allowed is a time from 1 ms to 10 s; the default is
        246 ms (Hollot et al. 2001 section IV).
    q_ref: The length at which the queue is held. Allowed is a number from 0 to 10000000 packets; the default is 200 (as PI's, for
        comparison).
    mean_packet: Packet size that converts bytes to packets. Allowed is a whole number from 1 to 1000000 B; the default is 1000
        (TSQ section 4.1).
    interval: The time between samples. Allowed is a time from 1 ms to 10 s; the default is 20 ms (ours: about a twelfth of the
        rtt).
    """

    name = "sfc"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        tsq: bool | Mapping[str, Any] = False,
        seed: int = 1,
        flows: int | str | None = None,
        rtt: str | None = None,
        q_ref: float | str | None = None,
        mean_packet: int | str | None = None,
        interval: str | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, tsq=tsq, seed=seed, flows=flows, rtt=rtt, q_ref=q_ref,
            mean_packet=mean_packet, interval=interval)


class Pie(Queue):
    """PIE (RFC 8033).

    TSQ works over it.

    target: The queuing delay to hold. Allowed is a time from 100 us to 10 s; the default is 15 ms (RFC 8033 section 4.2).
    t_update: The time between updates of the probability. Allowed is a time from 1 ms to 10 s; the default is 15 ms (RFC 8033
        section 4.2).
    alpha: The gain on the delay's distance from the target. Allowed is a number from 0 to 100 per s; the default is 0.125 (RFC
        8033 section 4.2).
    beta: The gain on the delay's change since the last update. Allowed is a number from 0 to 100 per s; the default is 1.25 (RFC
        8033 section 4.2).
    max_burst: Duration of a burst into an empty queue of which no packet is dropped. Allowed is a time from 0 ns to 10 s; the
        default is 150 ms (RFC 8033 section 4.4).
    auto_tune: Smaller steps while the probability is small. Allowed is true or false; the default is true (RFC 8033 section 4.2).
    ecn_threshold: Probability from which packets are dropped even if they can be marked. Allowed is a number from 0 to 1; the
        default is 0.1 (RFC 8033 section 5.1).
    derandomize: Limits of the distance between drops, which are then neither close nor far apart. Allowed is true or false; the
        default is true (Linux; RFC 8033 section 5.4 leaves it open).
    estimate: Estimate of the delay: sojourn time, backlog over link rate, or measured departure rate. Auto: sojourn time, but
        link rate under TSQ. Allowed is one of auto, link-rate, timestamp, departure-rate; the default is auto (Linux and RFC 8033
        appendix A, except under TSQ).
    mean_packet: Size of a typical packet; no packet is dropped while the backlog is a few of them. Allowed is a whole number from
        1 to 1000000 B; the default is 1514 (Linux: the MTU and the Ethernet header; RFC 8033 appendix A has 1 KB).
    few: Backlog in typical packets at which no packet is dropped: below two, or up to two. Allowed is one of below-two,
        up-to-two; the default is below-two (Linux; RFC 8033 section 4.1 has up-to-two).
    decay: Condition of the probability's decay: a delay of 0, or one below half of the target. Allowed is one of empty,
        below-half; the default is empty (Linux, ns-3, RFC 8033 section 4.2; its appendix B has below-half).
    decay_share: Share of the probability that an update removes during decay. Allowed is a number from 0 to 1; the default is
        0.015625 (Linux; RFC 8033 section 4.2 has 0.02).
    high_delay: Delay above which the probability rises by 0.02 more in each update. Allowed is a time from 1 ms to 100 s, or off;
        the default is 250 ms (Linux; off in RFC 8033).
    guard: Delay that must reach half of the target before packets are dropped: the latest, or that of the last update. Allowed is
        one of latest, last-update; the default is latest (Linux; RFC 8033 section 4.1 has last-update).
    bytemode: Smaller probability for packets below `mean-packet`, in proportion to their size. Allowed is true or false; the
        default is false (Linux; RFC 8033 appendix B leaves it open).
    """

    name = "pie"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        tsq: bool | Mapping[str, Any] = False,
        seed: int = 1,
        target: str | None = None,
        t_update: str | None = None,
        alpha: float | str | None = None,
        beta: float | str | None = None,
        max_burst: str | None = None,
        auto_tune: bool | None = None,
        ecn_threshold: float | str | None = None,
        derandomize: bool | None = None,
        estimate: str | None = None,
        mean_packet: int | str | None = None,
        few: str | None = None,
        decay: str | None = None,
        decay_share: float | str | None = None,
        high_delay: str | bool | None = None,
        guard: str | None = None,
        bytemode: bool | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, tsq=tsq, seed=seed, target=target, t_update=t_update, alpha=alpha, beta=beta,
            max_burst=max_burst, auto_tune=auto_tune, ecn_threshold=ecn_threshold, derandomize=derandomize, estimate=estimate,
            mean_packet=mean_packet, few=few, decay=decay, decay_share=decay_share, high_delay=high_delay, guard=guard,
            bytemode=bytemode)


class Pi2(Queue):
    """PI2 (De Schepper, Bondarenko, Tsang, Briscoe, CoNEXT 2016).

    TSQ works over it.

    target: The queuing delay to hold. Allowed is a time from 100 us to 10 s; the default is 20 ms (De Schepper et al. 2016 table
        1).
    t_update: The time between updates of the probability. Allowed is a time from 1 ms to 10 s; the default is 32 ms (De Schepper
        et al. 2016 table 1).
    alpha: The gain on the delay's distance from the target. Allowed is a number from 0 to 100 per s; the default is 0.3125 (De
        Schepper et al. 2016 table 1).
    beta: The gain on the delay's change since the last update. Allowed is a number from 0 to 100 per s; the default is 3.125 (De
        Schepper et al. 2016 table 1).
    coupling: k: scalable packets are marked with probability k p', classic ones hit with p'^2. Allowed is a number from 1 to 10;
        the default is 2 (De Schepper et al. 2016 section 4).
    estimate: Estimate of the delay: backlog over link rate, sojourn time, or measured departure rate. Allowed is one of auto,
        link-rate, timestamp, departure-rate; the default is link-rate (ours: RFC 8033 section 4.3 takes timestamps, which differ
        by hint under TSQ).
    """

    name = "pi2"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        tsq: bool | Mapping[str, Any] = False,
        seed: int = 1,
        target: str | None = None,
        t_update: str | None = None,
        alpha: float | str | None = None,
        beta: float | str | None = None,
        coupling: float | str | None = None,
        estimate: str | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, tsq=tsq, seed=seed, target=target, t_update=t_update, alpha=alpha, beta=beta,
            coupling=coupling, estimate=estimate)


class CoDel(Queue):
    """CoDel (RFC 8289).

    TSQ does not work over it.

    target: Sojourn time up to which no packet is dropped. Allowed is a time from 10 us to 10 s; the default is 5 ms (RFC 8289
        section 4.3).
    interval: Time for which the target may be exceeded: about the longest round-trip time. Allowed is a time from 100 us to 100
        s; the default is 100 ms (RFC 8289 section 4.2).
    mtu: Backlog up to which no packet is dropped. Allowed is a whole number from 1 to 1000000 B; the default is 1514 (Linux: the
        MTU and the Ethernet header; RFC 8289 section 5 has the MTU).
    root: The square root of the control law: exact, or as Linux approximates it. Allowed is one of exact, newton; the default is
        exact (RFC 8289 section 5.6; Linux has newton).
    """

    name = "codel"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        seed: int = 1,
        target: str | None = None,
        interval: str | None = None,
        mtu: int | str | None = None,
        root: str | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, seed=seed, target=target, interval=interval, mtu=mtu, root=root)


class FqCoDel(Queue):
    """FQ-CoDel (RFC 8290).

    TSQ does not work over it.

    target: Sojourn time up to which no packet is dropped. Allowed is a time from 10 us to 10 s; the default is 5 ms (RFC 8289
        section 4.3).
    interval: Time for which the target may be exceeded: about the longest round-trip time. Allowed is a time from 100 us to 100
        s; the default is 100 ms (RFC 8289 section 4.2).
    mtu: Backlog up to which no packet is dropped. Allowed is a whole number from 1 to 1000000 B; the default is 1514 (Linux: the
        MTU and the Ethernet header; RFC 8289 section 5 has the MTU).
    root: The square root of the control law: exact, or as Linux approximates it. Allowed is one of exact, newton; the default is
        newton (Linux; RFC 8289 section 5.6 has the exact one).
    quantum: Bytes that a flow may send in its turn. Allowed is a whole number from 1 to 1000000 B; the default is 1514 (RFC 8290
        section 5.2.4).
    flows: The number of buckets that flows are hashed into. Allowed is a whole number from 1 to 65536; the default is 1024 (RFC
        8290 section 5.2.5).
    spare: Backlog that must exceed `mtu` for CoDel to drop: that of all flows together, or of the packet's flow. Allowed is one
        of qdisc-backlog, flow-backlog; the default is qdisc-backlog (Linux; ns-3 has flow-backlog, after RFC 8289 section 5.6).
    half: Unit in which the fattest flow is halved when the queue is full. Allowed is one of bytes, packets; the default is bytes
        (Linux; RFC 8290 section 4.1 has packets).
    drop_batch: Largest number of packets dropped at once to make room. Allowed is a whole number from 1 to 100000; the default is
        64 (RFC 8290 section 4.1; Linux's drop_batch).
    count_overflow: Treatment of packets dropped because the queue is full as drops of their flow's CoDel. Allowed is true or
        false; the default is true (Linux; not in RFC 8290).
    renew_lone_flow: Renewal of a lone flow: a new flow that is empty while there is no old one is new again with its next packet.
        Allowed is true or false; the default is true (Linux; RFC 8290 section 4.2 moves it to the old ones).
    """

    name = "fq-codel"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        seed: int = 1,
        target: str | None = None,
        interval: str | None = None,
        mtu: int | str | None = None,
        root: str | None = None,
        quantum: int | str | None = None,
        flows: int | str | None = None,
        spare: str | None = None,
        half: str | None = None,
        drop_batch: int | str | None = None,
        count_overflow: bool | None = None,
        renew_lone_flow: bool | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, seed=seed, target=target, interval=interval, mtu=mtu, root=root,
            quantum=quantum, flows=flows, spare=spare, half=half, drop_batch=drop_batch, count_overflow=count_overflow,
            renew_lone_flow=renew_lone_flow)


class FqPie(Queue):
    """FQ-PIE (Ramakrishnan, Cantarella, Tahiliani 2019; RFC 8033, RFC 8290).

    TSQ does not work over it.

    target: The queuing delay to hold. Allowed is a time from 100 us to 10 s; the default is 15 ms (RFC 8033 section 4.2).
    t_update: The time between updates of the probability. Allowed is a time from 1 ms to 10 s; the default is 15 ms (RFC 8033
        section 4.2).
    alpha: The gain on the delay's distance from the target. Allowed is a number from 0 to 100 per s; the default is 0.125 (RFC
        8033 section 4.2).
    beta: The gain on the delay's change since the last update. Allowed is a number from 0 to 100 per s; the default is 1.25 (RFC
        8033 section 4.2).
    max_burst: Duration of a burst into an empty queue of which no packet is dropped. Allowed is a time from 0 ns to 10 s; the
        default is 150 ms (RFC 8033 section 4.4).
    auto_tune: Smaller steps while the probability is small. Allowed is true or false; the default is true (RFC 8033 section 4.2).
    ecn_threshold: Probability from which packets are dropped even if they can be marked. Allowed is a number from 0 to 1; the
        default is 0.1 (RFC 8033 section 5.1).
    derandomize: Limits of the distance between drops, which are then neither close nor far apart. Allowed is true or false; the
        default is true (Linux; RFC 8033 section 5.4 leaves it open).
    estimate: Estimate of the delay: sojourn time, backlog over link rate, or measured departure rate. Auto: sojourn time, but
        link rate under TSQ. Allowed is one of auto, link-rate, timestamp, departure-rate; the default is auto (Linux and RFC 8033
        appendix A, except under TSQ).
    mean_packet: Size of a typical packet; no packet is dropped while the backlog is a few of them. Allowed is a whole number from
        1 to 1000000 B; the default is 1514 (Linux: the MTU and the Ethernet header; RFC 8033 appendix A has 1 KB).
    few: Backlog in typical packets at which no packet is dropped: below two, or up to two. Allowed is one of below-two,
        up-to-two; the default is below-two (Linux; RFC 8033 section 4.1 has up-to-two).
    decay: Condition of the probability's decay: a delay of 0, or one below half of the target. Allowed is one of empty,
        below-half; the default is empty (Linux, ns-3, RFC 8033 section 4.2; its appendix B has below-half).
    decay_share: Share of the probability that an update removes during decay. Allowed is a number from 0 to 1; the default is
        0.015625 (Linux; RFC 8033 section 4.2 has 0.02).
    high_delay: Delay above which the probability rises by 0.02 more in each update. Allowed is a time from 1 ms to 100 s, or off;
        the default is 250 ms (Linux; off in RFC 8033).
    guard: Delay that must reach half of the target before packets are dropped: the latest, or that of the last update. Allowed is
        one of latest, last-update; the default is latest (Linux; RFC 8033 section 4.1 has last-update).
    bytemode: Smaller probability for packets below `mean-packet`, in proportion to their size. Allowed is true or false; the
        default is false (Linux; RFC 8033 appendix B leaves it open).
    quantum: Bytes that a flow may send in its turn. Allowed is a whole number from 1 to 1000000 B; the default is 1514 (Linux:
        the MTU and the Ethernet header).
    flows: The number of buckets that flows are hashed into. Allowed is a whole number from 1 to 65536; the default is 1024
        (Linux).
    """

    name = "fq-pie"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        seed: int = 1,
        target: str | None = None,
        t_update: str | None = None,
        alpha: float | str | None = None,
        beta: float | str | None = None,
        max_burst: str | None = None,
        auto_tune: bool | None = None,
        ecn_threshold: float | str | None = None,
        derandomize: bool | None = None,
        estimate: str | None = None,
        mean_packet: int | str | None = None,
        few: str | None = None,
        decay: str | None = None,
        decay_share: float | str | None = None,
        high_delay: str | bool | None = None,
        guard: str | None = None,
        bytemode: bool | None = None,
        quantum: int | str | None = None,
        flows: int | str | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, seed=seed, target=target, t_update=t_update, alpha=alpha, beta=beta,
            max_burst=max_burst, auto_tune=auto_tune, ecn_threshold=ecn_threshold, derandomize=derandomize, estimate=estimate,
            mean_packet=mean_packet, few=few, decay=decay, decay_share=decay_share, high_delay=high_delay, guard=guard,
            bytemode=bytemode, quantum=quantum, flows=flows)


class Cake(Queue):
    """CAKE (Høiland-Jørgensen, Täht, Morton 2018).

    TSQ does not work over it.

    rtt: Round-trip time of most flows: COBALT's interval is equal to it, and the target is a twentieth of it. Allowed is a time
        from 100 us to 10 s; the default is 100 ms (Linux's cake).
    isolation: Unit that has a share of the link: a flow, a pair of hosts, or a host and then each of its flows. Allowed is one of
        flows, hosts, dual-srchost, dual-dsthost, triple-isolate; the default is triple-isolate (Linux's cake).
    tins: Classes of traffic; the class of a packet follows from its hint. Allowed is one of besteffort, diffserv3, diffserv4; the
        default is besteffort (ours: Linux has diffserv3).
    mtu: Size of a full packet; the target is at least one and a half times its transmission time on the link. Allowed is a whole
        number from 1 to 1000000 B; the default is 1514 (Linux: the MTU and the Ethernet header).
    memory_limit: Memory limit of waiting packets; off for four times the bytes that the link sends in `rtt`, and at least 4 MiB.
        Allowed is a whole number from 1000 to 1099511627776 B, or off; the default is off (Linux's memlimit).
    """

    name = "cake"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        seed: int = 1,
        rtt: str | None = None,
        isolation: str | None = None,
        tins: str | None = None,
        mtu: int | str | None = None,
        memory_limit: int | str | bool | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, seed=seed, rtt=rtt, isolation=isolation, tins=tins, mtu=mtu,
            memory_limit=memory_limit)


class StrictPriority(Queue):
    """Strict priority (RFC 2474 section 4.2.2.2).

    TSQ does not work over it.

    classes: The number of classes that the hints are divided into. Allowed is a whole number from 1 to 16; the default is 16
        (ours: one for each hint of 4 bits).
    below: The AQM below it, as a table of a scenario, such as {'aqm': 'pi2'}.
    """

    name = "strict-priority"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        seed: int = 1,
        classes: int | str | None = None,
        below: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, seed=seed, classes=classes, below=below)


class Drr(Queue):
    """Deficit round robin (Shreedhar, Varghese, SIGCOMM 1995).

    TSQ does not work over it.

    by: Unit of separation: each flow or each class of hints has a queue. Allowed is one of flow, hint; the default is flow
        (Shreedhar and Varghese 1995).
    quantum: Bytes that a turn adds to a queue's deficit. Allowed is a whole number from 1 to 1000000 B; the default is 1500
        (Shreedhar and Varghese 1995 section 3: at least the largest packet).
    queues: Number of queues into which flows are hashed. Allowed is a whole number from 1 to 65536; the default is 1024 (as
        FQ-CoDel's).
    classes: Number of classes into which hints are divided. Allowed is a whole number from 1 to 16; the default is 16 (ours: one
        for each hint of 4 bits).
    weights: Weight of each hint from 1 to 16: number of quanta in a turn of its class. Allowed is a list of 16 whole numbers from
        1 to 1000, or off; the default is off (off: every queue has the same weight).
    """

    name = "drr"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        seed: int = 1,
        by: str | None = None,
        quantum: int | str | None = None,
        queues: int | str | None = None,
        classes: int | str | None = None,
        weights: Sequence[int] | bool | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, seed=seed, by=by, quantum=quantum, queues=queues, classes=classes,
            weights=weights)


class Afd(Queue):
    """AFD (Pan, Breslau, Prabhakar, Shenker, CCR 2003).

    TSQ does not work over it.

    target: The queuing delay at which the queue is held. Allowed is a time from 100 us to 10 s; the default is 20 ms (ours: as
        PI2; the paper holds a number of packets).
    alpha: The gain on the error of the queue one update ago. Allowed is a number from 0 to 1000; the default is 1.7 (Pan et al.
        2003).
    beta: The gain on the present error of the queue; above `alpha`. Allowed is a number from 0 to 1000; the default is 1.8 (Pan
        et al. 2003).
    frequency: Frequency of the updates of the fair share. Allowed is a frequency from 0.001 Hz to 1000000 Hz; the default is 160
        Hz (Pan et al. 2003).
    shadow_buffer: b: number of samples in the shadow buffer. Allowed is a whole number from 1 to 1000000 packets; the default is
        1000 (ours: a flow with a tenth of the traffic is known to 10 %).
    sampling: s: number of packets of which one is sampled, on average. Allowed is a whole number from 1 to 1000000 packets; the
        default is 5 (ours: the buffer covers 5000 packets, which are several round trips on most links).
    buckets: The number of buckets that flows are hashed into. Allowed is a whole number from 1 to 65536; the default is 4096
        (ours).
    mean_packet: Size of a typical packet, for the bounds of the fair share and of the reference. Allowed is a whole number from 1
        to 1000000 B; the default is 1500 (ours: the MTU of Ethernet).
    ecn_threshold: Probability from which packets are dropped even if they can be marked. Allowed is a number from 0 to 1; the
        default is 0.1 (ours: as PIE, RFC 8033 section 5.1; the paper has no ECN).
    """

    name = "afd"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        seed: int = 1,
        target: str | None = None,
        alpha: float | str | None = None,
        beta: float | str | None = None,
        frequency: str | None = None,
        shadow_buffer: int | str | None = None,
        sampling: int | str | None = None,
        buckets: int | str | None = None,
        mean_packet: int | str | None = None,
        ecn_threshold: float | str | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, seed=seed, target=target, alpha=alpha, beta=beta, frequency=frequency,
            shadow_buffer=shadow_buffer, sampling=sampling, buckets=buckets, mean_packet=mean_packet, ecn_threshold=ecn_threshold)


class DualPi2(Queue):
    """DualPI2 (RFC 9332).

    TSQ does not work over it.

    target: The queuing delay to hold. Allowed is a time from 100 us to 10 s; the default is 15 ms (RFC 9332 appendix A.1).
    t_update: The time between updates of the probability. Allowed is a time from 1 ms to 10 s; the default is 16 ms (RFC 9332
        appendix A.1).
    alpha: The gain on the delay's distance from the target. Allowed is a number from 0 to 100 per s; the default is 0.16 (RFC
        9332 appendix A.1).
    beta: The gain on the delay's change since the last update. Allowed is a number from 0 to 100 per s; the default is 3.2 (RFC
        9332 appendix A.1).
    coupling: k: scalable packets are marked with probability k p', classic ones hit with p'^2. Allowed is a number from 1 to 10;
        the default is 2 (RFC 9332 section 2.1).
    min_th: Sojourn time from which scalable packets are marked at any p'. Allowed is a time from 0 ns to 10 s; the default is 1
        ms (Linux's step_thresh; RFC 9332 appendix A.1 has 800 us).
    range: Width of the marking ramp: the sojourn time above the threshold at which all packets are marked; 0 is a step. Allowed
        is a time from 0 ns to 10 s; the default is 0 ns (Linux has a step; RFC 9332 appendix A.1 has 400 us).
    th_len: Number of scalable packets that must wait behind the packet for its sojourn time to count. Allowed is a whole number
        from 0 to 1000000 packets; the default is 0 (Linux's min_qlen_step; RFC 9332 appendix A.2 has 1).
    not_ect: Treatment of packets in the scalable queue that cannot be marked: dropped where others are marked, dropped with p_C,
        or spared. Allowed is one of as-marks, as-classic, spare; the default is as-marks (Linux; RFC 9332 section 2.5.1.1 has
        as-classic).
    hits: Choice of the packets that are hit: by chance, or spaced evenly. Allowed is one of random, even; the default is random
        (Linux; RFC 9332 appendix A.1 has even).
    mean_packet: Size of a typical packet; p' hits no packet while the backlog is less than two of them. Allowed is a whole number
        from 0 to 1000000 B; the default is 1514 (Linux: the MTU and the Ethernet header; RFC 9332 has no such rule, which is 0).
    drop_overload: Drops in overload, where k p' has reached 1; without them p' is at most 1 / k, and the queue grows to its
        limit. Allowed is true or false; the default is true (Linux and RFC 9332 appendix A.2).
    classic_share: Number of bytes of both queues of which the classic queue sends at least one. Allowed is a whole number from 2
        to 1000; the default is 10 (Linux: 10 %; RFC 9332 appendix A.2 has 16 as an example).
    low_delay_hints: Largest hint of packets that go to the scalable queue without ECT(1); 0 for none. Allowed is a whole number
        from 0 to 16; the default is 0 (0: RFC 9332 section 2.5.1 goes by ECT(1) alone).
    """

    name = "dual-pi2"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        seed: int = 1,
        target: str | None = None,
        t_update: str | None = None,
        alpha: float | str | None = None,
        beta: float | str | None = None,
        coupling: float | str | None = None,
        min_th: str | None = None,
        range: str | None = None,
        th_len: int | str | None = None,
        not_ect: str | None = None,
        hits: str | None = None,
        mean_packet: int | str | None = None,
        drop_overload: bool | None = None,
        classic_share: int | str | None = None,
        low_delay_hints: int | str | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, seed=seed, target=target, t_update=t_update, alpha=alpha, beta=beta,
            coupling=coupling, min_th=min_th, range=range, th_len=th_len, not_ect=not_ect, hits=hits, mean_packet=mean_packet,
            drop_overload=drop_overload, classic_share=classic_share, low_delay_hints=low_delay_hints)


class ProtectedDualPi2(Queue):
    """DualPI2 with queue protection (RFC 9957, RFC 9332).

    TSQ does not work over it.

    target: The queuing delay to hold. Allowed is a time from 100 us to 10 s; the default is 15 ms (RFC 9332 appendix A.1).
    t_update: The time between updates of the probability. Allowed is a time from 1 ms to 10 s; the default is 16 ms (RFC 9332
        appendix A.1).
    alpha: The gain on the delay's distance from the target. Allowed is a number from 0 to 100 per s; the default is 0.16 (RFC
        9332 appendix A.1).
    beta: The gain on the delay's change since the last update. Allowed is a number from 0 to 100 per s; the default is 3.2 (RFC
        9332 appendix A.1).
    coupling: k: scalable packets are marked with probability k p', classic ones hit with p'^2. Allowed is a number from 1 to 10;
        the default is 2 (RFC 9332 section 2.1).
    min_th: Sojourn time from which scalable packets are marked at any p'. Allowed is a time from 0 ns to 10 s; the default is 475
        us (RFC 9957 section 4.1: the ramp of DOCSIS, 475 to 1000 us).
    range: Width of the marking ramp: the sojourn time above the threshold at which all packets are marked; 0 is a step. Allowed
        is a time from 0 ns to 10 s; the default is 525 us (RFC 9957 section 4.1: the ramp of DOCSIS, 475 to 1000 us).
    th_len: Number of scalable packets that must wait behind the packet for its sojourn time to count. Allowed is a whole number
        from 0 to 1000000 packets; the default is 0 (Linux's min_qlen_step; RFC 9332 appendix A.2 has 1).
    not_ect: Treatment of packets in the scalable queue that cannot be marked: dropped where others are marked, dropped with p_C,
        or spared. Allowed is one of as-marks, as-classic, spare; the default is spare (RFC 9332 section 2.5.1.1, with queue
        protection).
    hits: Choice of the packets that are hit: by chance, or spaced evenly. Allowed is one of random, even; the default is random
        (Linux; RFC 9332 appendix A.1 has even).
    mean_packet: Size of a typical packet; p' hits no packet while the backlog is less than two of them. Allowed is a whole number
        from 0 to 1000000 B; the default is 1514 (Linux: the MTU and the Ethernet header; RFC 9332 has no such rule, which is 0).
    drop_overload: Drops in overload, where k p' has reached 1; without them p' is at most 1 / k, and the queue grows to its
        limit. Allowed is true or false; the default is true (Linux and RFC 9332 appendix A.2).
    classic_share: Number of bytes of both queues of which the classic queue sends at least one. Allowed is a whole number from 2
        to 1000; the default is 10 (Linux: 10 %; RFC 9332 appendix A.2 has 16 as an example).
    low_delay_hints: Largest hint of packets that go to the scalable queue without ECT(1); 0 for none. Allowed is a whole number
        from 0 to 16; the default is 6 (ours: the hints of EF and of NQB, RFC 9956).
    critical_delay: Delay of the queue up to which no packet is redirected. The delay at which all packets are marked counts if it
        is longer. Allowed is a time from 0 ns to 10 s; the default is 1 ms (RFC 9957 section 4.1: CRITICALqL_us).
    critical_score: Queuing score of a flow beyond which its packets are redirected at the critical delay; at twice the delay half
        of it is enough. Allowed is a time from 0 ns to 5 s; the default is 4 ms (RFC 9957 section 4.1: CRITICALqLSCORE_us).
    aging: Rate of congestion that a flow may cause without a score: its bytes, each times the probability of a mark. Allowed is a
        whole number from 1 to 1000000000 B/s; the default is 524288 (RFC 9957 section 4.1: 2^LG_AGING, 2^19).
    buckets: Number of buckets for flows. Flows without a bucket of their own share another one. Allowed is a whole number from 1
        to 16384; the default is 32 (RFC 9957 section 4.1: 2^BI_SIZE, 2^5).
    attempts: Number of buckets that a flow may have, of which it takes the first that is free. Allowed is a whole number from 1
        to 4; the default is 2 (RFC 9957 section 4.1).
    """

    name = "protected-dual-pi2"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        seed: int = 1,
        target: str | None = None,
        t_update: str | None = None,
        alpha: float | str | None = None,
        beta: float | str | None = None,
        coupling: float | str | None = None,
        min_th: str | None = None,
        range: str | None = None,
        th_len: int | str | None = None,
        not_ect: str | None = None,
        hits: str | None = None,
        mean_packet: int | str | None = None,
        drop_overload: bool | None = None,
        classic_share: int | str | None = None,
        low_delay_hints: int | str | None = None,
        critical_delay: str | None = None,
        critical_score: str | None = None,
        aging: int | str | None = None,
        buckets: int | str | None = None,
        attempts: int | str | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, seed=seed, target=target, t_update=t_update, alpha=alpha, beta=beta,
            coupling=coupling, min_th=min_th, range=range, th_len=th_len, not_ect=not_ect, hits=hits, mean_packet=mean_packet,
            drop_overload=drop_overload, classic_share=classic_share, low_delay_hints=low_delay_hints,
            critical_delay=critical_delay, critical_score=critical_score, aging=aging, buckets=buckets, attempts=attempts)


class Deltic(Queue):
    """DelTiC (Morton, The Tao of DelTiC, 2024).

    TSQ does not work over it.

    sce_frequency: Resonance of the controllers of fine marks (SCE); the target is one over it, 5 ms. Allowed is a frequency from
        0.1 Hz to 10000 Hz; the default is 200 Hz (Morton, The Tao of DelTiC, 2024).
    ecn_frequency: Resonance of the controllers of CE; the target is one over it, 25 ms. Allowed is a frequency from 0.1 Hz to
        10000 Hz; the default is 40 Hz (Morton, The Tao of DelTiC, 2024).
    drop_frequency: Resonance of the controllers of drops; the target is one over it, 125 ms. Allowed is a frequency from 0.1 Hz
        to 10000 Hz; the default is 8 Hz (Morton, The Tao of DelTiC, 2024).
    flows: Number of places into which flows are hashed. Allowed is a whole number from 1 to 65536; the default is 4096 (the
        published qdisc BOROSHNE).
    mark_scalable: Fine marks as CE in packets of scalable senders; without it there are no fine marks. Allowed is true or false;
        the default is true (ours: no sender of Cutline responds to SCE).
    """

    name = "deltic"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        seed: int = 1,
        sce_frequency: str | None = None,
        ecn_frequency: str | None = None,
        drop_frequency: str | None = None,
        flows: int | str | None = None,
        mark_scalable: bool | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, seed=seed, sce_frequency=sce_frequency, ecn_frequency=ecn_frequency,
            drop_frequency=drop_frequency, flows=flows, mark_scalable=mark_scalable)


class Abe(Queue):
    """ABE-like (after Hurley, Le Boudec, Thiran, Kara, IEEE Network 2001).

    TSQ does not work over it.

    delay: Maximum waiting time of a green packet. Allowed is a time from 100 us to 10 s; the default is 20 ms (Hurley et al.
        2001: tens of milliseconds).
    green_hints: Largest hint of a green packet; 0 for none. Allowed is a whole number from 0 to 15; the default is 6 (ours: the
        hint that suits audio and video in the TSQ paper).
    """

    name = "abe"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        seed: int = 1,
        delay: str | None = None,
        green_hints: int | str | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, seed=seed, delay=delay, green_hints=green_hints)


class Sieve(Queue):
    """Sieve (ours: docs/internals/sieve.md).

    TSQ does not work over it.

    rtt: The round-trip time, without queues, of most flows that fill the link. Allowed is a time from 1 ms to 10 s; the default
        is 100 ms (RFC 8289 section 4.1: suits paths of 10 ms to 300 ms).
    tau: tau: time for which an unused share is kept. Allowed is a time from 10 ms to 100 s; the default is 150 ms (ours:
        docs/internals/sieve.md).
    key: Unit that has a share: a flow, all flows of a host, or first a host and then each of its flows. Allowed is one of flow,
        source, destination, source-then-flow, destination-then-flow; the default is flow (ours: docs/internals/sieve.md).
    memory: Memory for the state of flows. Allowed is a whole number from 64 to 1073741824 B; the default is 65536 (ours:
        docs/internals/sieve.md).
    newcomer_age: Age below which a flow counts as new. Allowed is a time from 0 ns to 30 s; the default is 200 ms (ours:
        docs/internals/sieve.md).
    """

    name = "sieve"

    def __init__(
        self,
        rate: str | float,
        *,
        limit: str = "1000 packets",
        ecn: bool = True,
        seed: int = 1,
        rtt: str | None = None,
        tau: str | None = None,
        key: str | None = None,
        memory: int | str | None = None,
        newcomer_age: str | None = None,
    ) -> None:
        super().__init__(rate, limit=limit, ecn=ecn, seed=seed, rtt=rtt, tau=tau, key=key, memory=memory,
            newcomer_age=newcomer_age)
