"""A gate inside the model: y = W x + sum_i w_i(h) s_i B_i A_i x, with a linear gate w on the hidden states h. Its
folder (docs/policy-server.md) holds gate.json, gate.safetensors and every adapter whole, in adapters/0, adapters/1, ...

Invariants: no gradient reaches the model through h; a gate of zeros is what its form starts from, the plain sum for
`sigmoid`, equal shares of base and adapters for `softmax`. Trainer and server compute the weights here, so that they
agree. A loader that knows plain LoRAs alone finds none at the top of the folder, and can't take it for a sum."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from trainer.inputs import Closed, first_problem
from trainer.peft_folder import CONFIG, WEIGHTS, BadAdapter

GATE_CONFIG, GATE_WEIGHTS = "gate.json", "gate.safetensors"
GLOBAL = "global"
"""In place of a layer's name."""

Maps = Mapping[str, tuple[torch.Tensor, torch.Tensor]]
"""By decoder layer, or GLOBAL alone: weight [outputs, hidden] and bias [outputs]."""


class GateSpec(Closed):
    """`softmax` is over base and adapters; `sigmoid` gives each adapter from 0 to 2, whatever the others get."""

    form: Literal["softmax", "sigmoid"]
    scope: Literal["layer", "global"]

    def outputs(self, adapters: int) -> int:
        return adapters + (self.form == "softmax")


class GateConfig(GateSpec):
    """gate.json."""

    format: Literal[1] = 1
    base_model: str
    adapters: int = Field(ge=2)


@dataclass(frozen=True)
class Gate:
    spec: GateSpec
    maps: Maps

    def weights(self, layer: str, hidden: torch.Tensor) -> torch.Tensor:
        """Of the adapters, [..., adapters]; `hidden` is [..., hidden], whose scale does not matter."""
        weight, bias = self.maps[layer]
        x = hidden.detach().to(weight)
        logits = F.linear(F.rms_norm(x, x.shape[-1:], eps=1e-12), weight, bias)
        return 2 * logits.sigmoid() if self.spec.form == "sigmoid" else logits.softmax(-1)[..., 1:]


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
    spec = gate.spec
    config = GateConfig(form=spec.form, scope=spec.scope, base_model=base, adapters=len(adapters))
    (path / GATE_CONFIG).write_text(config.model_dump_json(indent=2) + "\n")
    tensors = {}
    for layer, (weight, bias) in gate.maps.items():
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
    outputs, maps = config.outputs(config.adapters), {}
    for layer in sorted({key.rpartition(".")[0] for key in tensors}):
        weight, bias = (tensors.get(f"{layer}.{name}", torch.empty(0)) for name in ("weight", "bias"))
        if weight.dim() != 2 or (weight.shape[0], *bias.shape) != (outputs, outputs):
            shapes = f"weight {list(weight.shape)} and bias {list(bias.shape)}"
            raise BadAdapter(f"{path}: {layer} has {shapes}, no gate of {outputs} outputs; train the gate again")
        if not (weight.isfinite().all() and bias.isfinite().all()):
            raise BadAdapter(f"{path}: {layer} holds values that are not finite; train the gate again")
        maps[layer] = weight.float(), bias.float()
    if (config.scope == "global") != (list(maps) == [GLOBAL]) or not maps:
        raise BadAdapter(f"{path}: scope {config.scope} and gates of {', '.join(maps)}; train the gate again")
    return Gate(config, maps), [path / "adapters" / str(number) for number in range(config.adapters)]
