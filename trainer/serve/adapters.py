"""LoRA adapters by name, and their way into the packed forward.

Invariants: an `Adapter` never changes after it is made; requests hold the object, so unloading or replacing a name
leaves running requests with the weights that they began with. A token's result depends on its own row's adapter alone.

`LoraMix` has three ways, chosen once per forward: all rows on the base run the plain linear modules; all rows on one
adapter use its merged weights, or its factors where the model is too large for a copy; a mixture puts the factors of
all its adapters side by side as one wide LoRA and masks, per token, every block but its row's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from trainer.command import BadInput
from trainer.linear import linear as product
from trainer.peft_folder import Factors, read_peft_folder, side_by_side
from trainer.serve.messages import BASE, BadRequest, NotFound

# An adapter keeps W + B A next to its factors if it changes at most this many parameters: it then costs nothing in the
# forward, and the copy is small.
MERGE_LIMIT = 32_000_000


@dataclass(frozen=True, eq=False)
class Adapter:
    """W' = W + B A for the named linear modules: A [rank, in], B [out, rank] with the LoRA scale multiplied in."""

    name: str
    folder: Path
    factors: Factors
    merged: Mapping[str, torch.Tensor] | None
    """W + B A, where the model is small enough to keep a copy for each adapter."""


def read_adapter(name: str, folder: Path, linears: Mapping[str, torch.nn.Linear]) -> Adapter:
    """Reads a PEFT folder for a model with `linears`. Raises BadRequest."""
    try:
        factors = _factors(folder, linears)
    except BadInput as error:
        raise BadRequest(f"lora_path {error}", param="lora_path") from error
    return Adapter(name, folder, factors, merge(factors, linears))


def _factors(folder: Path, linears: Mapping[str, torch.nn.Linear]) -> Factors:
    """The factors of a PEFT folder, the scale multiplied into B. Raises BadInput."""
    adapter = read_peft_folder(folder)
    factors = {}
    for module, (a, b) in adapter.factors.items():
        linear = linears.get(module)
        found, wanted = [b.shape[0], a.shape[1]], None if linear is None else list(linear.weight.shape)
        if found != wanted:
            problem = f"no linear module {module}" if linear is None else f"{module} of {wanted}, the adapter {found}"
            raise BadInput(f"{folder}: the base model has {problem}; was it trained on another base?")
        factors[module] = a.float(), b.float() * adapter.config.scale
    return factors


def merge(factors: Factors, linears: Mapping[str, torch.nn.Linear]) -> Mapping[str, torch.Tensor] | None:
    """Returns W + B A of each module; None where these have more than MERGE_LIMIT parameters, or bfloat16 would round
    B A away."""
    weights = [linears[module].weight for module in factors]
    if sum(weight.numel() for weight in weights) > MERGE_LIMIT or any(w.dtype != torch.float32 for w in weights):
        return None
    with torch.no_grad():
        return {module: torch.addmm(linears[module].weight, b, a) for module, (a, b) in factors.items()}


class AdapterRegistry:
    """The loaded adapters of one base model. Methods may be called from any thread: each takes one step on the dict."""

    def __init__(self, linears: Mapping[str, torch.nn.Linear]) -> None:
        self._linears = linears
        self._loaded: dict[str, Adapter] = {}

    def names(self) -> list[str]:
        """Names of the loaded adapters, oldest first."""
        return list(self._loaded)

    def get(self, name: str) -> Adapter | None:
        """The adapter of that name, or None for the base model. Raises NotFound."""
        if name == BASE:
            return None
        if name in self._loaded:
            return self._loaded[name]
        known = ", ".join([BASE, *self.names()])
        raise NotFound(f"model {name!r}: neither the base model nor a loaded adapter; there are: {known}", "model")

    def load(self, name: str, path: str) -> None:
        """Loads a PEFT folder under a name. The same name and path again is fine, another is a BadRequest."""
        try:
            folder = Path(path).resolve()
            folder.exists()
        except (OSError, ValueError, RuntimeError) as error:
            raise BadRequest(f"lora_path {path[:60]!r}: {error}; name a readable folder", "lora_path") from error
        if name == BASE:
            raise BadRequest(f"lora_name {name!r}: that is the base model's name; choose another", "lora_name")
        adapter = self._loaded.get(name)
        if adapter is None:
            # Another load of this name may have been faster.
            adapter = self._loaded.setdefault(name, read_adapter(name, folder, self._linears))
        if adapter.folder != folder:
            problem = "loaded from somewhere else already; unload it first"
            raise BadRequest(f"lora_name {name!r}: {problem}", "lora_name")

    def unload(self, name: str) -> Adapter:
        """Forgets a name and returns its adapter. Raises NotFound."""
        if adapter := self._loaded.pop(name, None):
            return adapter
        known = ", ".join(self.names()) or "none"
        raise NotFound(f"lora_name {name!r}: no adapter of that name is loaded; loaded: {known}", "lora_name")


@dataclass(frozen=True)
class Plan:
    """The weights and factors that the linear modules apply in one forward."""

    weights: Mapping[str, torch.Tensor]
    """Replaces the modules' own weights."""
    factors: Factors
    others: torch.Tensor | None = None
    """[T, total rank], true on the columns that are not of the token's adapter."""


@dataclass(frozen=True)
class _Wide:
    """The factors of several adapters side by side; in row i + 1 of `others` are the columns that are not adapter i's,
    in row 0 all of them."""

    adapters: tuple[Adapter, ...]
    factors: Factors
    others: torch.Tensor


class LoraMix:
    """Owns the linear modules of a model. `select` sets what the next forward applies."""

    def __init__(self, model: torch.nn.Module) -> None:
        head = model.get_output_embeddings()
        self.linears = {n: m for n, m in model.named_modules() if type(m) is torch.nn.Linear and m is not head}
        self._plan: Plan | None = None
        self._wide: _Wide | None = None
        for name, linear in self.linears.items():
            linear.forward = self._forward(name, linear)

    def select(self, adapters: Sequence[Adapter | None], counts: np.ndarray) -> None:
        """`adapters` of the rows of the next forward and their numbers of tokens."""
        distinct = set(adapters)
        if distinct == {None}:
            self._plan = None
        elif len(distinct) == 1:
            (adapter,) = distinct
            self._plan = Plan({}, adapter.factors) if adapter.merged is None else Plan(adapter.merged, {})
        else:
            distinct.discard(None)
            if (
                self._wide is None
                or not distinct.issubset(self._wide.adapters)
                or len(self._wide.adapters) > 2 * len(distinct)
            ):
                self._wide = self._side_by_side(tuple(distinct))
            row = {adapter: i for i, adapter in enumerate(self._wide.adapters, start=1)}
            rows = np.array([0 if adapter is None else row[adapter] for adapter in adapters])
            others = self._wide.others[torch.from_numpy(np.repeat(rows, counts))]
            self._plan = Plan({}, self._wide.factors, others)

    def forget(self, adapter: Adapter) -> None:
        """Drops what is kept of an adapter that was unloaded."""
        if self._wide is not None and adapter in self._wide.adapters:
            self._wide = None

    def _forward(self, name: str, linear: torch.nn.Linear):
        weight, bias = linear.weight, linear.bias

        def forward(x: torch.Tensor) -> torch.Tensor:
            plan = self._plan
            if plan is None:
                return product(x, weight, bias)
            out = product(x, plan.weights.get(name, weight), bias)
            if (pair := plan.factors.get(name)) is None:
                return out
            a, b = pair
            inner = F.linear(x, a)
            if plan.others is not None:
                inner.masked_fill_(plan.others, 0)  # a product with 0 would keep what overflows in another's columns
            return out + F.linear(inner, b)

        return forward

    def _side_by_side(self, adapters: tuple[Adapter, ...]) -> _Wide:
        widths, factors = side_by_side([adapter.factors for adapter in adapters], torch.float32)
        ownership = np.repeat(np.arange(1, len(adapters) + 1), widths)
        others = ownership[None, :] != np.arange(len(adapters) + 1)[:, None]
        return _Wide(adapters, factors, torch.from_numpy(others))
