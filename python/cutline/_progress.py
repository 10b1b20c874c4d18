"""The progress of runs on a terminal or in a notebook."""

from __future__ import annotations

import shutil
import sys
import time

_BAR = 30


class Progress:
    """A line on stderr that is written again and again, and removed at the end."""

    def __init__(self, shown: bool) -> None:
        self._is_shown = shown and _is_watched()
        self._started = time.monotonic()
        self._length = 0

    def update(self, done: int, total: int, simulated: float, all_seconds: float, point: str) -> None:
        if not self._is_shown:
            return
        share = min(max(simulated / all_seconds if all_seconds else 0.0, done / total if total else 0.0), 1.0)
        elapsed = time.monotonic() - self._started
        filled = round(_BAR * share)
        rest = f", {_clock(elapsed / share - elapsed)} to go" if share > 0.02 else ""
        text = f"{'█' * filled}{'░' * (_BAR - filled)} {done}/{total} {point}  {_clock(elapsed)} elapsed{rest}"
        self._write("".join(c if c.isprintable() else "?" for c in text))

    def end(self) -> None:
        if self._is_shown and self._length:
            self._write("")
            self._is_shown = False

    def _write(self, text: str) -> None:
        text = text[: shutil.get_terminal_size().columns - 1]
        try:
            sys.stderr.write("\r" + text.ljust(self._length) + ("" if text else "\r"))
            sys.stderr.flush()
        except (OSError, ValueError):
            # It is not read; the runs continue.
            self._is_shown = False
        self._length = len(text)


def _is_watched() -> bool:
    """Returns whether stderr is a terminal or the output of a notebook's cell."""
    if sys.stderr is None:
        return False
    if "ipykernel" in sys.modules and type(sys.stderr).__module__.startswith("ipykernel"):
        return True
    try:
        return sys.stderr.isatty()
    except ValueError:
        return False


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
