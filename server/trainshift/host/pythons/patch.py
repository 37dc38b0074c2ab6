"""Patch: the change that Horovod 0.28.1 needs for TensorFlow 2.19 and later.

One of its files includes XLA headers that these versions no longer install.  It contains XLA operations,
which are off by default and unused here.
"""

from __future__ import annotations

from pathlib import Path

FIRST_PATCHED = (2, 19)
"""The first TensorFlow that Horovod is patched for; an earlier one may be built with the patch too."""

_PATCH = Path(__file__).with_name("horovod.patch")


def write_patch(path: str) -> None:
    """Write the patch to `path`.

    Raises FileExistsError for a file with other contents, and other OSErrors.
    """
    file, patch = Path(path), _PATCH.read_bytes()
    if not (file.is_file() and file.read_bytes() == patch):
        with file.open("xb") as stream:
            stream.write(patch)
