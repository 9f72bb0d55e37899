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
from trainer.merge.job import BadMerge
from trainer.peft_folder import BadAdapter, PeftFolder, read_peft_folder, write_peft_folder

from .job import BadWeighing, WeighJob


class Learned(ABC):
    """What a weighing learns, inside the model. `blocks` are [adapters, ranks], 1 on the ranks of each adapter."""

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
        # Side by side, so that a module needs two products for all adapters.
        try:
            _, self.factors = side_by_side([(part, 1.0) for part in self.parts])
        except BadMerge as error:
            raise BadWeighing(str(error)) from error
        widths = [max(a.shape[0] for a, _ in part.factors.values()) for part in self.parts]
        self.blocks = torch.eye(len(widths)).repeat_interleave(torch.tensor(widths), 1).to(self.device)
        self.modules = sorted(self.factors)
        linear = {name: module for name, module in self.model.named_modules() if isinstance(module, torch.nn.Linear)}
        for module in self.modules:
            if module not in linear:
                raise BadWeighing(f"adapters: {module} is no linear module of {job.base_model}; name its adapters")
            self._add(linear[module], module)

    @abstractmethod
    def mask(self, module: str) -> torch.Tensor:
        """What the ranks of all adapters, side by side, are multiplied with in a module now: [..., ranks]."""

    @abstractmethod
    def write(self, folder: Path) -> dict[str, object]:
        """Makes the folder of a policy out of what was learned; what else is to be told of it."""

    def _add(self, linear: torch.nn.Linear, module: str) -> None:
        weight = linear.weight
        a, b = (factor.to(weight.device, weight.dtype) for factor in self.factors[module])
        if (b.shape[0], a.shape[1]) != tuple(weight.shape):
            sizes = f"{b.shape[0]} x {a.shape[1]}, in the base model {weight.shape[0]} x {weight.shape[1]}"
            raise BadWeighing(f"adapters: {module} is {sizes}; name adapters of this base model")

        def forward(x: torch.Tensor) -> torch.Tensor:
            return F.linear(x, weight, linear.bias) + F.linear(F.linear(x, a) * self.mask(module).to(x), b)

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

    def mask(self, module: str) -> torch.Tensor:
        return self.weights[:, self.columns[layer_of(module)]] @ self.blocks

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
