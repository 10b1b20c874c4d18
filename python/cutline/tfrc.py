"""TFRC, the TCP-friendly rate control of RFC 5348, by hand: the ends that the simulator and the sockets have, and the throughput equation.

    >>> from cutline import tfrc
    >>> round(tfrc.throughput(1000, rtt_s=0.1, loss_event_rate=0.01))
    898658
    >>> sender, receiver = tfrc.Sender(packet_size=1000), tfrc.Receiver(packet_size=1000)
    >>> sender.supply()
    >>> report = receiver.receive(0.05, sender.transmit(0.0))
    >>> sender.feedback(0.1, report)
    >>> round(sender.rate_bps)
    320000

The caller carries packets to the receiver and reports to the sender, and loses or delays them. An end reads no clock: every call passes
the time, in seconds from 0, which never decreases. Rates are in bit/s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

from . import _native, _toml
from ._queue import Parameter, _time, _whole
from ._tfrc_parameters import Parameters
from .errors import ArgumentError
from .quality import _over

__all__ = ["Feedback", "Packet", "Parameters", "Receiver", "Sender", "loss_event_rate", "parameters", "throughput"]


@dataclass(frozen=True)
class Packet:
    """A data packet (RFC 5348 section 3.2.1)."""

    seq: int
    """0, 1, 2, ... in the order of departure."""
    sent_s: float
    """The time at which it left."""
    rtt_s: float
    """The sender's estimate of the round-trip time; 0 while it has none."""
    size: int
    """Payload, bytes."""


@dataclass(frozen=True)
class Feedback:
    """A report of the receiver (RFC 5348 section 3.2.2)."""

    echo_s: float
    """The time at which the last packet that was received left its sender."""
    delay_s: float
    """The time since that packet arrived."""
    received_bps: float
    """The rate at which data arrived over the last round trip."""
    loss_event_rate: float
    """From 0 to 1."""


class Sender:
    """The sending end of a flow (RFC 5348 section 4): the allowed rate, and the times at which packets leave."""

    def __init__(self, **parameters: Unpack[Parameters]) -> None:
        """Makes a sender with nothing to send yet, at 0 s. The parameters are those of `Parameters`; None for the default.

        A number has the unit of its parameter: `packet_size=1000` is "1000 B".
        """
        self._native = _native.TfrcSender(_values(parameters))

    def write(self, size: int) -> bool:
        """Takes a message of the application, bytes: one packet, or several if it is too long.

        Returns whether all of it fitted the send buffer. Bytes that do not fit are dropped.
        """
        return self._native.write(_whole("size", size, 1, 2**24))

    def supply(self, endless: bool = True) -> None:
        """Starts or ends an endless supply of data."""
        self._native.supply(bool(endless))

    def transmit(self, now: float) -> Packet | None:
        """Handles the expired timers and takes the next packet that may leave; None if there is none. Call it until it returns None."""
        found = self._native.transmit(_time(now))
        return None if found is None else Packet(*found)

    def feedback(self, now: float, report: Feedback) -> None:
        """Handles a report of the receiver."""
        if not isinstance(report, Feedback):
            raise ArgumentError(f"report: {report!r} is not allowed: expected a Feedback", "report")
        numbers = [_number(name, getattr(report, name)) for name in ("echo_s", "delay_s", "received_bps", "loss_event_rate")]
        self._native.on_feedback(_time(now), (numbers[0], numbers[1], numbers[2], numbers[3]))

    @property
    def deadline(self) -> float | None:
        """The time of the next packet, or of the nofeedback timer; None if there is neither."""
        return self._native.deadline()

    @property
    def rate_bps(self) -> float:
        """The allowed rate X."""
        return self._native.state()[0]

    @property
    def instantaneous_rate_bps(self) -> float:
        """The rate at which packets leave now (RFC 5348 section 4.5)."""
        return self._native.state()[1]

    @property
    def rtt_s(self) -> float | None:
        """The average round-trip time; None before the first report."""
        return self._native.state()[2] or None

    @property
    def loss_event_rate(self) -> float:
        """The loss event rate that was last reported."""
        return self._native.state()[3]

    @property
    def stats(self) -> dict[str, int]:
        """The counters: packets, bytes, dropped_at_sender, feedback, and nofeedback, the expiries of that timer."""
        return dict(self._native.stats())

    def __len__(self) -> int:
        """The number of packets that wait, without those of an endless supply."""
        return self._native.backlog()

    def __repr__(self) -> str:
        return f"<tfrc.Sender: {self.rate_bps:.0f} bit/s, loss event rate {self.loss_event_rate:.4g}>"


class Receiver:
    """The receiving end of a flow (RFC 5348 section 6): the loss event rate, the receive rate, and reports."""

    def __init__(self, **parameters: Unpack[Parameters]) -> None:
        """Makes a receiver that expects its first packet. The parameters are the sender's."""
        self._native = _native.TfrcReceiver(_values(parameters))

    def receive(self, now: float, packet: Packet, *, marked: bool = False) -> Feedback | None:
        """Handles a packet; `marked` is true if a router has marked it. Returns the report that leaves at once, if any."""
        if not isinstance(packet, Packet):
            raise ArgumentError(f"packet: {packet!r} is not allowed: expected a Packet", "packet")
        seq, size = _whole("seq", packet.seq, 0, 2**63), _whole("size", packet.size, 1, 2**31)
        parts = (seq, _number("sent_s", packet.sent_s), _number("rtt_s", packet.rtt_s), size)
        found = self._native.on_packet(_time(now), parts, bool(marked))
        return None if found is None else Feedback(*found)

    def advance(self, now: float) -> Feedback | None:
        """Returns the report if one is due."""
        found = self._native.on_deadline(_time(now))
        return None if found is None else Feedback(*found)

    @property
    def deadline(self) -> float | None:
        """The time of the next report; None while there is nothing to report."""
        return self._native.deadline()

    @property
    def loss_event_rate(self) -> float:
        """The loss event rate now (RFC 5348 section 5.4)."""
        return self._native.loss_event_rate()

    @property
    def stats(self) -> dict[str, int]:
        """The counters: packets, bytes, lost, marked, loss_events and feedback."""
        return dict(self._native.stats())

    def __repr__(self) -> str:
        return f"<tfrc.Receiver: {self.stats['packets']} packets, loss event rate {self.loss_event_rate:.4g}>"


def throughput(segment_bytes: Any, rtt_s: Any, loss_event_rate: Any) -> Any:
    """Returns the throughput of a TCP flow, bit/s, by the equation of RFC 5348 section 3.1 with b = 1 and a timeout of four round trips.

    Numbers, lists and arrays of NumPy are allowed, as in `cutline.quality`.
    """
    return _over(_native.tfrc_throughput, {"segment_bytes": segment_bytes, "rtt_s": rtt_s, "loss_event_rate": loss_event_rate})


def loss_event_rate(segment_bytes: Any, rtt_s: Any, throughput_bps: Any) -> Any:
    """Returns the loss event rate at which the equation gives a throughput (RFC 5348 section 6.3.1), at most 1."""
    return _over(_native.tfrc_loss_event_rate, {"segment_bytes": segment_bytes, "rtt_s": rtt_s, "throughput_bps": throughput_bps})


def parameters() -> tuple[Parameter, ...]:
    """Returns the parameters of TFRC."""
    return tuple(Parameter(*one) for one in _native.tfrc_parameters())


def _values(given: Any) -> list[tuple[str, str]]:
    known = {parameter.argument: parameter for parameter in parameters()}
    found = []
    for argument, value in given.items():
        parameter, value = known.get(argument), _toml._plain(value)
        if value is None:
            continue
        if not isinstance(value, (bool, int, float, str)):
            raise ArgumentError(f"{argument}: {value!r} is not allowed: expected {parameter.allowed if parameter else 'a value'}", argument)
        if isinstance(value, bool):
            is_off = not value and parameter is not None and parameter.kind != "flag"
            value = "off" if is_off else str(value).lower()
        found.append((parameter.name if parameter else argument.replace("_", "-"), str(value)))
    return found


def _number(parameter: str, found: Any) -> float:
    found = _toml._plain(found)
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise ArgumentError(f"{parameter}: {found!r} is not allowed: expected a number", parameter)
    return float(found)
