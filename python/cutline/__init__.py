"""Cutline for Python: sockets with quality of service, in `cutline.socket`."""

from ._native import NoPeer, OptionError, Refused, __version__

__all__ = ["NoPeer", "OptionError", "Refused", "__version__", "socket"]
