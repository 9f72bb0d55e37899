"""The generation thread. Invariant: model, state pool and prefix cache are touched by this thread alone; everything
else talks to it through its inbox. Adapters are read and merged outside of it, so that loading one does not stop the
others' tokens."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

import torch
from transformers.utils import logging as transformers_logging

from trainer.command import is_out_of_memory
from trainer.serve.adapters import Adapter, AdapterRegistry
from trainer.serve.batch import Batch, Generation
from trainer.serve.messages import OUT_OF_MEMORY, GenerationRequest, Outcome, RequestError, Unavailable
from trainer.serve.packed import ModelRunner
from trainer.serve.state import PrefixCache

log = logging.getLogger(__name__)


class Engine:
    """Serves requests from `start` to `stop`. Methods may be called from any thread."""

    def __init__(
        self, model: Path, *, max_batch: int, threads: int, dtype: str = "float32", prefix_cache_mb: int = 256
    ) -> None:
        """Loads a model. Raises ValueError for an unusable one."""
        transformers_logging.set_verbosity_error()
        transformers_logging.disable_progress_bar()
        torch.set_num_threads(threads)
        runner = ModelRunner(model, slots=max_batch, dtype=dtype)
        self.registry = AdapterRegistry(runner.mix.linears)
        self.context, self.eos, self.vocabulary = runner.context, runner.eos, runner.vocabulary
        self._batch = Batch(runner, cache=PrefixCache(prefix_cache_mb << 20))
        self._mix = runner.mix
        self._threads = threads
        self._inbox: deque[Generation | Adapter] = deque()
        self._wake = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="generation", daemon=True)

    def start(self) -> None:
        """Starts the generation thread."""
        self._thread.start()

    def submit(self, request: GenerationRequest, on_done: Callable[[Outcome | RequestError], None]) -> Generation:
        """Queues a request. `on_done` is called once, on the generation thread, or at once when the engine is stopping.
        Raises NotFound for an unknown model. Set `cancelled` of what is returned to give the request up."""
        generation = Generation(request, self.registry.get(request.model), on_done)
        if not self._put(generation):
            generation.done(Unavailable())
        return generation

    def unload(self, name: str) -> None:
        """Forgets an adapter; its running requests finish with it. Raises NotFound."""
        self._put(self.registry.unload(name))

    def stop(self, seconds: float) -> None:
        """Fails all requests with Unavailable, and waits for the thread: a process must not exit while it is inside a
        forward pass."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join(seconds)

    def _put(self, item: Generation | Adapter) -> bool:
        """Adds an item to the inbox. Returns False if the engine is stopping, and the thread will not see it."""
        with self._wake:
            if not self._stopping:
                self._inbox.append(item)
                self._wake.notify()
            return not self._stopping

    @torch.inference_mode()
    def _run(self) -> None:
        torch.set_num_threads(self._threads)
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._inbox or self._batch.requests or self._stopping)
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
                self._batch.fail_all(Unavailable())
                return
            try:
                self._batch.step()
            except Exception as error:  # a failed step must not end the server
                log.exception("generation step failed")
                reason = f"{OUT_OF_MEMORY} ({error!r})" if is_out_of_memory(error) else repr(error)
                self._batch.fail_all(RequestError(f"generation failed: {reason}"))
