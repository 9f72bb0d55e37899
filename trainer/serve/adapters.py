"""
LoRA adapters by name. Invariant: an `Adapter` never changes after it is made; requests hold the object, so unloading
or replacing a name leaves running requests with the weights that they began with.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from trainer.moe_gate.gate import GATE_CONFIG, Gate, blocks_of, layer_name, read_gate_folder
from trainer.peft_folder import BadAdapter, Factors, read_peft_folder
from trainer.products import Product, product
from trainer.serve.errors import BadRequest, NotFound

# An adapter keeps W + B A next to its factors if it changes at most this many parameters: it then costs nothing in the
# forward, and the copy is small.
MERGE_LIMIT = 32_000_000


@dataclass(frozen=True, eq=False)
class Adapter:
    """
    W' = W + B A for the named linear modules: A [rank, in], B [out, rank] with the LoRA scale multiplied in. With a
    gate, these are several adapters side by side, each of which it weighs at every token.
    """

    name: str
    folder: Path
    factors: Factors
    merged: Mapping[str, Product] | None
    """The products with W + B A, where the model is small enough to keep a copy for each adapter."""
    gate: Gate | None = None
    blocks: torch.Tensor | None = None
    """[adapters, rank], 1 on the ranks of each adapter behind the gate."""


def read_factors(folder: Path, linears: Mapping[str, torch.nn.Linear]) -> Factors:
    """The factors of a PEFT folder for a model with `linears`, the scale multiplied into B. Raises BadRequest."""
    try:
        adapter = read_peft_folder(folder)
    except BadAdapter as error:
        raise BadRequest(f"lora_path {error}", param="lora_path") from error
    factors = {}
    for module, (a, b) in adapter.factors.items():
        linear = linears.get(module)
        found, wanted = [b.shape[0], a.shape[1]], None if linear is None else list(linear.weight.shape)
        if found != wanted:
            problem = f"no linear module {module}" if linear is None else f"{module} of {wanted}, the adapter {found}"
            raise BadRequest(
                f"lora_path {folder}: the base model has {problem}; was it trained on another base?", param="lora_path"
            )
        weight, scale = linear.weight, adapter.config.scale(module)
        factors[module] = a.to(weight.device, weight.dtype), (b.float() * scale).to(weight.device, weight.dtype)
    return factors


def side_by_side(parts: Sequence[Factors], linears: Mapping[str, torch.nn.Linear]) -> tuple[list[int], Factors]:
    """(The rank of each part, the factors of all); zeros where a part has none."""
    widths = [max(a.shape[0] for a, _ in part.values()) for part in parts]
    factors = {}
    for module in {module for part in parts for module in part}:
        weight = linears[module].weight
        wide_a = weight.new_zeros(sum(widths), weight.shape[1])
        wide_b = weight.new_zeros(weight.shape[0], sum(widths))
        begin = 0
        for part, width in zip(parts, widths, strict=True):
            if module in part:
                a, b = part[module]
                wide_a[begin : begin + a.shape[0]] = a
                wide_b[:, begin : begin + a.shape[0]] = b
            begin += width
        factors[module] = (wide_a, wide_b)
    return widths, factors


def read_gated(name: str, folder: Path, linears: Mapping[str, torch.nn.Linear]) -> Adapter:
    """A gate's folder with its adapters. Raises BadRequest."""
    try:
        gate, parts = read_gate_folder(folder)
    except BadAdapter as error:
        raise BadRequest(f"lora_path {error}", param="lora_path") from error
    widths, factors = side_by_side([read_factors(part, linears) for part in parts], linears)
    weight = linears[next(iter(factors))].weight
    # What a layer's first linear module takes is as wide as what the gate sees.
    width = next(iter(linears.values())).in_features
    for layer in map(layer_name, factors):
        if layer not in gate or gate[layer][0].shape[1] != width:
            problem = f"no gate of {layer} for hidden states of {width}; was it trained on another base?"
            raise BadRequest(f"lora_path {folder}: {problem}", param="lora_path")
    gate = {layer: (w.to(weight.device), b.to(weight.device)) for layer, (w, b) in gate.items()}
    return Adapter(name, folder, factors, None, gate, blocks_of(widths).to(weight.device))


def merged_size(factors: Factors, linears: Mapping[str, torch.nn.Linear]) -> float:
    """Parameters of a merged copy; infinite where there can be none."""
    weights = [linears[module].weight for module in factors]
    # In half precision the sum would round the adapter away, and the policy would no longer be the trainer's.
    if any(w.dtype != torch.float32 for w in weights):
        return math.inf
    return sum(w.numel() for w in weights)


def merge(factors: Factors, linears: Mapping[str, torch.nn.Linear]) -> Mapping[str, Product]:
    """The products with W + B A."""
    with torch.no_grad():
        return {
            module: product(torch.addmm(linears[module].weight, b, a), linears[module].bias)
            for module, (a, b) in factors.items()
        }


def _taken(name: str) -> BadRequest:
    return BadRequest(f"lora_name {name!r}: loaded from somewhere else already; unload it first", param="lora_name")


class AdapterRegistry:
    """The loaded adapters of one base model. Methods may be called from any thread."""

    def __init__(self, base_name: str, linears: Mapping[str, torch.nn.Linear]) -> None:
        self.base_name = base_name
        self._linears = linears
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
        """Loads a PEFT or gate folder under a name. The same name and path again is fine, another is a BadRequest."""
        folder = Path(path).resolve()
        if not self._is_new(name, folder):
            return
        if (folder / GATE_CONFIG).is_file():
            self._add(read_gated(name, folder, self._linears))
            return
        factors = read_factors(folder, self._linears)
        self._add(Adapter(name, folder, factors, self._merged(factors)))

    def unload(self, name: str) -> Adapter:
        """Forgets a name and returns its adapter. Raises NotFound."""
        with self._lock:
            adapter = self._loaded.pop(name, None)
            known = ", ".join(self._loaded) or "none"
        if adapter is None:
            raise NotFound(f"lora_name {name!r}: no adapter of that name is loaded; loaded: {known}", param="lora_name")
        return adapter

    def _is_new(self, name: str, folder: Path) -> bool:
        if name == self.base_name:
            raise BadRequest(f"lora_name {name!r}: that is the base model's name; choose another", param="lora_name")
        with self._lock:
            known = self._loaded.get(name)
        if known is None:
            return True
        if known.folder != folder:
            raise _taken(name)
        return False

    def _add(self, adapter: Adapter) -> None:
        with self._lock:
            known = self._loaded.setdefault(adapter.name, adapter)
        if known.folder != adapter.folder:  # another load of this name was faster
            raise _taken(adapter.name)

    def _merged(self, factors: Factors) -> Mapping[str, Product] | None:
        if merged_size(factors, self._linears) > MERGE_LIMIT:
            return None
        return merge(factors, self._linears)
