"""Cutline for Python: sockets with quality of service, in `cutline.socket`."""

from . import socket
from ._native import Lost, NoPeer, OptionError, Refused, __version__

__all__ = ["Lost", "NoPeer", "OptionError", "Refused", "__version__", "socket"]
