"""The value of a delay and a throughput to an application, from 0 (useless) to 1, after the TSQ paper.

    >>> import numpy
    >>> from cutline.quality import quality
    >>> round(quality("audio", delay_s=0.15, throughput_bps=64_000), 3)
    0.83
    >>> quality("audio", numpy.linspace(0.1, 0.5, 5), 64_000).round(3)
    array([0.83 , 0.83 , 0.692, 0.5  , 0.1  ])

A number gives a number, a list a list, and an array of NumPy an array; NumPy broadcasts them. `classes` has the applications.
"""

from __future__ import annotations

import array
import sys
from collections.abc import Sequence
from typing import Any

from . import _native
from .errors import ArgumentError

__all__ = ["classes", "delay_quality", "power", "quality", "throughput_quality"]

classes: tuple[str, ...] = tuple(_native.CLASSES)
"""The names of the classes of applications."""


def quality(
    application: str, delay_s: Any, throughput_bps: Any, *, combination: str = "min", size_kbit: int | None = None,
) -> Any:
    """Returns the quality Q(d, T) of a one-way delay and a throughput (TSQ eq. 1).

    application: the name of a class, such as audio, video, file or game.
    combination: combination of both values: min, mean or product.
    size_kbit: the size of the file or page, kbit, for a class that transfers one.
    """
    def compute(delays: Any, throughputs: Any) -> bytes:
        return _native.quality(application, _size(size_kbit), combination, delays, throughputs)

    return _over(compute, {"delay_s": delay_s, "throughput_bps": throughput_bps})


def delay_quality(application: str, delay_s: Any) -> Any:
    """Returns the quality Qd of a one-way delay."""
    return _over(lambda delays: _native.quality(application, None, "min", delays, None), {"delay_s": delay_s})


def throughput_quality(application: str, throughput_bps: Any, *, size_kbit: int | None = None) -> Any:
    """Returns the quality Qt of a throughput."""
    def compute(throughputs: Any) -> bytes:
        return _native.quality(application, _size(size_kbit), "min", None, throughputs)

    return _over(compute, {"throughput_bps": throughput_bps})


def power(alpha: float, throughput_bps: Any, queuing_delay_s: Any) -> Any:
    """Returns the power metric T^alpha / D^(1 - alpha) of RED-Worcester section 3. It has no absolute scale."""
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)):
        raise ArgumentError(f"alpha: {alpha!r} is not allowed: expected a number from 0 to 1", "alpha")
    return _over(lambda rates, delays: _native.power(float(alpha), rates, delays),
                 {"throughput_bps": throughput_bps, "queuing_delay_s": queuing_delay_s})


def _over(compute: Any, arguments: dict[str, Any]) -> Any:
    """Calls a function of buffers of doubles over numbers, lists or arrays of the same shape."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and any(isinstance(value, (numpy.ndarray, numpy.generic)) for value in arguments.values()):
        columns = [_as_array(numpy, name, value) for name, value in arguments.items()]
        shaped = numpy.broadcast_arrays(*columns)
        flat = [numpy.ascontiguousarray(column).reshape(-1) for column in shaped]
        if flat[0].size == 0:
            return flat[0].reshape(shaped[0].shape)
        return numpy.frombuffer(compute(*flat), dtype=float).reshape(shaped[0].shape).copy()[()]
    lengths = {len(value) for value in arguments.values() if _is_list(value)}
    if len(lengths) > 1:
        raise ArgumentError(f"{', '.join(arguments)}: lists of different lengths", next(iter(arguments)))
    length = lengths.pop() if lengths else None
    if length == 0:
        return []
    columns = [_as_doubles(name, value if _is_list(value) else [value] * (1 if length is None else length)) for name, value in arguments.items()]
    found = array.array("d", compute(*columns)).tolist()
    return found[0] if length is None else found


def _is_list(value: Any) -> bool:
    return isinstance(value, (Sequence, array.array)) and not isinstance(value, (str, bytes))


def _as_array(numpy: Any, name: str, value: Any) -> Any:
    try:
        return numpy.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: {value!r} is not allowed: expected numbers", name) from None


def _as_doubles(name: str, values: Any) -> array.array[float]:
    try:
        return array.array("d", values)
    except TypeError:
        raise ArgumentError(f"{name}: {values!r} is not allowed: expected a number, or a list or an array of numbers", name) from None


def _size(size_kbit: int | None) -> int | None:
    if size_kbit is None or (isinstance(size_kbit, int) and not isinstance(size_kbit, bool) and 0 < size_kbit < 2**64):
        return size_kbit
    raise ArgumentError(f"size_kbit: {size_kbit!r} is not allowed: expected a whole number from 1, or None", "size_kbit")
