"""The generation thread. Invariant: model, state pool and prefix cache are touched by this thread alone; everything
else talks to it through its inbox. Adapters are read and merged outside of it, so that loading one does not stop the
others' tokens."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

import torch

from trainer.serve.adapters import Adapter, AdapterRegistry
from trainer.serve.batch import Batch, Generation, StepMetrics
from trainer.serve.messages import GenerationRequest, Outcome, RequestError, Unavailable
from trainer.serve.packed import ModelRunner
from trainer.serve.state import PrefixCache

log = logging.getLogger(__name__)


class Engine:
    """Serves requests from `start` to `stop`. Methods may be called from any thread."""

    def __init__(self, runner: ModelRunner, *, base_name: str, cache_bytes: int, threads: int) -> None:
        self.registry = AdapterRegistry(base_name, runner.mix.linears)
        self.metrics = StepMetrics()
        self.context, self.eos = runner.context, runner.eos
        self._batch = Batch(runner, cache=PrefixCache(cache_bytes), metrics=self.metrics)
        self._mix = runner.mix
        self._threads = threads
        self._inbox: deque[Generation | Adapter] = deque()
        self._wake = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self.run, name="generation", daemon=True)

    def start(self) -> None:
        """Starts the generation thread."""
        self._thread.start()

    def submit(self, request: GenerationRequest, on_done: Callable[[Outcome | RequestError], None]) -> Generation:
        """Queues a request. `on_done` is called once, on the generation thread, or at once when the engine is stopping.
        Raises NotFound for an unknown model. Set `cancelled` of what is returned to give the request up."""
        generation = Generation(request, self.registry.get(request.model), on_done)
        with self._wake:
            if not self._stopping:
                self._inbox.append(generation)
                self._wake.notify()
                return generation
        generation.done(Unavailable.stopping())
        return generation

    def unload(self, name: str) -> None:
        """Forgets an adapter; its running requests finish with it. Raises NotFound."""
        adapter = self.registry.unload(name)
        with self._wake:
            self._inbox.append(adapter)
            self._wake.notify()

    def stop(self) -> None:
        """Fails all requests with Unavailable and ends the thread. Returns at once."""
        with self._wake:
            self._stopping = True
            self._wake.notify()

    def join(self, seconds: float) -> None:
        """Waits for the thread to end after `stop`: a process must not exit while it is inside a forward pass."""
        self._thread.join(seconds)

    def gauges(self) -> dict[str, int]:
        """What is true at this moment."""
        return {
            "running": self._batch.running,
            "waiting": self._batch.waiting + len(self._inbox),
            "adapters": len(self.registry.names()),
            "prefix_cache_bytes": self._batch.cache.bytes,
        }

    @torch.inference_mode()
    def run(self) -> None:
        """The thread's loop."""
        torch.set_num_threads(self._threads)
        while True:
            with self._wake:
                while not (self._inbox or self._batch.waiting or self._batch.running or self._stopping):
                    self._wake.wait()
                arrived = list(self._inbox)
                self._inbox.clear()
                stopping = self._stopping
            for item in arrived:
                if isinstance(item, Adapter):
                    self._batch.cache.forget(item)
                    self._mix.forget(item)
                else:
                    self._batch.add(item)
            if stopping:
                self._batch.fail_all(Unavailable.stopping())
                return
            try:
                self._batch.step()
            except Exception as error:  # a failed step must not end the server
                log.exception("generation step failed")
                self._batch.fail_all(RequestError(f"generation failed: {error!r}"))
