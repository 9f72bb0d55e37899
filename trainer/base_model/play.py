"""Plays a model in the real environment, all episodes side by side, each turn one batched generation."""

from dataclasses import dataclass, field

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from trainer.base_model.conversation import parse, render
from trainer.base_model.shop import Player

MAX_NEW_TOKENS = 40


@dataclass
class Rollout:
    """One played episode; `turns` are (prompt ids, sampled ids) of each assistant turn."""

    task: dict
    messages: list[dict]
    evaluation: dict | None = None
    turns: list[tuple[list[int], list[int]]] = field(default_factory=list)

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
        for i, prompt, ids in zip(running, prompts, sampled, strict=True):
            rollouts[i].turns.append((prompt, ids))
        for i, result in zip(list(running), player.step(replies), strict=True):
            rollouts[i].messages += [replies[i], *result["messages"]]
            rollouts[i].evaluation = result.get("evaluation")
        running = [i for i in running if rollouts[i].evaluation is None]
        if not running:
            break
    return rollouts
