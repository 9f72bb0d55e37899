"""The base model with several frozen LoRAs behind a gate. Invariant: the gate starts at zero, and only it has a
gradient."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM

from trainer.gates import GLOBAL, Gate, hidden_of, layer_name, layers_of, write_gate_folder
from trainer.merge.cat import side_by_side
from trainer.merge.job import BadMerge
from trainer.peft_folder import BadAdapter, PeftFolder, read_peft_folder

from .job import BadWeighing, WeighJob


class GatedAdapters:
    """`gate` holds what is learned. `blocks` are [adapters, ranks], 1 on the ranks of each adapter."""

    steps = 20

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
        for module in self.modules:
            if module.count(".experts.") or layer_name(module) is None:
                problem = f"{module} is not called once with all tokens of a decoder layer"
                raise BadWeighing(f"adapters: {problem}; leave the gate out, or train adapters without that module")
        layers = layers_of(self.modules)
        outputs, hidden = job.gate.outputs(len(self.parts)), self.model.config.get_text_config().hidden_size
        # Adam moves each weight by so much a step: a logit, of hidden states whose mean square is 1, by 1 at most.
        self.learning_rate = 1 / hidden
        self.gate = Gate(
            job.gate,
            {
                layer: (
                    torch.zeros(outputs, hidden, device=self.device, requires_grad=True),
                    torch.zeros(outputs, device=self.device, requires_grad=True),
                )
                for layer in (layers if job.gate.scope == "layer" else [GLOBAL])
            },
        )
        self.parameters = [tensor for pair in self.gate.maps.values() for tensor in pair]
        linears = [name for name, module in self.model.named_modules() if isinstance(module, torch.nn.Linear)]
        for layer in layers if job.gate.scope == "layer" else layers_of(linears)[:1]:
            self.model.get_submodule(layer).register_forward_pre_hook(self._enter(layer), with_kwargs=True)

    def _add(self, linear: torch.nn.Linear, module: str) -> None:
        weight = linear.weight
        a, b = (factor.to(weight.device, weight.dtype) for factor in self.factors[module])
        if (b.shape[0], a.shape[1]) != tuple(weight.shape):
            sizes = f"{b.shape[0]} x {a.shape[1]}, in the base model {weight.shape[0]} x {weight.shape[1]}"
            raise BadWeighing(f"adapters: {module} is {sizes}; name adapters of this base model")

        def forward(x: torch.Tensor) -> torch.Tensor:
            return F.linear(x, weight, linear.bias) + F.linear(F.linear(x, a) * self._mask.to(x), b)

        linear.forward = forward

    def logprobs(self, ids: torch.Tensor) -> torch.Tensor:
        """Of each id but the first, [rows, tokens - 1]."""
        logits = self.model(input_ids=ids.to(self.device), use_cache=False).logits[:, :-1].float()
        return logits.log_softmax(-1).gather(-1, ids[:, 1:].to(logits.device)[..., None])[..., 0]

    def write(self, folder: Path) -> None:
        """Makes the folder of the policy."""
        adapters = [Path(path) for path in self.job.adapters]
        write_gate_folder(folder, base=self.job.base_model, gate=self.gate, adapters=adapters)

    def _enter(self, layer: str):
        def enter(_: torch.nn.Module, args: tuple, kwargs: dict) -> None:
            hidden = hidden_of(args, kwargs)
            if self.gate.spec.scope == "layer":
                weights = self.gate.weights(layer, hidden)
            else:
                weights = self.gate.weights(GLOBAL, hidden.float().cumsum(1))
            self._mask = weights @ self.blocks

        return enter


def _read(index: int, path: str) -> PeftFolder:
    try:
        return read_peft_folder(Path(path))
    except BadAdapter as error:
        raise BadWeighing(f"adapters.{index} {error}") from error
