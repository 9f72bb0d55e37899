"""All adapters behind a gate inside the model, y = W x + sum_i w_i(h) s_i B_i A_i x: in every decoder layer a softmax
over base and adapters, of a linear gate on the hidden states h that come into the layer.

`python -m trainer train-gate --job gate.json` trains one on successful rollouts. Its folder (docs/policy-server.md)
holds gate.json, gate.safetensors and every adapter whole, in adapters/0, adapters/1, ...

Invariants: no gradient reaches the model through h; only the gate is learned, from zero, which is equal shares of base
and adapters; trainer and server compute the weights here, so that they agree. A loader that knows plain LoRAs alone
finds none at the top of the folder, and can't take it for a sum."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from trainer.command import Closed, first_problem
from trainer.peft_folder import CONFIG, WEIGHTS, BadAdapter

GATE_CONFIG, GATE_WEIGHTS = "gate.json", "gate.safetensors"

Gate = Mapping[str, tuple[torch.Tensor, torch.Tensor]]
"""By decoder layer: weight [1 + adapters, hidden] and bias [1 + adapters], the base first."""


class GateConfig(Closed):
    """gate.json."""

    format: Literal[2] = 2
    base_model: str
    adapters: int = Field(ge=2)


def gate_weights(gate: Gate, layer: str, hidden: torch.Tensor) -> torch.Tensor:
    """Of the adapters, [..., adapters]; `hidden` is [..., hidden], whose scale does not matter."""
    weight, bias = gate[layer]
    x = hidden.detach().to(weight)
    return F.linear(F.rms_norm(x, x.shape[-1:], eps=1e-12), weight, bias).softmax(-1)[..., 1:]


def blocks_of(widths: list[int]) -> torch.Tensor:
    """[adapters, ranks], 1 on the ranks of each adapter, where they stand side by side."""
    return torch.eye(len(widths)).repeat_interleave(torch.tensor(widths), 1)


def layer_name(module: str) -> str | None:
    """The decoder layer that a module is in, by its name; None for one in no layer."""
    found = re.match(r"(.*?\.\d+)\.", module)
    return found.group(1) if found else None


def layers_of(modules: Iterable[str]) -> list[str]:
    """The decoder layers of some modules, in the order of the forward."""
    layers = {layer for module in modules if (layer := layer_name(module))}
    return sorted(layers, key=lambda layer: int(layer.rpartition(".")[2]))


def hidden_of(args: tuple, kwargs: Mapping[str, object]) -> torch.Tensor:
    """The hidden states that a decoder layer is called with."""
    return args[0] if args else kwargs["hidden_states"]  # type: ignore[return-value]


def write_gate_folder(path: Path, *, base: str, gate: Gate, adapters: list[Path]) -> None:
    """Writes a new folder. The same input, the same bytes."""
    for number, adapter in enumerate(adapters):
        part = path / "adapters" / str(number)
        part.mkdir(parents=True)
        for name in (CONFIG, WEIGHTS):
            shutil.copyfile(adapter / name, part / name)
    config = GateConfig(base_model=base, adapters=len(adapters))
    (path / GATE_CONFIG).write_text(config.model_dump_json(indent=2) + "\n")
    tensors = {}
    for layer, (weight, bias) in gate.items():
        tensors[f"{layer}.weight"], tensors[f"{layer}.bias"] = weight.detach().cpu(), bias.detach().cpu()
    save_file(tensors, path / GATE_WEIGHTS)


def read_gate_folder(path: Path) -> tuple[Gate, list[Path]]:
    """The gate, and the folders of its adapters. Raises BadAdapter."""
    try:
        config = GateConfig.model_validate_json((path / GATE_CONFIG).read_bytes())
        tensors = load_file(path / GATE_WEIGHTS)
    except ValidationError as error:
        raise BadAdapter(f"{path}: {GATE_CONFIG} is no gate's: {first_problem(error, 'file').line}") from error
    except (OSError, SafetensorError) as error:
        raise BadAdapter(f"{path}: {GATE_WEIGHTS} cannot be read ({error}); train the gate again") from error
    outputs, gate = 1 + config.adapters, {}
    for layer in sorted({key.rpartition(".")[0] for key in tensors}):
        weight, bias = (tensors.get(f"{layer}.{name}", torch.empty(0)) for name in ("weight", "bias"))
        if weight.dim() != 2 or (weight.shape[0], *bias.shape) != (outputs, outputs):
            shapes = f"weight {list(weight.shape)} and bias {list(bias.shape)}"
            raise BadAdapter(f"{path}: {layer} has {shapes}, no gate of {outputs} outputs; train the gate again")
        if not (weight.isfinite().all() and bias.isfinite().all()):
            raise BadAdapter(f"{path}: {layer} holds values that are not finite; train the gate again")
        gate[layer] = weight.float(), bias.float()
    return gate, [path / "adapters" / str(number) for number in range(config.adapters)]
