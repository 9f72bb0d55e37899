"""The generation process: an engine behind a socket, `python -m trainer.serve.worker FD OPTIONS`.

Why a process of its own: torch gives up the interpreter lock at every operation, so a front in the same process would
take the lock hundreds of times a step (measured: half of the tokens a second). Invariants: every message (id,
operation, arguments) is answered by exactly one (id, result), where an exception is a result; the end of the socket
ends the process."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging as transformers_logging

from trainer.model_folder import base_id
from trainer.serve.batch import Generation
from trainer.serve.engine import Engine
from trainer.serve.messages import GenerationRequest, Ready, RequestError
from trainer.serve.packed import ModelRunner

SHUTDOWN_SECONDS = 5


def build(model: str, *, model_name: str, max_batch: int, threads: int, prefix_cache_mb: int, device: str) -> Engine:
    """Loads a model and makes an engine, which is not started. Raises ValueError for an unusable model."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    torch.set_num_threads(threads)
    runner = ModelRunner(Path(model), slots=max_batch, device=device)
    return Engine(runner, base_name=model_name, cache_bytes=prefix_cache_mb << 20, threads=threads)


class Worker:
    """Carries messages between the socket and an engine."""

    def __init__(self, engine: Engine, front: Connection) -> None:
        self._engine, self._front = engine, front
        self._writing = threading.Lock()
        self._generations: dict[int, Generation] = {}

    def serve(self) -> None:
        """Reads messages until the front is gone."""
        while True:
            try:
                number, operation, arguments = self._front.recv()
            except (EOFError, OSError):
                return
            if operation == "generate":
                self._generate(number, arguments)
            elif operation == "cancel":
                if generation := self._generations.get(arguments):
                    generation.cancelled = True
            elif operation == "load":
                # Reading files and adding matrices takes a while on large models; tokens go on meanwhile.
                threading.Thread(target=self._answer, args=(number, operation, arguments), daemon=True).start()
            else:
                self._answer(number, operation, arguments)

    def _generate(self, number: int, request: GenerationRequest) -> None:
        def done(result: object) -> None:
            self._generations.pop(number, None)
            self.send(number, result)

        try:
            # `done` runs on the generation thread, maybe before submit returns; a leftover entry is harmless.
            self._generations[number] = self._engine.submit(request, done)
        except RequestError as error:
            self.send(number, error)

    def _answer(self, number: int, operation: str, arguments: Any) -> None:
        engine = self._engine
        try:
            result: object
            match operation:
                case "load":
                    result = engine.registry.load(*arguments)
                case "unload":
                    result = engine.unload(arguments)
                case "names":
                    result = engine.registry.names()
                case "find":
                    result = engine.registry.get(arguments) and arguments
                case "metrics":
                    result = (asdict(engine.metrics), engine.gauges())
                case _:
                    raise ValueError("there is none")
        except Exception as error:
            result = error if isinstance(error, RequestError) else RequestError(f"{operation} failed: {error!r}")
        self.send(number, result)

    def send(self, number: int, result: object) -> None:
        """Answers a message; a front that is gone has no use for the answer."""
        try:
            with self._writing:
                self._front.send((number, result))
        except OSError:
            pass


def main() -> None:
    """Entry point of the process. The first answer, number 0, is Ready or the error that keeps it from serving."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # a signal to the group is the front's to handle
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    front = Connection(int(sys.argv[1]))
    options = json.loads(sys.argv[2])
    try:
        engine = build(**options)
        base = base_id(Path(options["model"]))
    except (ValueError, OSError) as error:
        front.send((0, RequestError(str(error))))
        return
    engine.start()
    worker = Worker(engine, front)
    worker.send(0, Ready(context=engine.context, eos=engine.eos, base_id=base))
    worker.serve()
    engine.stop()
    engine.join(SHUTDOWN_SECONDS)
    os._exit(0)  # a forward pass that takes longer must not keep the process alive


if __name__ == "__main__":
    main()
