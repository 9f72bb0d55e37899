"""Packed forward: the new tokens of all rows in one sequence of shape [1, T], without padding.

Invariants: linear layers see tokens, only attention and short convolutions see rows. Both find the row of a token
through the `PackedBatch` that travels through the model's forward as the keyword `packed`; the cached past is read
from and written to its `StatePool`. Rows with more than one new token come first, then the rows with exactly one, in
order of their slots. The result equals the plain transformers forward of each row on its own, up to round-off:
ModelRunner proves it for the loaded model before it serves a request."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from transformers import AttentionInterface, AutoModelForCausalLM, PretrainedConfig, PreTrainedModel

from trainer.linear import LIMITS, to_bfloat16
from trainer.model_folder import eos_ids
from trainer.serve.adapters import Adapter, LoraMix
from trainer.serve.state import StatePool

ATTENTION = "packed"


@dataclass(frozen=True)
class Segment:
    """One row's new tokens: `ids` continue the `start` tokens that `slot` of the pool holds already."""

    slot: int
    start: int
    ids: list[int]


class PackedBatch:
    """Index tensors of one forward, shared by all layers. `segments` must be in the module's row order (`in_order`)."""

    def __init__(self, segments: list[Segment], pool: StatePool) -> None:
        self.pool = pool
        counts = np.array([len(s.ids) for s in segments])
        slots = np.array([s.slot for s in segments])
        starts = np.array([s.start for s in segments])
        ends = np.cumsum(counts)
        first = ends - counts
        offset = np.arange(ends[-1]) - np.repeat(first, counts)
        positions = np.repeat(starts, counts) + offset

        self.long = [(int(a), int(b), s) for a, b, s in zip(first, ends, segments, strict=True) if len(s.ids) > 1]
        self.split = self.long[-1][1] if self.long else 0
        """Tokens before this index belong to rows with several new tokens."""
        ids = np.array([i for s in segments for i in s.ids])
        self.input_ids = torch.from_numpy(ids)[None]
        self.position_ids = torch.from_numpy(positions)[None]
        self.token_slots = torch.from_numpy(np.repeat(slots, counts))
        self.token_positions = torch.from_numpy(positions)
        self.last = torch.from_numpy(ends - 1)
        """Index of each row's last token, in the order of the segments."""
        self.counts = counts
        self._prepare_attention(slots, starts)
        if pool.conv is not None:
            self._prepare_convolution(counts, slots, first, offset)

    def _prepare_attention(self, slots: np.ndarray, starts: np.ndarray) -> None:
        single = slice(len(self.long), None)
        self.single_slots, self.reach, self.dense = None, 0, False
        if len(slots) > len(self.long):
            rows = slots[single]
            self.reach = int(rows.max()) + 1
            self.dense = len(rows) == self.reach
            self.single_slots = torch.from_numpy(rows)
            lengths = np.ones(self.reach, dtype=np.int64)  # a slot without a row attends to one stale position: no NaN
            lengths[rows] = starts[single] + 1
            self.width = int(lengths.max())
            visible = np.arange(self.width)[None, :] < lengths[:, None]
            self.mask = torch.from_numpy(visible)[:, None, None, :]
        self.long_masks = [
            torch.ones(len(s.ids), s.start + len(s.ids), dtype=torch.bool).tril(s.start) if s.start else None
            for _, _, s in self.long
        ]

    def _prepare_convolution(
        self, counts: np.ndarray, slots: np.ndarray, first: np.ndarray, offset: np.ndarray
    ) -> None:
        """Gather indices into cat(pool states of all slots, this batch's inputs), both flattened to [*, hidden]."""
        past = self.pool.conv_past
        base = self.pool.slots * past  # where this batch's inputs begin
        back = np.arange(past, -1, -1)[None, :]  # oldest tap first
        tokens = np.arange(len(offset))[:, None]
        own = np.repeat(slots, counts)[:, None] * past
        taps = np.where(offset[:, None] >= back, base + tokens - back, own + past + offset[:, None] - back)
        self.taps = torch.from_numpy(taps.T.copy()).unbind()
        behind = np.arange(past, 0, -1)[None, :]
        kept = np.where(
            counts[:, None] >= behind,
            base + (first + counts)[:, None] - behind,
            slots[:, None] * past + past + counts[:, None] - behind,
        )
        self.kept = torch.from_numpy(kept)
        self.row_slots = torch.from_numpy(slots)


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    *,
    packed: PackedBatch,
    **_: object,
) -> tuple[torch.Tensor, None]:
    """transformers' attention interface. query [1, heads, T, d], key and value [1, kv_heads, T, d]; returns [1, T,
    heads, d]."""
    keys, values = packed.pool.attention_state(module.layer_idx)
    keys[packed.token_slots, :, packed.token_positions] = key[0].transpose(0, 1)
    values[packed.token_slots, :, packed.token_positions] = value[0].transpose(0, 1)

    _, heads, tokens, size = query.shape
    kv_heads = key.shape[1]
    out = query.new_empty(tokens, heads, size)
    for (begin, end, row), mask in zip(packed.long, packed.long_masks, strict=True):
        upto = row.start + end - begin
        out[begin:end] = F.scaled_dot_product_attention(
            query[:, :, begin:end],
            keys[row.slot : row.slot + 1, :, :upto],
            values[row.slot : row.slot + 1, :, :upto],
            attn_mask=mask,
            is_causal=mask is None,
            scale=scaling,
            enable_gqa=heads != kv_heads,
        )[0].transpose(0, 1)
    if packed.single_slots is not None:
        # One query a row, so the query heads of one key head can stand in the query axis: no copy of the keys for GQA.
        single = query[0, :, packed.split :].transpose(0, 1).reshape(-1, kv_heads, heads // kv_heads, size)
        if not packed.dense:
            spread = single.new_zeros(packed.reach, *single.shape[1:])
            spread[packed.single_slots] = single
            single = spread
        attended = F.scaled_dot_product_attention(
            single,
            keys[: packed.reach, :, : packed.width],
            values[: packed.reach, :, : packed.width],
            attn_mask=packed.mask,
            scale=scaling,
        ).reshape(packed.reach, heads, size)
        out[packed.split :] = attended if packed.dense else attended[packed.single_slots]
    return out[None], None


def short_convolution(
    module: torch.nn.Module, hidden_states: torch.Tensor, *_: object, packed: PackedBatch, **__: object
) -> torch.Tensor:
    """Lfm2's gated short convolution over packed rows: hidden_states [1, T, hidden] to the same shape."""
    state = packed.pool.convolution_state(module.layer_idx)  # [slots, past, hidden]
    gate_in, gate_out, x = module.in_proj(hidden_states[0]).chunk(3, dim=-1)
    inputs = gate_in * x
    source = torch.cat((state.flatten(0, 1), inputs))
    state[packed.row_slots] = source[packed.kept]
    mixed = module.conv.bias if module.conv.bias is not None else 0.0
    for tap, weight in zip(packed.taps, module.conv.weight[:, 0].unbind(1), strict=True):
        mixed = mixed + source.index_select(0, tap) * weight
    return module.out_proj(gate_out * mixed)[None]


def install(model: PreTrainedModel) -> None:
    """Makes `model` run packed: its forward then needs `packed`, `use_cache=False` and the batch's ids and places."""
    AttentionInterface.register(ATTENTION, attend)
    model.set_attn_implementation(ATTENTION)
    for module in model.modules():
        if type(module).__name__ == "Lfm2ShortConv":
            module.forward = partial(short_convolution, module)


class ModelRunner:
    """A causal LM with room for `slots` rows."""

    def __init__(self, folder: Path, *, slots: int, dtype: str = "float32") -> None:
        """`dtype`: of the linear layers' weights, float32 or bfloat16. Raises ValueError for an unusable model."""
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        if dtype == "bfloat16":
            to_bfloat16(self.model)
        self._limit = LIMITS[dtype]
        config = self.model.config
        self.context: int = config.max_position_embeddings
        self.vocabulary: int = config.vocab_size
        self.slots = slots
        self.eos = eos_ids(folder)
        try:
            self._prepare()
        except Exception as error:  # an architecture may break anywhere in its own forward
            reason = f"model type {config.model_type} cannot run packed ({error}); serve it with vLLM"
            raise ValueError(f"--model {folder}: {reason}") from error

    def _prepare(self) -> None:
        config = self.model.config
        _check_attention(config)
        probes = [[(7 * i + n) % config.vocab_size for i in range(n)] for n in (11, 7)]
        with torch.inference_mode():
            plain = [self.model(torch.tensor([p])).logits[0].log_softmax(-1) for p in probes]
        self.pool = StatePool(config, slots=self.slots, context=self.context)
        install(self.model)
        self.mix = LoraMix(self.model)
        self._check(probes, plain)

    def _check(self, probes: list[list[int]], plain: list[torch.Tensor]) -> None:
        """Feeds the probes in unequal parts, the second joining late, and compares with what the plain model gave."""
        first, second = probes
        slots = (min(self.slots, 2) - 1, 0)  # not the last: that would make room for all
        for slot in set(slots):
            self.pool.clear(slot)
        parts = [(0, 0, 5), (0, 5, 6), (0, 6, 11)] + ([(1, 0, 3), (1, 3, 4), (1, 4, 7)] if self.slots > 1 else [])
        worst = 0.0
        for row, begin, end in parts:
            segment = Segment(slots[row], begin, (first, second)[row][begin:end])
            found = self.forward([segment], [None])[0].log_softmax(-1)
            worst = max(worst, (found - plain[row][end - 1]).abs().max().item())
        if not worst <= self._limit:
            raise ValueError(f"its log-probs differ from the plain forward by {worst:.2g}")

    def forward(self, segments: list[Segment], adapters: list[Adapter | None]) -> torch.Tensor:
        """Feeds the segments, in the order that PackedBatch asks for. Returns logits [rows, vocabulary]."""
        with torch.inference_mode():
            self.pool.reserve(max(s.start + len(s.ids) for s in segments), 1 + max(s.slot for s in segments))
            batch = PackedBatch(segments, self.pool)
            self.mix.select(adapters, batch.counts)
            return self.model(
                input_ids=batch.input_ids,
                position_ids=batch.position_ids,
                use_cache=False,
                logits_to_keep=batch.last,
                packed=batch,
            ).logits[0]


def _check_attention(config: PretrainedConfig) -> None:
    """Raises ValueError for a sliding window: the probes are too short to show it."""
    window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
    kinds = getattr(config, "layer_types", None)
    if "sliding_attention" in kinds if kinds else window and window < config.max_position_embeddings:
        raise ValueError(f"its layers attend to the last {window} tokens (sliding_window), here to all before them")
