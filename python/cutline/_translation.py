"""Translation of an application's needs into settings of its host and requests to the network: `cutline.translate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import _native, _toml
from .errors import ArgumentError

__all__ = ["Decision", "Translation", "Unmet", "translate"]


@dataclass(frozen=True)
class Decision:
    """A setting, and the reason for its value."""

    layer: str
    """application, selection, end system or network."""
    setting: str
    value: str | None
    """The value as a text; None if the setting is left as it is."""
    reason: str
    source: str
    """Source of the rule; empty if it is our own."""


@dataclass(frozen=True)
class Unmet:
    """A demand that cannot be met."""

    direction: str
    parameter: str
    reason: str


@dataclass(frozen=True)
class Translation:
    """The consequences of an application's needs."""

    protocol: str
    service: str
    hint: int | None
    """The delay hint, 1 to 16; None if packets have no hint."""
    dscp: int | None
    """The code point of its packets."""
    decisions: tuple[Decision, ...]
    """Every setting with its reason, from the application to the network."""
    unmet: tuple[Unmet, ...]

    def __getitem__(self, setting: str) -> str | None:
        """The last value of a setting."""
        found = [decision.value for decision in self.decisions if decision.setting == setting]
        if not found:
            raise KeyError(f"{setting}: there are: {', '.join(dict.fromkeys(one.setting for one in self.decisions))}")
        return found[-1]

    def __str__(self) -> str:
        lines = [f"{self.protocol}; {self.service}"]
        lines += [f"{one.setting}: {'as it is' if one.value is None else one.value} ({one.reason})" for one in self.decisions]
        lines += [f"cannot be met: {one.direction}.{one.parameter}: {one.reason}" for one in self.unmet]
        return "\n".join(lines)


def translate(
    application: str | Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
    *,
    protocol: str | None = None,
    service: str | None = None,
    rtt: str | float | None = None,
    rate: str | float | None = None,
    mtu: int | None = None,
    loss: float | None = None,
    ipv6: bool = False,
) -> Translation:
    """Translates what an application needs, as `cutline translate` does. Nothing is changed on this machine.

    application: a class (audio, video, file, web, game, telemetry), or a specification as a mapping, with the keys of its file.
    settings: parameters of the class, such as {"bit-rate": "4 Mbit/s"}.
    protocol: tcp, udp, r-tcp, r-udp or direct; None for the one that fits.
    service: hint, diffserv, best-effort or reservation; None for the one that fits.
    rtt: the round-trip time of the path without queues, such as "50 ms", or in seconds.
    rate: the rate of the bottleneck, such as "10 Mbit/s", or in bit/s.
    mtu: the longest packet of the path, bytes.
    loss: packets that are lost on the path, per cent.

        >>> import cutline
        >>> call = cutline.translate("audio", rtt="50 ms")
        >>> call.protocol, call.hint
        ('udp', 9)
    """
    path: list[tuple[str, str]] = []
    for name, value, unit in (("rtt", rtt, " s"), ("rate", rate, " bit/s"), ("mtu", mtu, ""), ("loss", loss, "")):
        if value is not None:
            path.append((name, _quantity(name, value, unit)))
    if ipv6:
        path.append(("ip", "6"))
    if isinstance(application, Mapping):
        if settings:
            raise ArgumentError("settings: a specification has its own values; they are for a class", "settings")
        parts = _native.translate(None, [], _toml.document("application", application), protocol, service, path)
    elif isinstance(application, str):
        if application not in _native.APPLICATIONS:
            allowed = ", ".join(_native.APPLICATIONS)
            raise ArgumentError(f"application: {application!r} is not allowed: expected one of {allowed}, or a mapping", "application")
        pairs = [(key.replace("_", "-"), _text(key, value)) for key, value in (settings or {}).items()]
        parts = _native.translate(application, pairs, "", protocol, service, path)
    else:
        raise ArgumentError(f"application: {application!r} is not allowed: expected the name of a class, or a mapping", "application")
    found_protocol, found_service, hint, dscp, decisions, unmet = parts
    return Translation(found_protocol, found_service, hint, dscp, tuple(Decision(*one) for one in decisions), tuple(Unmet(*one) for one in unmet))


def _quantity(name: str, value: str | float, unit: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**63:
        raise ArgumentError(f"{name}: {value!r} is not allowed: expected a number that is not negative, or a text with a unit", name)
    return f"{value}{unit}"


def _text(key: str, value: Any) -> str:
    return value if isinstance(value, str) else _toml.value("settings", key, value)
