"""Adapters behind a gate. Invariant: the gate starts at zero, and only it has a gradient."""

from __future__ import annotations

from pathlib import Path

import torch

from trainer.gates import GLOBAL, Gate, GateSpec, hidden_of, layer_name, layers_of, write_gate_folder

from .job import BadWeighing, WeighJob
from .model import Learned


class GatedAdapters(Learned):
    """`gate` holds what is learned."""

    steps = 20

    def __init__(self, job: WeighJob, spec: GateSpec) -> None:
        super().__init__(job)
        for module in self.modules:
            if module.count(".experts.") or layer_name(module) is None:
                problem = f"{module} is not called once with all tokens of a decoder layer"
                raise BadWeighing(f"adapters: {problem}; leave the gate out, or train adapters without that module")
        layers = layers_of(self.modules)
        outputs, hidden = spec.outputs(len(self.parts)), self.model.config.get_text_config().hidden_size
        # Adam moves each weight by so much a step: a logit, of hidden states whose mean square is 1, by 1 at most.
        self.learning_rate = 1 / hidden
        self.gate = Gate(
            spec,
            {
                layer: (
                    torch.zeros(outputs, hidden, device=self.device, requires_grad=True),
                    torch.zeros(outputs, device=self.device, requires_grad=True),
                )
                for layer in (layers if spec.scope == "layer" else [GLOBAL])
            },
        )
        self.parameters = [tensor for pair in self.gate.maps.values() for tensor in pair]
        linears = [name for name, module in self.model.named_modules() if isinstance(module, torch.nn.Linear)]
        for layer in layers if spec.scope == "layer" else layers_of(linears)[:1]:
            self.model.get_submodule(layer).register_forward_pre_hook(self._enter(layer), with_kwargs=True)

    def mask(self, module: str) -> torch.Tensor:
        return self._mask

    def write(self, folder: Path) -> dict[str, object]:
        adapters = [Path(path) for path in self.job.adapters]
        write_gate_folder(folder, base=self.job.base_model, gate=self.gate, adapters=adapters)
        return {}

    def _enter(self, layer: str):
        def enter(_: torch.nn.Module, args: tuple, kwargs: dict) -> None:
            hidden = hidden_of(args, kwargs)
            if self.gate.spec.scope == "layer":
                weights = self.gate.weights(layer, hidden)
            else:
                weights = self.gate.weights(GLOBAL, hidden.float().cumsum(1))
            self._mask = weights @ self.blocks

        return enter
