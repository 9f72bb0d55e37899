"""Trains a gate. Invariants: every task counts the same, however many of its rollouts succeeded; what is kept is the
step that is best on tasks that no step saw, the first (nothing learned) among them; the same job gives the same bytes,
written whole or not at all."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM

from trainer.merge import BadMerge, side_by_side, whole_folder
from trainer.peft_folder import BadAdapter, PeftFolder, read_peft_folder

from .gate import blocks_of, gate_weights, hidden_of, layer_name, layers_of, write_gate_folder
from .job import BadGateJob, GateJob, Row, Task

STEPS = 20
HELD_OUT = 0.2
"""Of the tasks."""
LEARNED_FILE = "learned.json"


class GatedModel:
    """The base model with several frozen LoRAs behind a gate; only the gate has a gradient."""

    def __init__(self, job: GateJob) -> None:
        spread = {"device_map": "auto"} if torch.cuda.is_available() else {}
        self.job = job
        self.model = AutoModelForCausalLM.from_pretrained(job.base_model, dtype=getattr(torch, job.dtype), **spread)
        self.model.eval().requires_grad_(False)
        self.device = next(self.model.parameters()).device
        parts = [_read(index, path) for index, path in enumerate(job.adapters)]
        # Side by side, so that a module needs two products for all adapters.
        try:
            _, self.factors = side_by_side([(part, 1.0) for part in parts])
        except BadMerge as error:
            raise BadGateJob(str(error)) from error
        self.blocks = blocks_of([max(a.shape[0] for a, _ in part.factors.values()) for part in parts]).to(self.device)
        linear = {name: module for name, module in self.model.named_modules() if isinstance(module, torch.nn.Linear)}
        for module in sorted(self.factors):
            if module not in linear:
                raise BadGateJob(f"adapters: {module} is no linear module of {job.base_model}; name its adapters")
            if module.count(".experts.") or layer_name(module) is None:
                problem = f"{module} is not called once with all tokens of a decoder layer"
                raise BadGateJob(f"adapters: {problem}; choose another router, or train adapters without that module")
            self._add(linear[module], module)
        outputs, hidden = 1 + len(parts), self.model.config.get_text_config().hidden_size
        # Adam moves each weight by so much a step: a logit, of hidden states whose mean square is 1, by 1 at most.
        self.learning_rate = 1 / hidden
        self.gate = {layer: (self._zeros(outputs, hidden), self._zeros(outputs)) for layer in layers_of(self.factors)}
        self.parameters = [tensor for pair in self.gate.values() for tensor in pair]
        for layer in self.gate:
            self.model.get_submodule(layer).register_forward_pre_hook(self._enter(layer), with_kwargs=True)

    def logprobs(self, ids: torch.Tensor) -> torch.Tensor:
        """Of each id but the first, [rows, tokens - 1]."""
        logits = self.model(input_ids=ids.to(self.device), use_cache=False).logits[:, :-1].float()
        return logits.log_softmax(-1).gather(-1, ids[:, 1:].to(logits.device)[..., None])[..., 0]

    def _zeros(self, *shape: int) -> torch.Tensor:
        return torch.zeros(*shape, device=self.device, requires_grad=True)

    def _add(self, linear: torch.nn.Linear, module: str) -> None:
        weight = linear.weight
        a, b = (factor.to(weight.device, weight.dtype) for factor in self.factors[module])
        if (b.shape[0], a.shape[1]) != tuple(weight.shape):
            sizes = f"{b.shape[0]} x {a.shape[1]}, in the base model {weight.shape[0]} x {weight.shape[1]}"
            raise BadGateJob(f"adapters: {module} is {sizes}; name adapters of this base model")

        def forward(x: torch.Tensor) -> torch.Tensor:
            return F.linear(x, weight, linear.bias) + F.linear(F.linear(x, a) * self._mask.to(x), b)

        linear.forward = forward

    def _enter(self, layer: str):
        def enter(_: torch.nn.Module, args: tuple, kwargs: dict) -> None:
            self._mask = gate_weights(self.gate, layer, hidden_of(args, kwargs)) @ self.blocks

        return enter


def _read(index: int, path: str) -> PeftFolder:
    try:
        return read_peft_folder(Path(path))
    except BadAdapter as error:
        raise BadGateJob(f"adapters.{index} {error}") from error


@dataclass(frozen=True)
class _Rows:
    """Padded on the right: what follows a token never reaches it in a causal model."""

    ids: torch.Tensor
    shares: torch.Tensor
    """What each id but the first counts, [rows, tokens - 1]; 0 on those that were not sampled."""


def train_gate(job: GateJob, *, progress: Callable[[int, int], None]) -> None:
    """Learns and writes the folder: a policy, and learned.json beside it. Raises BadGateJob."""
    torch.manual_seed(job.seed)
    torch.set_num_threads(job.threads)
    gated = GatedModel(job)
    tasks = list(job.tasks)
    random.Random(job.seed).shuffle(tasks)
    cut = max(1, round(len(tasks) * HELD_OUT))
    held_out, train = (_batches(part, job.tokens_per_forward) for part in (tasks[:cut], tasks[cut:]))
    optimizer = torch.optim.Adam(gated.parameters, lr=gated.learning_rate)
    losses: list[float] = []
    best: list[torch.Tensor] = []
    for step in range(STEPS + 1):
        with torch.no_grad():
            losses.append(sum(_loss(gated, rows).item() for rows in held_out) / cut)
        if not best or losses[-1] < min(losses[:-1]):
            best = [parameter.detach().clone() for parameter in gated.parameters]
        progress(step + 1, STEPS + 1)
        if step == STEPS:
            break
        optimizer.zero_grad()
        for rows in train:
            (_loss(gated, rows) / (len(tasks) - cut)).backward()
        optimizer.step()
    with torch.no_grad():
        for parameter, kept in zip(gated.parameters, best, strict=True):
            parameter.copy_(kept)
    with whole_folder(Path(job.output_dir)) as folder:
        write_gate_folder(folder, base=job.base_model, gate=gated.gate, adapters=[Path(path) for path in job.adapters])
        (folder / LEARNED_FILE).write_text(json.dumps({"held_out_losses": losses}, indent=1) + "\n")


def _loss(gated: GatedModel, rows: _Rows) -> torch.Tensor:
    logprobs = gated.logprobs(rows.ids)
    return -(logprobs * rows.shares.to(logprobs.device)).sum()


def _batches(tasks: list[Task], tokens: int) -> list[_Rows]:
    """Rows of like length together, each batch at most so many padded tokens, or one row."""
    rows = [(row, 1 / task.rollouts) for task in tasks for row in task.rows]
    rows.sort(key=lambda one: _length(one[0]), reverse=True)
    batches: list[list[tuple[Row, float]]] = []
    for one in rows:
        if batches and _length(batches[-1][0][0]) * (len(batches[-1]) + 1) <= tokens:
            batches[-1].append(one)
        else:
            batches.append([one])
    return [_padded(batch) for batch in batches]


def _length(row: Row) -> int:
    return len(row.prompt_ids) + len(row.completion_ids)


def _padded(batch: list[tuple[Row, float]]) -> _Rows:
    width = _length(batch[0][0])
    ids = torch.zeros(len(batch), width, dtype=torch.long)
    shares = torch.zeros(len(batch), width)
    for n, (row, share) in enumerate(batch):
        if len(row.mask) != len(row.completion_ids):
            raise BadGateJob(f"mask: {len(row.mask)} of {len(row.completion_ids)} completion_ids; give one each")
        begin, end = len(row.prompt_ids), _length(row)
        ids[n, :end] = torch.tensor(row.prompt_ids + row.completion_ids)
        shares[n, begin:end] = torch.tensor(row.mask) * share
    return _Rows(ids, shares[:, 1:])
