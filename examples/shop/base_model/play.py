"""Plays a model in the real `shop` environment, which node runs from the TypeScript sources: all episodes side by side,
each turn one batched generation.

Invariant: nothing of the environment is written a second time in Python; needs node and the installed node_modules."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from examples.shop.base_model.text import parse, render

ROOT = Path(__file__).parents[3]
MAX_NEW_TOKENS, MAX_TURNS = 40, 10


class Player:
    """Plays episodes in the real environment, one request at a time (examples/shop/target/play.ts)."""

    def __init__(self) -> None:
        # The hook transpiles the TypeScript sources as they are loaded.
        command = ["node", "-r", "./test/support/register.cjs", "examples/shop/target/play.ts"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)

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

    def demonstrations(self, count: int, seed: int, lacks: dict[str, float]) -> dict:
        """{environment, words, demonstrations}, with the mistakes of `lacks` (skill: probability)."""
        return self._ask([{"demonstrations": {"count": count, "seed": seed, "lacks": lacks}}])[0]

    def tasks(self, count: int) -> list[dict]:
        """The first train tasks {id, skills}."""
        return self._ask([{"tasks": {"count": count}}])[0]["tasks"]

    def reset(self, tasks: list[str]) -> list[list[dict]]:
        """Opens episode i on tasks[i]; returns each one's first messages. `tasks` were listed before."""
        answers = self._ask([{"reset": {"episode": i, "task": task}} for i, task in enumerate(tasks)])
        return [answer["messages"] for answer in answers]

    def step(self, messages: dict[int, dict]) -> list[dict]:
        """One assistant message per episode; returns {messages, done, evaluation?} in the same order."""
        return self._ask([{"step": {"episode": i, "message": message}} for i, message in messages.items()])


@dataclass
class Rollout:
    """One played episode; its reward is 0 if it outgrew MAX_TURNS."""

    task: dict
    messages: list[dict]
    reward: float = 0.0


@torch.inference_mode()
def generate(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, prompts: list[list[int]]) -> list[list[int]]:
    """Sampled ids per prompt, `<|end|>` included."""
    width = max(map(len, prompts))
    padded = torch.tensor([[tokenizer.pad_token_id] * (width - len(p)) + p for p in prompts], device=model.device)
    sampling = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "max_new_tokens": MAX_NEW_TOKENS}
    mask = (padded != tokenizer.pad_token_id).long()
    out = model.generate(padded, attention_mask=mask, **sampling)[:, width:].tolist()
    end = tokenizer.eos_token_id
    return [row[: row.index(end) + 1] if end in row else row for row in out]


def play(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    player: Player,
    tools: list[dict],
    tasks: list[dict],
) -> list[Rollout]:
    """One rollout per entry of `tasks` (a task may be named more than once)."""
    model.eval()
    rollouts = [Rollout(t, m) for t, m in zip(tasks, player.reset([t["id"] for t in tasks]), strict=True)]
    running = list(range(len(rollouts)))
    for _ in range(MAX_TURNS):
        prompts = [tokenizer.encode(render(tokenizer, rollouts[i].messages, tools, True)) for i in running]
        sampled = generate(model, tokenizer, prompts)
        replies = {i: parse(tokenizer.decode(ids), tools) for i, ids in zip(running, sampled, strict=True)}
        results = dict(zip(running, player.step(replies), strict=True))
        for i, result in results.items():
            rollouts[i].messages += [replies[i], *result["messages"]]
            rollouts[i].reward = result["evaluation"]["reward"] if result["done"] else 0.0
        running = [i for i, result in results.items() if not result["done"]]
        if not running:
            break
    return rollouts
