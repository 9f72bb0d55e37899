"""Plays a model in the real `shop` environment, which node runs from the TypeScript sources: all episodes side by side,
each turn one batched generation.

Invariant: nothing of the environment is written a second time in Python; needs node and the installed node_modules."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from examples.shop.base_model.text import parse, render

ROOT = Path(__file__).parents[3]
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
    process = _node("examples/shop/target/demonstrations.ts", "--count", str(count), "--seed", str(seed), *flags)
    with process:
        yield from map(json.loads, process.stdout)
    if process.returncode != 0:
        raise SystemExit(process.returncode)


class Player:
    """Plays episodes in the real environment, one request at a time (examples/shop/target/play.ts)."""

    def __init__(self) -> None:
        self._process = _node("examples/shop/target/play.ts", stdin=subprocess.PIPE)

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


MAX_NEW_TOKENS = 40


@dataclass
class Rollout:
    """One played episode."""

    task: dict
    messages: list[dict]
    evaluation: dict | None = None

    @property
    def reward(self) -> float:
        """0 for an episode that outgrew the turn limit of `play`."""
        return self.evaluation["reward"] if self.evaluation else 0.0


@torch.inference_mode()
def generate(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, prompts: list[list[int]], temperature: float
) -> list[list[int]]:
    """Sampled ids per prompt, `<|end|>` included; temperature 0 is greedy."""
    width = max(map(len, prompts))
    padded = torch.tensor([[tokenizer.pad_token_id] * (width - len(p)) + p for p in prompts], device=model.device)
    sampling = (
        {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0}
        if temperature
        else {"do_sample": False}
    )
    mask = (padded != tokenizer.pad_token_id).long()
    out = model.generate(padded, attention_mask=mask, max_new_tokens=MAX_NEW_TOKENS, **sampling)[:, width:].tolist()
    end = tokenizer.eos_token_id
    return [row[: row.index(end) + 1] if end in row else row for row in out]


def play(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    player: Player,
    tools: list[dict],
    tasks: list[dict],
    temperature: float,
    max_turns: int = 10,
) -> list[Rollout]:
    """One rollout per entry of `tasks` (a task may be named more than once)."""
    model.eval()
    rollouts = [Rollout(t, m) for t, m in zip(tasks, player.reset([t["id"] for t in tasks]), strict=True)]
    running = list(range(len(rollouts)))
    for _ in range(max_turns):
        prompts = [tokenizer.encode(render(tokenizer, rollouts[i].messages, tools, True)) for i in running]
        sampled = generate(model, tokenizer, prompts, temperature)
        replies = {i: parse(tokenizer.decode(ids), tools) for i, ids in zip(running, sampled, strict=True)}
        for i, result in zip(list(running), player.step(replies), strict=True):
            rollouts[i].messages += [replies[i], *result["messages"]]
            rollouts[i].evaluation = result.get("evaluation")
        running = [i for i in running if rollouts[i].evaluation is None]
        if not running:
            break
    return rollouts
