"""Full disks. Invariant: whatever library could not write, a full disk is told from a defect, since it passes."""

from __future__ import annotations

import errno

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_WORDS = (
    "No space left on device",
    "Disk quota exceeded",
    # What torch.save says: its writer does not pass on why a write was short.
    "PytorchStreamWriter failed writing",
    "iostream error",
)


def is_full(error: BaseException) -> bool:
    """True if there was no room for what was being written."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _NO_ROOM:
            return True
        if any(words in str(cause) for words in _WORDS):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
