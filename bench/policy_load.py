"""
Parts of the load on the policy server: what is said, what is counted, and a client that costs little. Invariant:
nothing here does work that could be mistaken for the server's.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path

GROUP_SIZE = 16


class Script:
    """What is said in synthetic episodes, in `words` (token ids or text). The same place always gets the same words."""

    def __init__(self, system: int, task: int, tool: int, words: list) -> None:
        """Lengths in tokens of the system turn, the first user turn and a tool result, each with its end of turn."""
        self._task, self._tool = task, tool
        # Drawing words one by one would cost as much as a forward pass: every text is a stretch of these.
        self._words = random.Random(0).choices(words, k=4096)
        self.system = self._stretch(0, system)

    def task(self, client: int, episode: int) -> list:
        """The first user turn: the same for the clients of a group."""
        return self._stretch(1 + client // GROUP_SIZE + 31 * episode, self._task)

    def tool(self, client: int, episode: int, turn: int) -> list:
        """A tool result: each its own."""
        return self._stretch(client + 64 * turn + 257 * episode, self._tool)

    def _stretch(self, place: int, count: int) -> list:
        begin = place * 7919 % (len(self._words) - count)
        return self._words[begin : begin + count - 1]  # the end of the turn makes up the count


def words_of(model: Path) -> dict[str, int]:
    """Plain words of the vocabulary, which survive being written and read again, and their ids."""
    from transformers import PreTrainedTokenizerFast

    vocabulary = PreTrainedTokenizerFast.from_pretrained(model).get_vocab()
    return {word: vocabulary[word] for word in sorted(vocabulary) if word.isalnum()}


def cpu_seconds(pid: int | str) -> float:
    """CPU time of a process (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Tally:
    """Tokens and requests of the measured time."""

    def __init__(self, pid: int | str = "self") -> None:
        self.pid = pid
        self.tokens = self.requests = 0
        self.began, self.began_cpu = time.perf_counter(), cpu_seconds(pid)

    def figures(self) -> dict:
        seconds, cpu = time.perf_counter() - self.began, cpu_seconds(self.pid) - self.began_cpu
        return {
            "tokens_per_second": round(self.tokens / seconds),
            "requests_per_second": round(self.requests / seconds, 1),
            # What is left of the figure above when others use the machine as well.
            "tokens_per_cpu_second": round(self.tokens / cpu),
        }


class RawClient:
    """A keep-alive HTTP/1.1 connection: client libraries cost more than the server here, and share its two cores."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def connect(cls, url: str) -> RawClient:
        host, port = url.removeprefix("http://").split(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def post(self, path: str, body: bytes) -> bytes:
        """Sends one request and returns the answer's body. Raises RuntimeError for a status other than 200."""
        self._writer.write(
            b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
            % (path.encode(), len(body), body)
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        answer = await self._reader.readexactly(length)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(answer.decode())
        return answer
