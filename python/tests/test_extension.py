"""The extension module as a library."""

from pathlib import Path

import cutline._native


def test_the_extension_does_not_need_libpython() -> None:
    """Interpreters from 3.11 on have the functions themselves, and many are built without the library."""
    content = Path(cutline._native.__file__).read_bytes()
    assert b"PyInit__native" in content
    assert b"libpython3" not in content
