"""The generation process: an engine behind a socket, `python -m trainer.serve.worker FD OPTIONS`.

Why a process of its own: torch gives up the interpreter lock at every operation, so a front in the same process would
take the lock hundreds of times a step (measured: half of the tokens a second). Invariants: every message (id,
operation, arguments) but "cancel" is answered by exactly one (id, result), where an exception is a result; the end of
the socket ends the process."""

import json
import logging
import os
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from trainer.command import is_out_of_memory
from trainer.model_folder import base_id
from trainer.serve.batch import Generation
from trainer.serve.engine import Engine
from trainer.serve.messages import OUT_OF_MEMORY, GenerationRequest, Ready, RequestError

SHUTDOWN_SECONDS = 5


def serve(engine: Engine, front: Connection, ready: Ready) -> None:
    """Carries messages between the socket and a running engine until the front is gone."""
    writing = threading.Lock()
    generations: dict[int, Generation] = {}

    def send(number: int, result: object) -> None:
        with suppress(OSError), writing:  # a front that is gone has no use for the answer
            front.send((number, result))

    def generate(number: int, request: GenerationRequest) -> None:
        def done(result: object) -> None:
            generations.pop(number, None)
            send(number, result)

        # `done` runs on the generation thread, maybe before submit returns; a leftover entry is harmless.
        generations[number] = engine.submit(request, done)

    operations = {
        "load": lambda arguments: engine.registry.load(*arguments),
        "unload": engine.unload,
        "names": lambda _: engine.registry.names(),
        "find": lambda name: engine.registry.get(name) is not None,
    }

    def answer(number: int, operation: str, arguments: Any) -> None:
        try:
            if operation == "generate":
                return generate(number, arguments)
            result = operations[operation](arguments)
        except RequestError as error:
            result = error
        except Exception as error:
            result = RequestError(f"{operation} failed: {error!r}")
        send(number, result)

    send(0, ready)
    while True:
        try:
            number, operation, arguments = front.recv()
        except (EOFError, OSError):
            return
        if operation == "cancel":
            if generation := generations.get(arguments):
                generation.cancelled = True
        elif operation == "load":
            # Reading files and adding matrices takes a while on large models; generation continues meanwhile.
            threading.Thread(target=answer, args=(number, operation, arguments), daemon=True).start()
        else:
            answer(number, operation, arguments)


def main() -> None:
    """Entry point of the process. The first answer, number 0, is Ready or the error that keeps it from serving."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # a signal to the group is the front's to handle
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    front = Connection(int(sys.argv[1]))
    options = json.loads(sys.argv[2])
    model = Path(options.pop("model"))
    try:
        engine = Engine(model, **options)
        ready = Ready(context=engine.context, base_id=base_id(model), vocabulary=engine.vocabulary)
    except (ValueError, OSError, MemoryError, RuntimeError) as error:
        reason = f"--model {model}: {OUT_OF_MEMORY} ({error!r})" if is_out_of_memory(error) else str(error)
        front.send((0, RequestError(reason)))
        return
    engine.start()
    serve(engine, front, ready)
    engine.stop(SHUTDOWN_SECONDS)
    os._exit(0)  # a forward pass that takes longer must not keep the process alive


if __name__ == "__main__":
    main()
