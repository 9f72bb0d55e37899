"""The real `shop` environment, run by node from the TypeScript sources: demonstrations, and episodes to play.

Invariant: nothing of the environment is written a second time in Python; needs node and the installed node_modules.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Transpiles the TypeScript sources as they are loaded.
HOOK = "./test/support/register.cjs"


def _node(program: str, *args: str, **pipes: int) -> subprocess.Popen:
    if not (ROOT / "node_modules/@swc/core").is_dir():
        raise SystemExit("base_model: node_modules is missing: run `npm ci` first")
    command = ["node", "-r", HOOK, program, *args]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, **pipes)


def demonstrations(count: int, seed: int, lacks: dict[str, float]) -> Iterator[dict]:
    """First the environment's line, then `count` demonstrations with the mistakes of `lacks` (skill: probability)."""
    flags = [flag for name, fraction in lacks.items() for flag in ("--lack", f"{name}={fraction}")]
    process = _node("src/cli/demonstrations.ts", "--count", str(count), "--seed", str(seed), *flags)
    with process:
        yield from map(json.loads, process.stdout)
    if process.returncode != 0:
        raise SystemExit(process.returncode)


class Player:
    """Plays episodes in the real environment, one request at a time (src/environments/shop/play.ts)."""

    def __init__(self) -> None:
        self._process = _node("src/environments/shop/play.ts", stdin=subprocess.PIPE)

    def __enter__(self) -> "Player":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait()

    def _ask(self, requests: list[dict]) -> list[dict]:
        """Answers to the requests, in order; at most as many at once as the pipe takes without blocking both sides."""
        answers = []
        for start in range(0, len(requests), 16):
            chunk = requests[start : start + 16]
            self._process.stdin.write("".join(json.dumps(r) + "\n" for r in chunk))
            self._process.stdin.flush()
            answers += [json.loads(self._process.stdout.readline() or "null") for _ in chunk]
            if None in answers:
                raise RuntimeError("base_model: the environment's process ended; its error is on stderr")
        return answers

    def tasks(self, stream: str, split: str, count: int) -> list[dict]:
        """`count` tasks {id, skills} of a stream; the streams "train" and "test" are the splits' own tasks."""
        return self._ask([{"tasks": {"stream": stream, "split": split, "count": count}}])[0]["tasks"]

    def reset(self, tasks: list[str]) -> list[list[dict]]:
        """Opens episode i on tasks[i]; returns each one's first messages. `tasks` were listed before."""
        answers = self._ask([{"reset": {"episode": i, "task": task}} for i, task in enumerate(tasks)])
        return [answer["messages"] for answer in answers]

    def step(self, messages: dict[int, dict]) -> list[dict]:
        """One assistant message per episode; returns {messages, done, evaluation?} in the same order."""
        return self._ask([{"step": {"episode": i, "message": message}} for i, message in messages.items()])
