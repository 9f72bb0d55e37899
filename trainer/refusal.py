"""How a subcommand that runs to its end refuses its input: one line on stderr and an exit code of its own.

Invariant: that code means that the input has to be changed. 2 is argparse's, and 1 is Python's for whatever is not
caught (no memory, a full disk, a defect): that may be gone the next time, and src/policy/python.ts tries again."""

from __future__ import annotations

import sys

REFUSED = 3


def refused(program: str, error: ValueError) -> int:
    """Says the refusal and returns its exit code. Raises a cause that is no fault of the input: a file that is there
    and can't be read now."""
    cause: BaseException | None = error
    while cause := cause.__cause__:
        if isinstance(cause, OSError) and not isinstance(
            cause, (FileNotFoundError, NotADirectoryError, IsADirectoryError)
        ):
            raise cause
    print(f"{program}: {' '.join(str(error).split())}", file=sys.stderr)
    return REFUSED
