"""Queues that are stepped by hand, for teaching and tests: the objects that the simulator and the router have.

    >>> from cutline.aqm import Pi
    >>> queue = Pi("10 Mbit/s", limit="400 packets", q_ref="150 ms", tsq={"l": "40 ms"}, seed=1)
    >>> waiting = [queue.enqueue(0.0, f"bulk {number}", size=1500, hint=16) for number in range(100)]
    >>> queue.enqueue(0.0, "call", size=160, hint=1).kind
    'pass'
    >>> order = [queue.dequeue(0.0012 * turn).packet for turn in range(len(queue))]
    >>> order.index("call")
    7

There is a class for each AQM of the registry (`cutline aqm list`), with its parameters as keyword arguments: `q-ref` is `q_ref`. Values
are those of a scenario. A queue reads no clock: every call passes the time, in seconds, which never decreases.
"""

from __future__ import annotations

from . import _aqms
from ._aqms import *
from ._queue import Departure, Dropped, Parameter, Queue, Verdict, tsq_parameters

__all__ = ["Departure", "Dropped", "Parameter", "Queue", "Verdict", "classes", "tsq_parameters"]
__all__ += _aqms.__all__

classes: dict[str, type[Queue]] = {made.name: made for made in (getattr(_aqms, name) for name in _aqms.__all__)}
"""The class of each AQM by its name in scenarios."""
