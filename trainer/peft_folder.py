"""PEFT's folder of a LoRA: adapter_config.json and adapter_model.safetensors.

Invariant: a `PeftFolder` is a plain LoRA, W' = W + scale x B A in linear modules and in each of fused experts, with
finite factors that fit each other; everything else is refused.

The format is read directly: PEFT's own loading needs the base model and changes it in place."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import torch
from pydantic import Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from trainer.adapter_config import CONFIG, PREFIX, WEIGHTS, adapter_config
from trainer.command import BadInput, Strict, first_problem

Factors = Mapping[str, tuple[torch.Tensor, torch.Tensor]]
"""By module name: A [rank, in] and B [out, rank]. By the name of a parameter that holds all experts of a layer:
A [experts, rank, in] and B [experts, out, rank]."""

Value = TypeVar("Value", int, float)


class LoraConfig(Strict):
    """The part of adapter_config.json that decides what the weights mean."""

    peft_type: Literal["LORA"]
    base_model_name_or_path: str | None = None
    r: int = Field(ge=1)
    lora_alpha: float
    rank_pattern: dict[str, int] | None = None
    target_parameters: list[str] | None = None
    alpha_pattern: dict[str, float] | None = None
    use_rslora: bool | None = False
    # Each of these makes something else of the weights than W + scale x B A.
    use_dora: Literal[False] | None = False
    bias: Literal["none"] | None = "none"
    lora_bias: Literal[False] | None = False
    fan_in_fan_out: Literal[False] | None = False
    modules_to_save: None = None
    layer_replication: None = None
    alora_invocation_tokens: None = None

    def rank(self, module: str) -> int:
        return _by_pattern(self.rank_pattern, module, self.r)

    def scale(self, module: str) -> float:
        """What B A is multiplied with."""
        alpha, rank = _by_pattern(self.alpha_pattern, module, self.lora_alpha), self.rank(module)
        return alpha / (math.sqrt(rank) if self.use_rslora else rank)


@dataclass(frozen=True)
class PeftFolder:
    """`factors` are as saved: the scale is not multiplied in."""

    config: LoraConfig
    factors: Factors


def read_peft_folder(path: Path) -> PeftFolder:
    """Reads an adapter. Raises BadInput."""
    for name in (CONFIG, WEIGHTS):
        if not (path / name).is_file():
            raise BadInput(f"{path}: no {name} there; name a PEFT adapter folder")
    try:
        config = LoraConfig.model_validate_json((path / CONFIG).read_bytes())
        weights = load_file(path / WEIGHTS)
    except ValidationError as error:
        raise BadInput(f"{path}: {CONFIG} is no plain LoRA's: {first_problem(error, 'file').line}") from error
    except (OSError, SafetensorError) as error:
        raise BadInput(f"{path}: {WEIGHTS} cannot be read ({error}); save the adapter again") from error
    return PeftFolder(config, _factors(path, config, weights))


def write_peft_folder(path: Path, *, base: str | None, rank: int, factors: Factors) -> None:
    """Writes factors of one rank, whose scale is multiplied in, into a new folder. The same input, the same bytes."""
    path.mkdir()
    experts = {name for name, (a, _) in factors.items() if a.ndim == 3}
    modules = factors.keys() - experts
    config = adapter_config(base=base, rank=rank, alpha=rank, modules=modules, parameters=experts)
    (path / CONFIG).write_text(json.dumps(config, indent=2) + "\n")
    weights = {}
    for name, (a, b) in factors.items():
        module = name
        if name in experts:
            module = _wrapper(name, inner=_sibling(name, DOWN) in experts)
            a, b = a.flatten(0, 1).contiguous(), b.permute(1, 2, 0).flatten(1).contiguous()
        weights[f"{PREFIX}{module}.lora_A.weight"], weights[f"{PREFIX}{module}.lora_B.weight"] = a, b
    save_file(weights, path / WEIGHTS, metadata={"format": "pt"})


def _factors(path: Path, config: LoraConfig, weights: dict[str, torch.Tensor]) -> Factors:
    found: dict[str, dict[str, torch.Tensor]] = {}
    for key in sorted(weights):
        module, _, factor = key.removeprefix(PREFIX).removesuffix(".weight").rpartition(".lora_")
        if not module or factor not in ("A", "B"):
            raise BadInput(f"{path}: {key} is not a LoRA factor of a linear module; train lora_A and lora_B only")
        found.setdefault(module, {})[factor] = weights[key]
    if not found:
        raise BadInput(f"{path}: {WEIGHTS} holds no LoRA factors; save the adapter again")
    read: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
    for module, factors in found.items():
        name = _parameter(module, config.target_parameters or []) or module
        rank, shapes = config.rank(name), {factor: list(tensor.shape) for factor, tensor in factors.items()}
        a, b = shapes.get("A", []), shapes.get("B", [])
        fits = (len(a), len(b)) == (2, 2) and a[0] == b[1]
        if not fits or (a[0] % rank if name != module else a[0] != rank):
            raise BadInput(f"{path}: {module} has {shapes}, no factors of rank {rank}; save the adapter again")
        if not all(tensor.isfinite().all() for tensor in factors.values()):
            raise BadInput(f"{path}: {module} holds values that are not finite; the training diverged")
        if name == module:
            read[name] = factors["A"], factors["B"]
        else:  # PEFT counts A's rows by expert and rank, B's columns by rank and expert
            experts = factors["B"].reshape(b[0], rank, -1).permute(2, 0, 1).contiguous()
            read[name] = factors["A"].reshape(-1, rank, a[1]), experts
    return read


GATE_UP, DOWN = "gate_up_proj", "down_proj"
"""Parameters of fused experts, in the order in which PEFT wraps them."""


def _sibling(parameter: str, name: str) -> str:
    return f"{parameter.rpartition('.')[0]}.{name}"


def _wrapper(parameter: str, *, inner: bool) -> str:
    """PEFT's name of what wraps an expert parameter. Of two, the second one wraps the first."""
    experts = parameter.rpartition(".")[0]
    return f"{experts}.base_layer" if inner and parameter.endswith(f".{GATE_UP}") else experts


def _parameter(wrapper: str, targets: Sequence[str]) -> str | None:
    """Which expert parameter that is; None where it is a module."""
    experts = wrapper.removesuffix(".base_layer")
    trained = [name for name in (GATE_UP, DOWN) if any(f".{target}".endswith(f".{name}") for target in targets)]
    if not experts.endswith(".experts") or not trained:
        return None
    return f"{experts}.{trained[0] if experts != wrapper else trained[-1]}"


def _by_pattern(patterns: Mapping[str, Value] | None, module: str, default: Value) -> Value:
    """PEFT's rule: the first pattern that matches the end of the name, from a dot on."""
    matches = (value for key, value in (patterns or {}).items() if re.match(rf"(.*\.)?({key})$", module))
    return next(matches, default)


def size_of(a: torch.Tensor, b: torch.Tensor) -> str:
    """Of what the factors change, as messages name it."""
    return " x ".join(map(str, (*b.shape[:-1], a.shape[-1])))


def side_by_side(parts: Sequence[Factors], dtype: torch.dtype) -> tuple[list[int], Factors]:
    """(The rank of each part, the factors of their sum): one rank for all modules is what every loader knows, so zeros
    stand where a part has fewer. Raises BadInput for parts of different base models."""
    widths = [max(a.shape[-2] for a, _ in part.values()) for part in parts]
    factors: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
    for module in sorted({module for part in parts for module in part}):
        begin = 0
        for index, (part, width) in enumerate(zip(parts, widths, strict=True)):
            if module in part:
                a, b = part[module]
                if module not in factors:
                    wide = a.new_zeros(*a.shape[:-2], sum(widths), a.shape[-1], dtype=dtype)
                    factors[module] = wide, b.new_zeros(*b.shape[:-1], sum(widths), dtype=dtype)
                wide_a, wide_b = factors[module]
                if size_of(wide_a, wide_b) != size_of(a, b):
                    raise BadInput(
                        f"adapters.{index}: {module} is {size_of(a, b)}, in an adapter before it "
                        f"{size_of(wide_a, wide_b)}; name adapters of one base model"
                    )
                wide_a[..., begin : begin + a.shape[-2], :] = a
                wide_b[..., begin : begin + a.shape[-2]] = b
            begin += width
    return widths, factors
