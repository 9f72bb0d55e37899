"""Shared code of the learners' tests: small jobs, and a scripted gpu worker around a real learner process.

The worker samples from the real model with the adapter that the trainer names, so its answers are a function of
(adapter bytes, task, attempt) alone. Learners are forked from a process that has imported torch and TRL already."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sys
from collections.abc import Callable
from multiprocessing.reduction import DupFd
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from trainer.command import read_input
from trainer.train.job import Job

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ["q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3"]
LORA = {"r": 4, "alpha": 4, "dropout": 0, "target_modules": TARGETS}
WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"
Message = dict[str, Any]

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["trainer.train.learn", "trainer.gepa"])


def make_job(base: Path, output: Path, **changes: Any) -> Message:
    """A job of 4 steps of 2 groups of 4 rollouts."""
    job = {
        "base_model": str(base),
        "output_dir": str(output),
        "seed": 3,
        "processes": 1,
        "tasks": ["s1", "s2", "s3"],
        "steps": 4,
        "groups_per_step": 2,
        "group_size": 4,
        "lora": LORA,
        "learning_rate": 0.01,
        "max_grad_norm": 1.0,
        "clip": 0.2,
        "delta": 4.0,
        "importance_sampling_clip_max": None,
        "off_policy_mask_threshold": 0.5,
        "max_logprob_gap": 0.5,
        "kl": 0,
        "temperature": 1,
        "advantage": "group",
        "checkpoint_every": 2,
        "threads": 1,
        "dtype": "float32",
        "tokens_per_forward": 4096,
        "gradient_checkpointing": False,
        "report_to": "none",
    }
    return {**job, **changes}


def parse_job(job: Message) -> Job:
    """As from a file. Raises BadInput."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "job.json"
        file.write_text(json.dumps(job))
        return read_input(Job, file, name="--job")


def changed_config(adapter: Path, **fields: Any) -> None:
    file = adapter / CONFIG
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


def changed_weights(adapter: Path, change: Callable[[str, torch.Tensor], torch.Tensor]) -> None:
    weights = {name: change(name, tensor).contiguous() for name, tensor in load_file(adapter / WEIGHTS).items()}
    save_file(weights, adapter / WEIGHTS)


def copy_of(adapter: Path, folder: Path, change: Callable[[Path], Any] = lambda folder: None) -> Path:
    """A changed copy of an adapter's two files."""
    folder.mkdir(parents=True)
    for name in (WEIGHTS, CONFIG):
        shutil.copyfile(adapter / name, folder / name)
    change(folder)
    return folder


def sample_group(model: Any, task: str, size: int) -> list[Message]:
    """`size` rollouts of a task: five sampled tokens, two given ones, three sampled ones; the reward counts even
    tokens."""
    prompt = [10 + ord(letter) % 40 for letter in task]
    generator = torch.Generator().manual_seed(sum(map(ord, task)))
    ids = torch.tensor([prompt] * size)
    logprobs, mask = torch.zeros(size, 0), []
    with torch.no_grad():
        for sampled in [1] * 5 + [0] * 2 + [1] * 3:
            logs = model(input_ids=ids).logits[:, -1].float().log_softmax(-1)
            token = torch.multinomial(logs.exp(), 1, generator=generator) if sampled else torch.full((size, 1), 7)
            logprobs = torch.cat([logprobs, logs.gather(1, token) * sampled], dim=1)
            ids = torch.cat([ids, token], dim=1)
            mask.append(sampled)
    rollouts = []
    for row, logs in zip(ids.tolist(), logprobs.tolist(), strict=True):
        completion = row[len(prompt) :]
        reward = sum(token % 2 == 0 for token, own in zip(completion, mask, strict=True) if own) / sum(mask)
        row = {"prompt_ids": prompt, "completion_ids": completion, "logprobs": logs, "mask": mask}
        rollouts.append({"task": task, "rows": [row], "reward": reward})
    return rollouts


def as_lines(rollouts: list[Message]) -> str:
    """The text of a batch file."""
    return "".join(f"{json.dumps(rollout)}\n" for rollout in rollouts)


def rollouts_of(answer: str) -> list[Message]:
    """Returns the rollouts in an answer of the worker."""
    return [json.loads(line) for line in Path(json.loads(answer)["file"]).read_text().splitlines()]


def _learn(pipes: list[DupFd], before: str, argv: list[str]) -> None:
    """Runs in the learner's process, whose standard streams are the pipes."""
    for number, pipe in enumerate(pipes):
        os.dup2(pipe.detach(), number)
    sys.stdin, sys.stdout, sys.stderr = (open(n, "w" if n else "r", closefd=False) for n in range(3))  # noqa: SIM115
    exec(before, {})
    from trainer.__main__ import main

    sys.exit(main(argv))


class Learner:
    """A learner's process and our ends of its pipes."""

    def __init__(self, argv: list[str], log: Path, before: str) -> None:
        (theirs_in, ours_in), (ours_out, theirs_out) = os.pipe(), os.pipe()
        self.stdin: TextIO = os.fdopen(ours_in, "w", buffering=1)
        self.stdout: TextIO = os.fdopen(ours_out)
        with log.open("w") as file:
            pipes = [DupFd(fd) for fd in (theirs_in, theirs_out, file.fileno())]
            self.process = FORKS.Process(target=_learn, args=(pipes, before, argv))
            self.process.start()
        for fd in (theirs_in, theirs_out):
            os.close(fd)

    def terminate(self) -> None:
        self.process.terminate()

    def kill(self) -> None:
        """As if the machine had stopped: nothing is answered any more."""
        self.process.kill()
        self.process.join()
        self.stdin.close()


OnMessage = Callable[[Message, Learner], str | bool | None]


def at(step: int, act: Callable[[Learner], Any], type: str = "rollouts") -> OnMessage:
    """Does something to the learner at the message of a step, which is not answered then."""

    def on_message(message: Message, learner: Learner) -> bool | None:
        if message["type"] == type and message["step"] == step:
            act(learner)
            return False
        return None

    return on_message


class Worker:
    """A gpu worker: `run` starts the learner and answers until it exits; keeps every line that the learner wrote."""

    def __init__(
        self, folder: Path, job: Message, *, program: str = "train", start: Callable[..., Learner] = Learner
    ) -> None:
        self.program, self.folder, self.job, self.start = program, folder, job, start
        folder.mkdir(parents=True, exist_ok=True)
        self.output = Path(job["output_dir"])
        self.messages: list[Message] = []
        self.stderr = ""
        self.exit_code: int | None = None

    def run(self, on_message: OnMessage = lambda message, learner: None, *, before: str = "") -> Worker:
        """`on_message` sees every message first: it may end the process, and returns the line to answer with, False for
        no answer, or None for the usual one. `before` is Python that the learner's process runs first."""
        self.messages = []
        job, log = self.folder / "job.json", self.folder / "stderr.log"
        job.write_text(json.dumps(self.job))
        learner = self.start([self.program, "--job", str(job)], log, before)
        for line in learner.stdout:
            message = json.loads(line)  # anything but JSON on stdout fails the test
            self.messages.append(message)
            answer = on_message(message, learner)
            if answer is None and message["type"] in ("rollouts", "reply") and not learner.stdin.closed:
                answer = self.answer(message)
            if answer:
                learner.stdin.write(answer + "\n")
        learner.stdout.close()
        learner.stdin.close()
        learner.process.join()
        self.exit_code = learner.process.exitcode
        self.stderr = log.read_text()
        return self

    def again(self) -> Worker:
        """Runs the same job in the same folder again."""
        return Worker(self.folder, self.job, program=self.program, start=self.start).run()

    def answer(self, request: Message) -> str:
        """Makes the rollouts of a request with the adapter it names, and returns the answer's line."""
        base = AutoModelForCausalLM.from_pretrained(self.job["base_model"])
        model = PeftModel.from_pretrained(base, request["policy"]["adapter"]).eval()
        return self.write_batch(
            request, [one for task in request["tasks"] for one in sample_group(model, task, request["group_size"])]
        )

    def write_batch(self, request: Message, rollouts: list[Message]) -> str:
        file = self.folder / f"batch-{request['id']}.jsonl"
        file.write_text(as_lines(rollouts))
        return json.dumps({"type": "rollouts", "id": request["id"], "file": str(file)})

    def of_type(self, kind: str) -> list[Message]:
        return [message for message in self.messages if message["type"] == kind]

    def metrics(self) -> list[Message]:
        return [json.loads(line) for line in (self.output / "metrics.jsonl").read_text().splitlines()]

    def adapter_bytes(self, step: int) -> bytes:
        return (self.output / f"checkpoint-{step}" / WEIGHTS).read_bytes()
