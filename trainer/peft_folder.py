"""PEFT's folder of a LoRA: adapter_config.json and adapter_model.safetensors.

Invariant: a `PeftFolder` is a plain LoRA, W' = W + scale x B A in linear modules, with finite factors that fit each
other; everything else is refused.

The format is read directly: PEFT's own loading needs the base model and changes it in place."""

from __future__ import annotations

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

from trainer.adapter_config import adapter_config
from trainer.command import BadInput, Strict, first_problem

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"

Factors = Mapping[str, tuple[torch.Tensor, torch.Tensor]]
"""By module name: A [rank, in] and B [out, rank]."""

Value = TypeVar("Value", int, float)

_PREFIX = "base_model.model."


class LoraConfig(Strict):
    """The part of adapter_config.json that decides what the weights mean."""

    peft_type: Literal["LORA"]
    base_model_name_or_path: str | None = None
    r: int = Field(ge=1)
    lora_alpha: float
    rank_pattern: dict[str, int] | None = None
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
    config = adapter_config(base=base, rank=rank, alpha=rank, modules=factors)
    (path / CONFIG).write_text(json.dumps(config, indent=2) + "\n")
    weights = {}
    for module, (a, b) in factors.items():
        weights[f"{_PREFIX}{module}.lora_A.weight"], weights[f"{_PREFIX}{module}.lora_B.weight"] = a, b
    save_file(weights, path / WEIGHTS, metadata={"format": "pt"})


def _factors(path: Path, config: LoraConfig, weights: dict[str, torch.Tensor]) -> Factors:
    found: dict[str, dict[str, torch.Tensor]] = {}
    for key in sorted(weights):
        module, _, factor = key.removeprefix(_PREFIX).removesuffix(".weight").rpartition(".lora_")
        if not module or factor not in ("A", "B"):
            raise BadInput(f"{path}: {key} is not a LoRA factor of a linear module; train lora_A and lora_B only")
        found.setdefault(module, {})[factor] = weights[key]
    if not found:
        raise BadInput(f"{path}: {WEIGHTS} holds no LoRA factors; save the adapter again")
    for module, factors in found.items():
        rank, shapes = config.rank(module), {factor: list(tensor.shape) for factor, tensor in factors.items()}
        a, b = shapes.get("A", []), shapes.get("B", [])
        if (len(a), len(b)) != (2, 2) or not a[0] == b[1] == rank:
            raise BadInput(f"{path}: {module} has {shapes}, no factors of rank {rank}; save the adapter again")
        if not all(tensor.isfinite().all() for tensor in factors.values()):
            raise BadInput(f"{path}: {module} holds values that are not finite; the training diverged")
    return {module: (factors["A"], factors["B"]) for module, factors in found.items()}


def _by_pattern(patterns: Mapping[str, Value] | None, module: str, default: Value) -> Value:
    """PEFT's rule: the first pattern that matches the end of the name, from a dot on."""
    matches = (value for key, value in (patterns or {}).items() if re.match(rf"(.*\.)?({key})$", module))
    return next(matches, default)


def side_by_side(parts: Sequence[Factors], dtype: torch.dtype) -> tuple[list[int], Factors]:
    """(The rank of each part, the factors of their sum): one rank for all modules is what every loader knows, so zeros
    stand where a part has fewer. Raises BadInput for parts of different base models."""
    widths = [max(a.shape[0] for a, _ in part.values()) for part in parts]
    factors: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
    for module in sorted({module for part in parts for module in part}):
        begin = 0
        for index, (part, width) in enumerate(zip(parts, widths, strict=True)):
            if module in part:
                a, b = part[module]
                if module not in factors:
                    wide = a.new_zeros(sum(widths), a.shape[1], dtype=dtype)
                    factors[module] = wide, b.new_zeros(b.shape[0], sum(widths), dtype=dtype)
                wide_a, wide_b = factors[module]
                if (wide_b.shape[0], wide_a.shape[1]) != (b.shape[0], a.shape[1]):
                    raise BadInput(
                        f"adapters.{index}: {module} is {b.shape[0]} x {a.shape[1]}, in an adapter before it "
                        f"{wide_b.shape[0]} x {wide_a.shape[1]}; name adapters of one base model"
                    )
                wide_a[begin : begin + a.shape[0]] = a
                wide_b[:, begin : begin + a.shape[0]] = b
            begin += width
    return widths, factors
