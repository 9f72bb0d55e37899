"""Several adapters behind a gate inside the model, y = W x + sum_i w_i(h) s_i B_i A_i x: in every decoder layer a
softmax over base and adapters, of a linear gate on the hidden states h that come into the layer. It is trained on
successful rollouts; docs/policy-server.md describes its folder.

Invariants: no gradient reaches the model through h; only the gate is learned, from zero, which is equal shares of base
and adapters; every task counts the same, however many of its rollouts succeeded; what is kept is the step that is best
on tasks that no step saw, the first (nothing learned) among them. Trainer and server compute the weights here, so that
they agree. The same job gives the same bytes. A loader that knows plain LoRAs alone finds none at the top of the
folder, and can't take it for a sum."""

import json
import random
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch.nn.utils.rnn import pad_sequence

from trainer.command import BadInput, Closed, Strict, blaming, read_input, tell_progress, whole_folder
from trainer.merge import weighted
from trainer.peft_folder import CONFIG, WEIGHTS, read_peft_folder
from trainer.train.batch import chunks
from trainer.train.job import ModelFolder, TokenRow

GATE_CONFIG, GATE_WEIGHTS, LEARNED_FILE = "gate.json", "gate.safetensors", "learned.json"
STEPS = 20
HELD_OUT = 0.2
"""Of the tasks."""

Gate = Mapping[str, tuple[torch.Tensor, torch.Tensor]]
"""By decoder layer: weight [1 + adapters, hidden] and bias [1 + adapters], the base first."""


class GateConfig(Closed):
    """gate.json."""

    format: Literal[2] = 2
    base_model: str
    adapters: int = Field(ge=2)


class Task(Strict):
    """A train task that was solved: the rows of its different successful rollouts, all together."""

    rows: list[TokenRow] = Field(min_length=1)
    rollouts: int = Field(ge=1)


class GateJob(Closed):
    """`output_dir` is made; what is there already is replaced."""

    base_model: ModelFolder
    adapters: list[str] = Field(min_length=2)
    tasks: list[Task] = Field(min_length=2)
    output_dir: str = Field(min_length=1)
    seed: int = Field(ge=0)
    threads: int = Field(ge=1)
    dtype: Literal["float32", "bfloat16"]
    tokens_per_forward: int = Field(ge=1)


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
    """The gate, and the folders of its adapters. Raises BadInput."""
    with blaming(f"{path}:"):
        config = read_input(GateConfig, path / GATE_CONFIG, name="gate")
    try:
        tensors = load_file(path / GATE_WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise BadInput(f"{path}: {GATE_WEIGHTS} cannot be read ({error}); train the gate again") from error
    outputs, gate = 1 + config.adapters, {}
    for layer in sorted({key.rpartition(".")[0] for key in tensors}):
        weight, bias = (tensors.get(f"{layer}.{name}", torch.empty(0)) for name in ("weight", "bias"))
        if weight.dim() != 2 or (weight.shape[0], *bias.shape) != (outputs, outputs):
            shapes = f"weight {list(weight.shape)} and bias {list(bias.shape)}"
            raise BadInput(f"{path}: {layer} has {shapes}, no gate of {outputs} outputs; train the gate again")
        if not (weight.isfinite().all() and bias.isfinite().all()):
            raise BadInput(f"{path}: {layer} holds values that are not finite; train the gate again")
        gate[layer] = weight.float(), bias.float()
    return gate, [path / "adapters" / str(number) for number in range(config.adapters)]


class GatedModel:
    """The base model with several frozen LoRAs behind a gate; only the gate has a gradient."""

    def __init__(self, job: GateJob) -> None:
        from trainer.train.model import load_base  # PEFT and transformers: the server has no use for them here

        self.model = load_base(job.base_model, job.dtype).eval().requires_grad_(False)
        self.device = next(self.model.parameters()).device
        parts = []
        for index, path in enumerate(job.adapters):
            with blaming(f"adapters.{index}"):
                parts.append(read_peft_folder(Path(path)))
        # Side by side, so that a module needs two products for all adapters.
        widths, self.factors = weighted(parts, [1.0] * len(parts))
        self.blocks = blocks_of(widths).to(self.device)
        linear = {name: module for name, module in self.model.named_modules() if isinstance(module, torch.nn.Linear)}
        for module in sorted(self.factors):
            if module not in linear:
                raise BadInput(f"adapters: {module} is no linear module of {job.base_model}; name its adapters")
            if module.count(".experts.") or layer_name(module) is None:
                problem = f"{module} is not called once with all tokens of a decoder layer"
                raise BadInput(f"adapters: {problem}; choose another router, or train adapters without that module")
            self._add(linear[module], module)
        outputs, hidden = 1 + len(parts), self.model.config.get_text_config().hidden_size
        # Adam moves each weight by so much a step: a logit, of hidden states whose mean square is 1, by 1 at most.
        self.learning_rate = 1 / hidden
        self.gate = {layer: (self._zeros(outputs, hidden), self._zeros(outputs)) for layer in layers_of(self.factors)}
        self.parameters = [tensor for pair in self.gate.values() for tensor in pair]
        for layer in self.gate:
            self.model.get_submodule(layer).register_forward_pre_hook(self._enter(layer), with_kwargs=True)

    def logprobs(self, ids: torch.Tensor) -> torch.Tensor:
        """Of each id but the first, [rows, tokens - 1]."""
        logits = self.model(input_ids=ids.to(self.device), use_cache=False).logits[:, :-1].float()
        return logits.log_softmax(-1).gather(-1, ids[:, 1:].to(logits.device)[..., None])[..., 0]

    def loss(self, ids: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
        logprobs = self.logprobs(ids)
        return -(logprobs * shares.to(logprobs.device)).sum()

    def _zeros(self, *shape: int) -> torch.Tensor:
        return torch.zeros(*shape, device=self.device, requires_grad=True)

    def _add(self, linear: torch.nn.Linear, module: str) -> None:
        weight = linear.weight
        a, b = (factor.to(weight.device, weight.dtype) for factor in self.factors[module])
        if (b.shape[0], a.shape[1]) != tuple(weight.shape):
            sizes = f"{b.shape[0]} x {a.shape[1]}, in the base model {weight.shape[0]} x {weight.shape[1]}"
            raise BadInput(f"adapters: {module} is {sizes}; name adapters of this base model")

        def forward(x: torch.Tensor) -> torch.Tensor:
            return F.linear(x, weight, linear.bias) + F.linear(F.linear(x, a) * self._mask.to(x), b)

        linear.forward = forward

    def _enter(self, layer: str):
        def enter(_: torch.nn.Module, args: tuple, kwargs: dict) -> None:
            self._mask = gate_weights(self.gate, layer, hidden_of(args, kwargs)) @ self.blocks

        return enter


def train_gate(job: GateJob) -> None:
    """Learns and writes the folder: a policy, and learned.json beside it; tells progress in steps. Raises BadInput."""
    torch.manual_seed(job.seed)
    torch.set_num_threads(job.threads)
    gated = GatedModel(job)
    tasks = list(job.tasks)
    random.Random(job.seed).shuffle(tasks)
    cut = max(1, round(len(tasks) * HELD_OUT))
    held_out, train = (_batches(part, job.tokens_per_forward) for part in (tasks[:cut], tasks[cut:]))
    optimizer = torch.optim.Adam(gated.parameters, lr=gated.learning_rate)
    losses: list[float] = []
    best: list[torch.Tensor] = []
    for step in range(STEPS + 1):
        if step > 0:
            optimizer.zero_grad()
            for batch in train:
                (gated.loss(*batch) / (len(tasks) - cut)).backward()
            optimizer.step()
        with torch.no_grad():
            losses.append(sum(gated.loss(*batch).item() for batch in held_out) / cut)
        if not best or losses[-1] < min(losses[:-1]):
            best = [parameter.detach().clone() for parameter in gated.parameters]
        tell_progress(step + 1, STEPS + 1)
    with torch.no_grad():
        for parameter, kept in zip(gated.parameters, best, strict=True):
            parameter.copy_(kept)
    with whole_folder(Path(job.output_dir)) as folder:
        write_gate_folder(folder, base=job.base_model, gate=gated.gate, adapters=[Path(path) for path in job.adapters])
        (folder / LEARNED_FILE).write_text(json.dumps({"held_out_losses": losses}, indent=1) + "\n")


def _batches(tasks: list[Task], tokens: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Ids [rows, tokens], and what each id but the first counts; 0 on those that were not sampled. Rows are padded on
    the right: what follows a token never reaches it in a causal model."""
    rows = [(row, 1 / task.rollouts) for task in tasks for row in task.rows]
    batches = []
    for chunk in chunks([row for row, _ in rows], tokens):
        ids = [torch.tensor(rows[i][0].prompt_ids + rows[i][0].completion_ids) for i in chunk]
        shares = [
            torch.tensor([0.0] * len(row.prompt_ids) + row.mask) * share for row, share in (rows[i] for i in chunk)
        ]
        batches.append((pad_sequence(ids, batch_first=True), pad_sequence(shares, batch_first=True)[:, 1:]))
    return batches
