"""PEFT's folder of a LoRA: adapter_config.json and adapter_model.safetensors.

Invariant: a `PeftFolder` is a plain LoRA, W' = W + scale x B A in linear modules, with finite factors that fit
each other; everything else is refused.

The format is read directly: PEFT's own loading needs the base model and changes it in place."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from pydantic import Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from trainer.adapter_config import CONFIG, PREFIX, WEIGHTS, adapter_config
from trainer.command import BadInput, Strict, first_problem

Factors = Mapping[str, tuple[torch.Tensor, torch.Tensor]]
"""Maps a module name to A [rank, in] and B [out, rank]."""


class LoraConfig(Strict):
    """The part of adapter_config.json that decides what the weights mean."""

    peft_type: Literal["LORA"]
    base_model_name_or_path: str | None = None
    r: int = Field(ge=1)
    lora_alpha: float
    use_rslora: bool | None = False
    # Each of these makes something else of the weights than W + scale x B A.
    rank_pattern: dict[str, int] | None = Field(default=None, max_length=0)
    alpha_pattern: dict[str, float] | None = Field(default=None, max_length=0)
    use_dora: Literal[False] | None = False
    bias: Literal["none"] | None = "none"
    lora_bias: Literal[False] | None = False
    fan_in_fan_out: Literal[False] | None = False
    modules_to_save: None = None
    target_parameters: list[str] | None = Field(default=None, max_length=0)
    layer_replication: None = None
    alora_invocation_tokens: None = None

    @property
    def scale(self) -> float:
        """The factor of B A."""
        return self.lora_alpha / (math.sqrt(self.r) if self.use_rslora else self.r)


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
        raise BadInput(f"{path}: {CONFIG} is no plain LoRA's: {first_problem(error, 'file')[1]}") from error
    except SafetensorError as error:
        raise BadInput(f"{path}: {WEIGHTS} cannot be read ({error}); save the adapter again") from error
    return PeftFolder(config, _factors(path, config, weights))


def write_peft_folder(path: Path, *, base: str | None, rank: int, factors: Factors) -> None:
    """Writes factors of one rank, whose scale is multiplied in, into a new folder. The same input, the same bytes."""
    path.mkdir()
    config = adapter_config(base=base, rank=rank, alpha=rank, modules=factors)
    (path / CONFIG).write_text(json.dumps(config, indent=2) + "\n")
    weights = {}
    for module, (a, b) in factors.items():
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
        shapes = {factor: list(tensor.shape) for factor, tensor in factors.items()}
        a, b = shapes.get("A", []), shapes.get("B", [])
        if (len(a), len(b)) != (2, 2) or not a[0] == b[1] == config.r:
            raise BadInput(f"{path}: {module} has {shapes}, no factors of rank {config.r}; save the adapter again")
        if not all(tensor.isfinite().all() for tensor in factors.values()):
            raise BadInput(f"{path}: {module} holds values that are not finite; the training diverged")
        read[module] = factors["A"], factors["B"]
    return read


def side_by_side(parts: Sequence[Factors], dtype: torch.dtype) -> tuple[list[int], Factors]:
    """(The rank of each part, the factors of their sum): one rank for all modules is what every loader knows, so zeros
    stand where a part has fewer. Raises BadInput for parts of different base models."""
    widths = [max(len(a) for a, _ in part.values()) for part in parts]
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
                if (len(wide_b), wide_a.shape[1]) != (len(b), a.shape[1]):
                    raise BadInput(
                        f"adapters.{index}: {module} has another size than in an adapter before it; "
                        "name adapters of one base model"
                    )
                wide_a[begin : begin + len(a)] = a
                wide_b[:, begin : begin + len(a)] = b
            begin += width
    return widths, factors
