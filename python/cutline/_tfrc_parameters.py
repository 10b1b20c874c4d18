"""The parameters of TFRC. Written by python/tools/generate_aqms.py; do not edit."""

from __future__ import annotations

from typing import TypedDict


class Parameters(TypedDict, total=False):
    """Parameters of TFRC.

    packet_size: The segment size s of the equation, and the largest payload. For a source of smaller messages, set the size of
        its messages. Allowed is a whole number from 1 to 65535 B; the default is 1000 (the papers' packet).
    header: The size of a packet's headers on the wire. Allowed is a whole number from 0 to 1000 B; the default is 40 (as TCP;
        ns-2: 0).
    feedback_size: A feedback packet's size on the wire. Allowed is a whole number from 1 to 1500 B; the default is 40 (as ns-2's
        `TFRCSink`).
    send_buffer: Number of packets that may wait to be sent; off is any number. The sender drops those that do not fit. Allowed is
        a whole number from 1 to 100000 packets, or off; the default is 2 (ours: an interactive source would rather lose a packet
        than send it late; ns-2: off).
    q: The filter constant q of the average round-trip time. Allowed is a number from 0 to 0.999999; the default is 0.9 (RFC 5348
        section 4.3 step 2; ns-2's `df_` is 0.95).
    reduce_oscillation: The instantaneous rate falls while the round-trip time is above its average, which damps oscillations at a
        drop-tail queue. Allowed is true or false; the default is true (RFC 5348 section 4.5; ns-2's `ca_` too).
    q2: The filter constant q2 of the average square root of the round-trip time. Allowed is a number from 0 to 0.999999; the
        default is 0.9 (RFC 5348 section 4.5; ns-2's `df_` is 0.95).
    history_discounting: A long interval without loss reduces the weight of the older ones. Allowed is true or false; the default
        is true (RFC 5348 section 5.5; ns-2's `discount_` too).
    rto_tick: The tick of a coarse clock from which the timeout of the equation is estimated, as in early TCPs; off is four
        round-trip times. Allowed is a time from 1 ms to 1 s, or off; the default is off (RFC 5348 section 3.1; ns-2's `tcp_tick_`
        is 100 ms).
    gradual_increase: The rate rises by at most s / R per round trip, as with TCP's window, instead of at once to the result of
        the equation. Allowed is true or false; the default is false (RFC 5348 section 4.3 step 4; ns-2 does so after the first
        loss event).
    bound_timeouts: The factor 3 sqrt(3 b p / 8) of the timeout in the equation is at most 1, as in Padhye's full model: from p =
        0.30 on the rate is higher, at p = 0.4 by a seventh. Allowed is true or false; the default is false (RFC 5348 section 3.1
        has no bound; ns-2: true).
    packet_per_round_trip: The rate at which packets were received limits the allowed rate to no less than a packet in a round
        trip. Allowed is true or false; the default is false (RFC 5348 section 4.3 step 4: to no less than s / t_mbi; ns-2: true).
    nofeedback_round_trips: Lower bound of the nofeedback timer in round trips. Allowed is a whole number from 1 to 100; the
        default is 4 (RFC 5348 section 4.3 step 3; ns-2: 2).
    nofeedback_halves: The nofeedback timer halves the rate, whatever was received before. Allowed is true or false; the default
        is false (RFC 5348 section 4.4: it halves the limit; ns-2: true).
    t_mbi: The longest time between two packets. Allowed is a time from 1 s to 3600 s; the default is 64 s (RFC 5348 section 4.3).
    least_nofeedback: The shortest time of the nofeedback timer. A process that may wake up more than four round trips late needs
        one: otherwise its own lateness would halve its rate. Allowed is a time from 0 ns to 10 s; the default is 0 ns (RFC 5348
        section 4.3 step 3 has none).
    t_gran: The granularity of the sender's timer. A packet may leave up to half of it early. Allowed is a time from 0 ns to 1 s;
        the default is 0 ns (RFC 5348 section 8.3; timers here are exact).
    """

    packet_size: int | str | None
    header: int | str | None
    feedback_size: int | str | None
    send_buffer: int | str | bool | None
    q: float | str | None
    reduce_oscillation: bool | None
    q2: float | str | None
    history_discounting: bool | None
    rto_tick: str | bool | None
    gradual_increase: bool | None
    bound_timeouts: bool | None
    packet_per_round_trip: bool | None
    nofeedback_round_trips: int | str | None
    nofeedback_halves: bool | None
    t_mbi: str | None
    least_nofeedback: str | None
    t_gran: str | None
