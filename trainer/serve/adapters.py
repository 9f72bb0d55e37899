"""
LoRA adapters by name. Invariant: an `Adapter` never changes after it is made; requests hold the object, so unloading
or replacing a name leaves running requests with the weights that they began with.

PEFT's folder format is read directly: a training loads a new adapter at every step, and PEFT's own loading changes
the model in place.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from trainer.serve.errors import BadRequest, NotFound

Factors = Mapping[str, tuple[torch.Tensor, torch.Tensor]]

# An adapter keeps W + B A next to its factors if it changes at most this many parameters: it then costs nothing in the
# forward, and the copy is small.
MERGE_LIMIT = 32_000_000

_PREFIX = "base_model.model."
_UNSUPPORTED = {"use_dora": False, "bias": "none", "modules_to_save": None, "fan_in_fan_out": False, "lora_bias": False}


@dataclass(frozen=True, eq=False)
class Adapter:
    """W' = W + B A for the named linear modules: A [rank, in], B [out, rank] with the LoRA scale multiplied in."""

    name: str
    source: object
    """What it was made from: a folder, or the parts of a merge."""
    factors: Factors
    merged: Mapping[str, torch.Tensor] | None
    """The sums W + B A, where the model is small enough to keep a copy."""


def read_peft_folder(
    path: Path, linears: Mapping[str, torch.nn.Linear]
) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """The LoRA factors of a PEFT folder for a model with `linears`. Raises BadRequest that names what does not fit."""
    config_file, weights_file = path / "adapter_config.json", path / "adapter_model.safetensors"
    for file in (config_file, weights_file):
        if not file.is_file():
            raise _bad(f"lora_path {path}: no {file.name} there; name a PEFT adapter folder")
    try:
        config = json.loads(config_file.read_text())
        weights = load_file(weights_file)
    except (ValueError, OSError, SafetensorError) as error:
        raise _bad(f"lora_path {path}: cannot be read ({error}); save the adapter again") from error
    if config.get("peft_type") != "LORA":
        raise _bad(f"lora_path {path}: peft_type is {config.get('peft_type')}; only LORA can be served")
    for field, plain in _UNSUPPORTED.items():
        if config.get(field, plain) not in (plain, None):
            raise _bad(f"lora_path {path}: {field} is {config[field]!r}; only {plain!r} can be served")

    factors = {}
    for key in sorted(weights):
        module, matched, rest = key.removeprefix(_PREFIX).partition(".lora_A")
        if not matched:
            if ".lora_B" not in key:
                raise _bad(
                    f"lora_path {path}: {key} is not a LoRA factor of a linear module; train lora_A and lora_B only"
                )
            continue
        linear, a, b = linears.get(module), weights[key], weights.get(key.replace(".lora_A", ".lora_B"))
        if linear is None or rest != ".weight":
            raise _bad(
                f"lora_path {path}: the base model has no linear module {module}; was it trained on another base?"
            )
        if (
            b is None
            or a.dim() != 2
            or b.dim() != 2
            or (b.shape[0], a.shape[1]) != linear.weight.shape
            or a.shape[0] != b.shape[1]
        ):
            found = f"A {list(a.shape)}, B {None if b is None else list(b.shape)}"
            shape = list(linear.weight.shape)
            raise _bad(f"lora_path {path}: {module} has {found}, the base has {shape}; was it trained on another base?")
        if not (a.isfinite().all() and b.isfinite().all()):
            raise _bad(f"lora_path {path}: {module} holds values that are not finite; the training diverged")
        factors[module] = _place(a, b * _scale(config, module), linear)
    if not factors:
        raise _bad(f"lora_path {path}: {weights_file.name} holds no LoRA factors")
    return factors


def _scale(config: dict, module: str) -> float:
    def pattern(name: str, default: float) -> float:
        matches = [v for k, v in (config.get(name) or {}).items() if module == k or module.endswith(f".{k}")]
        return matches[0] if matches else default

    rank, alpha = pattern("rank_pattern", config["r"]), pattern("alpha_pattern", config["lora_alpha"])
    return alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)


def _place(a: torch.Tensor, b: torch.Tensor, linear: torch.nn.Linear) -> tuple[torch.Tensor, torch.Tensor]:
    weight = linear.weight
    return a.to(weight.device, weight.dtype), b.to(weight.device, weight.dtype)


def _bad(message: str) -> BadRequest:
    return BadRequest(message, param="lora_path")


def _taken(name: str) -> BadRequest:
    return BadRequest(f"lora_name {name!r}: loaded from somewhere else already; unload it first", param="lora_name")


class AdapterRegistry:
    """The loaded adapters of one base model. Methods may be called from any thread."""

    def __init__(
        self, base_name: str, linears: Mapping[str, torch.nn.Linear], *, merge_limit: int | None = None
    ) -> None:
        """`merge_limit`: the most parameters to keep merged weights of, instead of MERGE_LIMIT."""
        self.base_name = base_name
        self._linears = linears
        self._merge_limit = MERGE_LIMIT if merge_limit is None else merge_limit
        self._lock = threading.Lock()
        self._loaded: dict[str, Adapter] = {}

    def names(self) -> list[str]:
        """Names of the loaded adapters, oldest first."""
        with self._lock:
            return list(self._loaded)

    def get(self, name: str) -> Adapter | None:
        """The adapter of that name, or None for the base model. Raises NotFound."""
        if name == self.base_name:
            return None
        with self._lock:
            adapter = self._loaded.get(name)
        if adapter is None:
            known = ", ".join([self.base_name, *self.names()])
            raise NotFound(
                f"model {name!r}: neither the base model nor a loaded adapter; there are: {known}", param="model"
            )
        return adapter

    def load(self, name: str, path: str) -> None:
        """Loads a PEFT folder under a name. The same name and path again is fine, another path is a BadRequest."""
        folder = Path(path).resolve()
        if not self._is_new(name, folder):
            return
        self._add(name, folder, read_peft_folder(folder, self._linears))

    def merge(self, name: str, parts: list[tuple[str, float]]) -> None:
        """Loads sum(weight x B A) of loaded adapters under a new name."""
        adapters = []
        for part, weight in parts:
            if part == self.base_name:
                raise BadRequest(f"adapters: {part} is the base model; name loaded adapters only", param="adapters")
            adapters.append((self.get(part), weight))
        source = tuple((adapter.source, weight) for adapter, weight in adapters)
        if not self._is_new(name, source):
            return
        factors: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
        for module in sorted({m for adapter, _ in adapters for m in adapter.factors}):
            found = [(adapter.factors[module], w) for adapter, w in adapters if module in adapter.factors]
            factors[module] = (torch.cat([a for (a, _), _ in found]), torch.cat([w * b for (_, b), w in found], dim=1))
        self._add(name, source, factors)

    def unload(self, name: str) -> Adapter:
        """Forgets a name and returns its adapter. Raises NotFound."""
        with self._lock:
            adapter = self._loaded.pop(name, None)
            known = ", ".join(self._loaded) or "none"
        if adapter is None:
            raise NotFound(f"lora_name {name!r}: no adapter of that name is loaded; loaded: {known}", param="lora_name")
        return adapter

    def _is_new(self, name: str, source: object) -> bool:
        if name == self.base_name:
            raise BadRequest(f"lora_name {name!r}: that is the base model's name; choose another", param="lora_name")
        with self._lock:
            known = self._loaded.get(name)
        if known is None:
            return True
        if known.source != source:
            raise _taken(name)
        return False

    def _add(self, name: str, source: object, factors: Factors) -> None:
        adapter = Adapter(name, source, factors, self._merged(factors))
        with self._lock:
            known = self._loaded.setdefault(name, adapter)
        if known.source != source:  # another load of this name was faster
            raise _taken(name)

    def _merged(self, factors: Factors) -> Mapping[str, torch.Tensor] | None:
        weights = {module: self._linears[module].weight for module in factors}
        # In half precision the sum would round the adapter away, and the policy would no longer be the trainer's.
        small = sum(w.numel() for w in weights.values()) <= self._merge_limit
        if not small or any(w.dtype != torch.float32 for w in weights.values()):
            return None
        with torch.no_grad():
            return {module: torch.addmm(weights[module], b, a) for module, (a, b) in factors.items()}
