"""ToolSandbox's code, from the user's folder.

Invariant: it runs under a clock of ours, in UTC: scenarios are built around the present, which is always the same.
"""

import hashlib
import os
import random
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import time_machine

# A Wednesday, so that neither "tomorrow" nor "next Friday" is special; not a whole second: a clock never shows one.
START = datetime(2025, 6, 11, 10, 27, 43, 518207, tzinfo=timezone.utc)
# The seed that ToolSandbox's own command line sets before it draws the order of the tools.
SCENARIO_SEED = 42


class Clock:
    """The time of the whole process. It is constant until `set` is called."""

    def __init__(self) -> None:
        os.environ["TZ"] = "UTC"
        time.tzset()
        self._time = time_machine.travel(START, tick=False).start()

    def set(self, seconds: int) -> None:
        self._time.move_to(START + timedelta(seconds=seconds))


def load(folder: Path) -> Clock:
    """Makes `import tool_sandbox` work. Comes before any such import."""
    sys.path.insert(0, str(folder))
    random.seed(SCENARIO_SEED)
    return Clock()


def digest(folder: Path) -> str:
    """Returns the digest of the code. The folder need not be a git checkout."""
    code = hashlib.sha256()
    for file in sorted((folder / "tool_sandbox").rglob("*.py")):
        code.update(f"{file.relative_to(folder)}\n".encode() + file.read_bytes())
    return code.hexdigest()[:12]
