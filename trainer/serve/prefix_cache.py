"""
States of token prefixes, kept for requests that begin with the same ids.

Invariant: an entry is found only by the same adapter object and exactly its ids, so a hit never changes a result
beyond round-off. Least recently used entries go first; the sum of the snapshots stays within `limit` bytes. Nothing is
kept of an adapter that was unloaded, whoever still runs with it.
"""

from __future__ import annotations

from array import array
from collections import Counter, OrderedDict
from weakref import WeakSet

from trainer.serve.adapters import Adapter
from trainer.serve.state_pool import Snapshot

Key = tuple[Adapter | None, bytes]


def key_of(adapter: Adapter | None, ids: list[int]) -> Key:
    """The key of the state after `ids`."""
    return adapter, array("i", ids).tobytes()


class PrefixCache:
    """Snapshots by (adapter, token ids). Not thread-safe: the generation thread owns it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0
        self._entries: OrderedDict[Key, Snapshot] = OrderedDict()
        self._lengths: dict[Adapter | None, Counter[int]] = {}
        self._unloaded: WeakSet[Adapter] = WeakSet()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def keeps(self, adapter: Adapter | None) -> bool:
        """Whether anything of the adapter is kept."""
        return adapter is None or adapter not in self._unloaded

    def longest(self, key: Key, below: int) -> Snapshot | None:
        """The snapshot of the longest kept prefix of the key's ids that is shorter than `below` tokens."""
        adapter, blob = key
        width = array("i").itemsize
        for length in sorted(self._lengths.get(adapter, ()), reverse=True):
            if length < below:
                found = (adapter, blob[: width * length])
                if found in self._entries:
                    self._entries.move_to_end(found)
                    return self._entries[found]
        return None

    def put(self, key: Key, snapshot: Snapshot) -> None:
        """Keeps a snapshot if it fits at all, and drops the entries that were not used for longest."""
        if key in self._entries or snapshot.bytes > self.limit or not self.keeps(key[0]):
            return
        self._entries[key] = snapshot
        self._lengths.setdefault(key[0], Counter())[snapshot.length] += 1
        self.bytes += snapshot.bytes
        while self.bytes > self.limit:
            self._drop(next(iter(self._entries)))

    def forget(self, adapter: Adapter) -> None:
        """Drops all entries of an adapter that was unloaded, and takes no others."""
        self._unloaded.add(adapter)
        for key in [key for key in self._entries if key[0] is adapter]:
            self._drop(key)

    def _drop(self, key: Key) -> None:
        snapshot = self._entries.pop(key)
        self.bytes -= snapshot.bytes
        lengths = self._lengths[key[0]]
        lengths[snapshot.length] -= 1
        if not lengths[snapshot.length]:
            del lengths[snapshot.length]
        if not lengths:
            del self._lengths[key[0]]
