"""One training in several processes, one a device: each has the whole model, and computes a part of every step's
micro-batches.

Invariants: rank 0 alone speaks to the worker and writes files; it has started the others, which end with it, and it
with any of them. All ranks add up the same gradient, and so make the same step: their weights stay equal to the bit.
The group is torch's, not accelerate's: to TRL every rank is alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from trainer.command import BadInput, read_input
from trainer.keys import environment_without_keys

from .channel import Diverged, SamplerDiffers
from .job import DamagedBatch, Job, set_threads, use_device

FOREVER = timedelta(days=365)
"""The time for a step's rollouts is not limited. A dead process is detected when it exits."""


class Ranks:
    """Communication between the processes of a training. It does nothing if there is one process."""

    def __init__(self, rank: int = 0, size: int = 1, store: str = "") -> None:
        self.rank, self.size = rank, size
        if size == 1:
            return
        import torch
        from torch import distributed

        self._store = distributed.FileStore(store, size)
        self._store.set_timeout(FOREVER)
        self._device, backend = ("cuda", "nccl") if torch.cuda.is_available() else ("cpu", "gloo")
        distributed.init_process_group(
            backend, store=distributed.PrefixStore("group", self._store), rank=rank, world_size=size, timeout=FOREVER
        )

    @classmethod
    def start(cls, job: Job, checkpoint: Path | None) -> Ranks:
        """Starts the other processes, which resume from the same checkpoint. Called by rank 0."""
        if job.processes == 1:
            return cls()
        # Not in a folder that an attempt before, which may be dying still, has files open in.
        for left in job.output.glob(".ranks-*"):
            shutil.rmtree(left, ignore_errors=True)
        folder = Path(mkdtemp(prefix=".ranks-", dir=job.output))
        (folder / "job.json").write_text(job.model_dump_json())
        store, resumed = str(folder / "store"), str(checkpoint or "")
        for rank in range(1, job.processes):
            argv = [sys.executable, "-m", "trainer.train.ranks", str(folder / "job.json"), str(rank), store, resumed]
            env = {**environment_without_keys(), "CUDA_VISIBLE_DEVICES": os.environ.get("RANKS_DEVICES", "")}
            if not env["CUDA_VISIBLE_DEVICES"]:
                del env["CUDA_VISIBLE_DEVICES"]
            # Its stdin ends with this process, however that ends.
            child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=2, env=env)
            threading.Thread(target=_end_with, args=(child,), daemon=True).start()
        return cls(0, job.processes, store)

    def shared(self, name: str, make: Callable[[], str]) -> str:
        """Returns the text that rank 0 makes. An exception of `make` ends rank 0 and the other processes with it."""
        if self.size == 1:
            return make()
        if self.rank > 0:
            return self._store.get(name).decode()
        made = make()
        self._store.set(name, made)
        return made

    def own(self, sizes: Sequence[int]) -> list[int]:
        """Returns the indexes of the pieces of a step that this rank computes. The sizes are balanced between ranks."""
        dealt: list[list[int]] = [[] for _ in range(self.size)]
        loads = [0] * self.size
        for index in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
            least = loads.index(min(loads))
            dealt[least].append(index)
            loads[least] += sizes[index]
        return sorted(dealt[self.rank])

    def add(self, model: Any, sums: dict[str, float]) -> None:
        """Adds up the gradients and the sums of all ranks, in place."""
        import torch
        from torch import distributed

        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        for parameter in trained:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        numbers = torch.tensor([float(one) for one in sums.values()], device=trained[0].device)
        flat = torch.cat([*(parameter.grad.float().reshape(-1) for parameter in trained), numbers])
        distributed.all_reduce(flat)
        at = 0
        for parameter in trained:
            count = parameter.numel()
            parameter.grad.copy_(flat[at : at + count].view_as(parameter))
            at += count
        sums.update(zip(list(sums), flat[at:].tolist(), strict=True))

    def largest(self, numbers: Sequence[float]) -> list[float]:
        """Returns the numbers of the rank whose first number is the largest."""
        if self.size == 1:
            return list(numbers)
        import torch
        from torch import distributed

        own = torch.tensor(numbers, dtype=torch.float64, device=self._device)
        found = [torch.empty_like(own) for _ in range(self.size)]
        distributed.all_gather(found, own)
        return max((one.tolist() for one in found), key=lambda one: one[0])


def _end_with(child: subprocess.Popen) -> None:
    if child.wait() != 0:
        os._exit(1)  # the other processes would wait for it without end


def follow(path: str, rank: str, store: str, checkpoint: str) -> None:
    """A rank other than 0, to its end."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # rank 0 gets it too, and stops between two steps

    def watch() -> None:
        sys.stdin.buffer.read()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    job = read_input(Job, Path(path), name="job")
    use_device(job.processes, int(rank))
    set_threads(max(1, job.threads // job.processes))
    try:
        from .learn import make_trainer, set_up

        set_up(job)
        trainer = make_trainer(job, None, Ranks(int(rank), job.processes, store))
        trainer.train(resume_from_checkpoint=checkpoint or None)
    except (BadInput, DamagedBatch, Diverged, SamplerDiffers):
        traceback.print_exc()
        threading.Event().wait()  # rank 0 finds the same, says so, and ends


if __name__ == "__main__":
    follow(*sys.argv[1:])
