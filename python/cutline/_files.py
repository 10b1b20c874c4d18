"""Creation of output files: whole or not at all, and never through a symbolic link, since root may write to a folder of another user."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, unfinished: Path, content: bytes) -> None:
    """Writes a file that appears under its name when it is complete.

    The file or link at `unfinished`, on the same file system, is removed first: an interrupted process may have left it.
    """
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
