"""The base model with several frozen LoRAs, each weighted by what is learned. Invariant: no parameter of the model has
a gradient, and with all weights 1 it is the base with the sum of the adapters."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from pathlib import Path

import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM

from trainer.merge.cat import side_by_side
from trainer.peft_folder import BadAdapter, PeftFolder, read_peft_folder, write_peft_folder

from .job import BadWeighing, WeighJob


class Learned(ABC):
    """What a weighing learns, inside the model."""

    steps: int
    learning_rate: float
    parameters: list[torch.Tensor]

    def __init__(self, job: WeighJob) -> None:
        spread = {"device_map": "auto"} if torch.cuda.is_available() else {}
        self.job = job
        self.model = AutoModelForCausalLM.from_pretrained(job.base_model, dtype=getattr(torch, job.dtype), **spread)
        self.model.eval().requires_grad_(False)
        self.device = next(self.model.parameters()).device
        self.parts = [_read(index, path) for index, path in enumerate(job.adapters)]
        self.modules = sorted({module for part in self.parts for module in part.factors})
        linear = {name: module for name, module in self.model.named_modules() if isinstance(module, torch.nn.Linear)}
        for module in self.modules:
            if module not in linear:
                raise BadWeighing(f"adapters: {module} is no linear module of {job.base_model}; name its adapters")
            self._add(linear[module], module)

    @abstractmethod
    def weight(self, part: int, module: str) -> torch.Tensor:
        """Of an adapter in a module, now: one for all tokens, or [rows, tokens, 1]."""

    @abstractmethod
    def write(self, folder: Path) -> dict[str, object]:
        """Makes the folder of a policy out of what was learned; what else is to be told of it."""

    def _add(self, linear: torch.nn.Linear, module: str) -> None:
        weight = linear.weight
        held = [(n, part) for n, part in enumerate(self.parts) if module in part.factors]
        factors = [
            (n, *(factor.to(weight.device, weight.dtype) for factor in part.factors[module]), part.config.scale(module))
            for n, part in held
        ]
        for n, a, b, _ in factors:
            if (b.shape[0], a.shape[1]) != tuple(weight.shape):
                sizes = f"{b.shape[0]} x {a.shape[1]}, in the base model {weight.shape[0]} x {weight.shape[1]}"
                raise BadWeighing(f"adapters.{n}: {module} is {sizes}; name adapters of this base model")

        def forward(x: torch.Tensor) -> torch.Tensor:
            out = F.linear(x, weight, linear.bias)
            for n, a, b, scale in factors:
                share = (self.weight(n, module) * scale).to(x)
                out = out + share * F.linear(F.linear(x, a), b)
            return out

        linear.forward = forward

    def logprobs(self, ids: torch.Tensor) -> torch.Tensor:
        """Of each id but the first, [rows, tokens - 1]."""
        logits = self.model(input_ids=ids.to(self.device), use_cache=False).logits[:, :-1].float()
        return logits.log_softmax(-1).gather(-1, ids[:, 1:].to(logits.device)[..., None])[..., 0]


class WeighedAdapters(Learned):
    """`weights` is [adapters, layers]; modules that belong to no layer have a column of their own, the last."""

    steps = 10
    learning_rate = 0.03
    """Adam's: what a weight moves a step at most."""

    def __init__(self, job: WeighJob) -> None:
        super().__init__(job)
        self.columns = {layer: n for n, layer in enumerate(sorted({layer_of(module) for module in self.modules}))}
        self.weights = torch.ones(len(self.parts), len(self.columns), device=self.device, requires_grad=True)
        self.parameters = [self.weights]

    def weight(self, part: int, module: str) -> torch.Tensor:
        return self.weights[part, self.columns[layer_of(module)]]

    def write(self, folder: Path) -> dict[str, object]:
        rank, factors = side_by_side(self.weighed())
        write_peft_folder(folder, base=self.job.base_model, rank=rank, factors=factors)
        return {"weights": self.weights.tolist()}

    def weighed(self) -> list[tuple[PeftFolder, float]]:
        """The adapters with the weights in their factors: what a sum at weight 1 makes one adapter of."""
        weights = self.weights.detach().cpu()
        return [
            (
                PeftFolder(
                    part.config,
                    {
                        module: (a, b * weights[n, self.columns[layer_of(module)]].item())
                        for module, (a, b) in part.factors.items()
                    },
                ),
                1.0,
            )
            for n, part in enumerate(self.parts)
        ]


def layer_of(module: str) -> int:
    """The number of the layer in a module's name; beyond all of them where it names none."""
    found = re.search(r"\.(\d+)\.", module)
    return int(found.group(1)) if found else 1_000_000


def _read(index: int, path: str) -> PeftFolder:
    try:
        return read_peft_folder(Path(path))
    except BadAdapter as error:
        raise BadWeighing(f"adapters.{index} {error}") from error
