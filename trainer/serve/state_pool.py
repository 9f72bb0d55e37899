"""
The cached past of all running rows: attention keys and values, the last inputs of short convolutions, and the sum of
the embeddings, which is kept for rows whose gate looks at it (gating.py).

Invariant: what a slot holds is a function of the token ids that were fed to it. A snapshot of a slot can be put into
any slot, and it is whole: attention state can be cut to a shorter prefix, convolution state cannot, so neither ever is.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import torch
from transformers import PretrainedConfig

log = logging.getLogger(__name__)

FIRST_CAPACITY = 128
FIRST_ROWS = 8

MUCH = 4_000_000_000
"""Bytes of room for which others may be missing them: from then on every growth is said."""


@dataclass(frozen=True)
class Snapshot:
    """
    State after `length` tokens. attention [layers, 2, kv_heads, length, d]; convolution [layers, past, hidden];
    embedded [hidden].
    """

    length: int
    attention: torch.Tensor
    convolution: torch.Tensor | None
    embedded: torch.Tensor

    @property
    def bytes(self) -> int:
        """Memory that the snapshot holds."""
        parts = (self.attention, self.convolution, self.embedded)
        return sum(t.numel() * t.element_size() for t in parts if t is not None)


class StatePool:
    """
    State of up to `slots` rows for the model of `config`. Keys and values have room for as many rows as have run at a
    time and as many tokens as the longest had; both grow by doubling, up to `slots` and `context`.
    """

    def __init__(
        self, config: PretrainedConfig, *, slots: int, context: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        kinds = getattr(config, "layer_types", None) or ["full_attention"] * config.num_hidden_layers
        self.slots, self.context, self.device = slots, context, device
        self._attention = {layer: n for n, layer in enumerate(i for i, k in enumerate(kinds) if k != "conv")}
        self._convolution = {layer: n for n, layer in enumerate(i for i, k in enumerate(kinds) if k == "conv")}
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        capacity = min(FIRST_CAPACITY, context)
        rows = min(FIRST_ROWS, slots)
        self.kv = torch.zeros(len(self._attention), 2, rows, heads, capacity, size, dtype=dtype, device=device)
        self.conv: torch.Tensor | None = None
        self.conv_past = 0
        if self._convolution:
            self.conv_past = config.conv_L_cache - 1
            shape = (len(self._convolution), slots, self.conv_past, config.hidden_size)
            self.conv = torch.zeros(shape, dtype=dtype, device=device)
        self.embedded = torch.zeros(slots, config.hidden_size, device=device)

    def attention_state(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of a layer, each [rows, kv_heads, capacity, d], to be written in place."""
        state = self.kv[self._attention[layer]]
        return state[0], state[1]

    def convolution_state(self, layer: int) -> torch.Tensor:
        """The last inputs of a layer's convolution, [slots, past, hidden], oldest first, to be written in place."""
        assert self.conv is not None
        return self.conv[self._convolution[layer]]

    def snapshot_bytes(self, length: int) -> int:
        """Memory of a snapshot after `length` tokens."""
        layers, kinds, _, heads, _, size = self.kv.shape
        state = 0 if self.conv is None else self.conv[:, 0].numel()
        held = (layers * kinds * heads * size * length + state) * self.kv.element_size()
        return held + self.embedded[0].nbytes

    def reserve(self, length: int, rows: int) -> None:
        """Makes room for the first `rows` slots with `length` tokens each."""
        held, capacity = self.kv.shape[2], self.kv.shape[4]
        if length <= capacity and rows <= held:
            return
        wanted_rows = _doubled(held, rows, self.slots)
        wanted = _doubled(capacity, length, self.context)
        # Said before it is taken: where there is not so much, it is the last line of the log.
        if (size := wanted_rows * self.snapshot_bytes(wanted)) > MUCH:
            log.warning(
                f"{rows} rows of up to {length} tokens: room for {wanted_rows} rows of {wanted} takes {size / 1e9:.1f} "
                f"GB, half as much more while it grows; a lower policyServer.maxBatch takes less"
            )
        layers, kinds, _, heads, _, d = self.kv.shape
        larger = self.kv.new_zeros(layers, kinds, wanted_rows, heads, wanted, d)
        larger[:, :, :held, :, :capacity] = self.kv
        self.kv = larger

    def clear(self, slot: int) -> None:
        """Prepares a slot for a row that starts at its first token."""
        if self.conv is not None:
            self.conv[:, slot] = 0
        self.embedded[slot] = 0

    def wipe(self, slot: int, length: int) -> None:
        """Empties a slot that may hold values that are not finite: a later row would be harmed where it masks them."""
        self.kv[:, :, slot : slot + 1, :, :length] = 0  # a slot that was never fed may have no room yet

    def save(self, slot: int, length: int) -> Snapshot:
        """Copies out a slot that has been fed `length` tokens."""
        convolution = None if self.conv is None else self.conv[:, slot].clone()
        return Snapshot(length, self.kv[:, :, slot, :, :length].clone(), convolution, self.embedded[slot].clone())

    def restore(self, slot: int, snapshot: Snapshot) -> None:
        """Puts a slot into the state of a snapshot."""
        self.reserve(snapshot.length, slot + 1)
        self.kv[:, :, slot, :, : snapshot.length] = snapshot.attention
        if self.conv is not None:
            self.conv[:, slot] = snapshot.convolution
        self.embedded[slot] = snapshot.embedded


def _doubled(now: int, wanted: int, limit: int) -> int:
    """`now`, doubled until it holds `wanted`, at most `limit`."""
    while now < wanted:
        now = min(2 * now, limit)
    return now
