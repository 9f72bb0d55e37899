"""What the trainer's tests share: a small job, and a scripted gpu worker around a real trainer process.

The worker samples from the real model with the adapter that the trainer names, so its answers are a function of
(adapter bytes, task, attempt) alone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ["q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3"]
LORA = {"r": 4, "alpha": 4, "dropout": 0, "target_modules": TARGETS}
Message = dict[str, Any]
OnMessage = Callable[[Message, subprocess.Popen], str | bool | None]


def lora_job(base: Path, output: Path, **fields: Any) -> Message:
    """What every job of one LoRA says, and `fields`."""
    job = {
        "base_model": str(base),
        "output_dir": str(output),
        "seed": 3,
        "lora": LORA,
        "init_adapter": None,
        "learning_rate": 0.01,
        "max_grad_norm": 1.0,
        "checkpoint_every": 2,
        "threads": 1,
        "dtype": "float32",
        "tokens_per_forward": 4096,
        "gradient_checkpointing": False,
    }
    return {**job, **fields}


def make_job(base: Path, output: Path, **changes: Any) -> Message:
    """A job of 4 steps of 2 groups of 4 rollouts."""
    fields = {
        "tasks": ["s1", "s2", "s3"],
        "steps": 4,
        "groups_per_step": 2,
        "group_size": 4,
        "loss": "grpo",
        "clip": 0.2,
        "kl": 0,
        "temperature": 1,
        "advantage": "group",
    }
    return lora_job(base, output, **{**fields, **changes})


def sample_group(model: Any, task: str, size: int) -> Message:
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
        rollouts.append({"rows": [row], "reward": reward})
    return {"task": task, "rollouts": rollouts}


class Worker:
    """A gpu worker: `run` starts the trainer and answers until it exits; keeps every line that the trainer wrote."""

    def __init__(self, folder: Path, job: Message, *, program: str = "train") -> None:
        self.program = program
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.job = job
        self.messages: list[Message] = []
        self.stderr = ""
        self.exit_code: int | None = None

    def run(self, on_message: OnMessage = lambda message, process: None, *, before: str = "") -> Worker:
        """`on_message` sees every message first: it may end the process, and returns the line to answer with, False for
        no answer, or None for the usual one. `before` is Python that the trainer's process runs first."""
        (self.folder / "job.json").write_text(json.dumps(self.job))
        program = before + f"\nimport sys; from trainer.{self.program} import main; sys.exit(main(sys.argv[1:]))"
        command = [sys.executable, "-c", program, "--job", str(self.folder / "job.json")]
        with (self.folder / "stderr.log").open("w+") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1
            )
            for line in process.stdout:
                message = json.loads(line)  # anything but JSON on stdout fails the test
                self.messages.append(message)
                answer = on_message(message, process)
                if answer is None and message["type"] == "rollouts" and not process.stdin.closed:
                    answer = self.answer(message)
                if answer:
                    process.stdin.write(answer + "\n")
            process.stdout.close()
            if not process.stdin.closed:
                process.stdin.close()
            self.exit_code = process.wait()
            log.seek(0)
            self.stderr = log.read()
        return self

    def answer(self, request: Message) -> str:
        """Makes the rollouts of a request with the adapter it names, and the line that tells of them."""
        base = AutoModelForCausalLM.from_pretrained(self.job["base_model"])
        model = PeftModel.from_pretrained(base, request["policy"]["adapter"]).eval()
        groups = [sample_group(model, task, request["group_size"]) for task in request["tasks"]]
        return self.write_batch(request, {"groups": groups})

    def write_batch(self, request: Message, batch: Message) -> str:
        file = self.folder / f"batch-{request['id']}.json"
        file.write_text(json.dumps(batch))
        return json.dumps({"type": "rollouts", "id": request["id"], "file": str(file)})

    def of_type(self, kind: str) -> list[Message]:
        return [message for message in self.messages if message["type"] == kind]


def terminate(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGTERM)
