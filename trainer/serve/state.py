"""The cached past of rows (attention keys and values, and the last inputs of short convolutions), and snapshots of it
that are kept for requests that begin with the same ids.

Invariants: what a slot holds is a function of the token ids that were fed to it. A snapshot of a slot can be put into
any slot, and it is whole: attention state can be cut to a shorter prefix, convolution state cannot, so neither ever is.
A kept one is found only by the same adapter object and exactly its ids, so a hit never changes a result beyond
round-off."""

from array import array
from collections import OrderedDict
from dataclasses import dataclass
from operator import itemgetter
from weakref import WeakSet

import torch
from transformers import PretrainedConfig

from trainer.serve.adapters import Adapter

FIRST_CAPACITY = 128
FIRST_ROWS = 8


@dataclass(frozen=True)
class Snapshot:
    """State after `length` tokens. attention [layers, 2, kv_heads, length, d]; convolution [layers, past, hidden]."""

    length: int
    attention: torch.Tensor
    convolution: torch.Tensor | None

    @property
    def bytes(self) -> int:
        """Memory that the snapshot holds."""
        return sum(part.nbytes for part in (self.attention, self.convolution) if part is not None)


class StatePool:
    """State of up to `slots` rows for the model of `config`. Keys and values have room for as many rows as have run at
    a time and as many tokens as the longest had, with some to spare, up to `slots` and `context`."""

    def __init__(self, config: PretrainedConfig, *, slots: int, context: int) -> None:
        kinds = getattr(config, "layer_types", None) or ["full_attention"] * config.num_hidden_layers
        self.slots, self.context = slots, context
        self._attention = {layer: n for n, layer in enumerate(i for i, k in enumerate(kinds) if k != "conv")}
        self._convolution = {layer: n for n, layer in enumerate(i for i, k in enumerate(kinds) if k == "conv")}
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.rows, self.capacity = min(FIRST_ROWS, slots), min(FIRST_CAPACITY, context)
        room = (2, self.rows, heads, self.capacity, size)
        # A tensor a layer: growing takes the room of one twice, not of all.
        self.kv = [torch.zeros(room) for _ in self._attention]
        self.conv: torch.Tensor | None = None
        self.conv_past = 0
        if self._convolution:
            self.conv_past = config.conv_L_cache - 1
            shape = (len(self._convolution), slots, self.conv_past, config.hidden_size)
            self.conv = torch.zeros(shape)

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
        held = sum(layer[:, 0, :, 0].nbytes for layer in self.kv) * length
        return held + (0 if self.conv is None else self.conv[:, 0].nbytes)

    def reserve(self, length: int, rows: int) -> None:
        """Makes room for the first `rows` slots with `length` tokens each."""
        if length <= self.capacity and rows <= self.rows:
            return
        held, capacity = self.rows, self.capacity
        self.rows = _grown(held, rows, self.slots)
        self.capacity = _grown(capacity, length, self.context)
        for layer, old in enumerate(self.kv):
            two, _, heads, _, d = old.shape
            self.kv[layer] = old.new_zeros(two, self.rows, heads, self.capacity, d)
            self.kv[layer][:, :held, :, :capacity] = old

    def clear(self, slot: int) -> None:
        """Prepares a slot for a row that starts at its first token."""
        if self.conv is not None:
            self.conv[:, slot] = 0

    def wipe(self, slot: int, length: int) -> None:
        """Empties a slot that may hold values that are not finite: a later row would be harmed where it masks them."""
        for layer in self.kv:
            layer[:, slot : slot + 1, :, :length] = 0  # a slot that was never fed may have no room yet

    def save(self, slot: int, length: int) -> Snapshot:
        """Copies out a slot that has been fed `length` tokens."""
        attention = torch.stack([layer[:, slot, :, :length] for layer in self.kv])
        convolution = None if self.conv is None else self.conv[:, slot].clone()
        return Snapshot(length, attention, convolution)

    def restore(self, slot: int, snapshot: Snapshot) -> None:
        """Puts a slot into the state of a snapshot."""
        self.reserve(snapshot.length, slot + 1)
        for layer, kept in zip(self.kv, snapshot.attention, strict=True):
            layer[:, slot, :, : snapshot.length] = kept
        if self.conv is not None:
            self.conv[:, slot] = snapshot.convolution


def _grown(now: int, wanted: int, limit: int) -> int:
    """`now` where that is enough, else a quarter more at least and a multiple of 8: few copies, and little to spare."""
    return now if wanted <= now else min(-(-max(wanted, now * 5 // 4) // 8) * 8, limit)


Key = tuple[Adapter | None, bytes]


def key_of(adapter: Adapter | None, ids: list[int]) -> Key:
    """The key of the state after `ids`."""
    return adapter, array("i", ids).tobytes()


class PrefixCache:
    """Snapshots by (adapter, token ids). Drops the least recently used entries to keep the snapshots within `limit`
    bytes. Keeps nothing of an unloaded adapter, even while requests still run with it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0
        self._entries: OrderedDict[Key, Snapshot] = OrderedDict()
        self._unloaded: WeakSet[Adapter] = WeakSet()

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def keeps(self, adapter: Adapter | None) -> bool:
        """Returns False for an adapter that was unloaded."""
        return adapter is None or adapter not in self._unloaded

    def longest(self, key: Key, below: int) -> Snapshot | None:
        """The snapshot of the longest kept prefix of the key's ids that is shorter than `below` tokens."""
        adapter, ids = key
        prefixes = [
            (snapshot.length, kept)
            for kept, snapshot in self._entries.items()
            if kept[0] is adapter and snapshot.length < below and ids.startswith(kept[1])
        ]
        if not prefixes:
            return None
        _, longest = max(prefixes, key=itemgetter(0))
        self._entries.move_to_end(longest)
        return self._entries[longest]

    def put(self, key: Key, snapshot: Snapshot) -> None:
        """Keeps a snapshot if it fits at all, and drops the entries that were not used for longest."""
        if key in self._entries or snapshot.bytes > self.limit or not self.keeps(key[0]):
            return
        self._entries[key] = snapshot
        self.bytes += snapshot.bytes
        while self.bytes > self.limit:
            self.bytes -= self._entries.popitem(last=False)[1].bytes

    def forget(self, adapter: Adapter) -> None:
        """Drops all entries of an adapter that was unloaded, and takes no others."""
        self._unloaded.add(adapter)
        for key in [key for key in self._entries if key[0] is adapter]:
            self.bytes -= self._entries.pop(key).bytes
