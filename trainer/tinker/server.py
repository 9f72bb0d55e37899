"""A learner's requests to a Tinker server, through the server's own client package.

Invariants: the API key comes from TINKER_API_KEY and is used nowhere else; log-probs and factors are those of
completion tokens alone; the rest of a row is padded as the server requires."""

from __future__ import annotations

import asyncio
import atexit
import io
import json
import logging
import os
import tarfile
import threading
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from trainer.adapter_config import ADAPTER_FILES
from trainer.command import BadInput, write_json
from trainer.train.job import Row

os.environ.setdefault("TINKER_TELEMETRY", "0")
logging.getLogger("httpx").setLevel(logging.WARNING)

from tinker.lib.client_connection_pool_type import ClientConnectionPoolType  # noqa: E402

import tinker  # noqa: E402 - it reads the variable above
from tinker import types  # noqa: E402

LOSS = "importance_sampling"
ATTENTION = {"q_proj", "k_proj", "v_proj", "o_proj"}
LOOK_SECONDS = 1.0
"""The time between two polls of a waiting learner."""


class ServerFailed(RuntimeError):
    """A request to the server failed; a retry may succeed."""


class StateLost(RuntimeError):
    """The server has no such state any more."""


@contextmanager
def _asked(what: str) -> Iterator[None]:
    """Puts what was asked for in front of a failure. Raises ServerFailed, or BadInput where asking again is no use."""
    try:
        yield
    except BadInput:
        raise
    except (tinker.AuthenticationError, tinker.PermissionDeniedError) as error:
        raise BadInput(f"TINKER_API_KEY: the Tinker server refuses it ({error}); set it to a key of yours") from error
    except (tinker.TinkerError, ValueError, httpx.HTTPError, OSError) as error:
        raise ServerFailed(f"Tinker server, {what}: {error}") from error


def _wait(asked: Any) -> Any:
    future = asked.future() if hasattr(asked, "future") else asked
    while not future.done():
        wait([future], timeout=LOOK_SECONDS)
    return future.result()


@cache
def _end_in_time(loop: asyncio.AbstractEventLoop) -> None:
    """Ends the client's thread before the interpreter exits. The interpreter sometimes aborts (SIGABRT) with a running
    thread, and the exit code of the work is lost."""

    async def end() -> threading.Thread:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        loop.call_soon(loop.stop)
        return threading.current_thread()

    @atexit.register
    def wait_for_end() -> None:
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(end(), loop).result(timeout=5).join(timeout=5)


class Server:
    """A connection to a server. `held` is a file with the ids of the LoRAs that this process holds on the server: after
    a kill, the next process frees them."""

    def __init__(self, url: str, held: Path | None = None) -> None:
        if not os.environ.get("TINKER_API_KEY"):
            raise BadInput("TINKER_API_KEY: it is not set; set it to the server's key (SkyRL takes tml-any)")
        with _asked(f"connect to {url}"):
            self._service = tinker.ServiceClient(base_url=url)
        _end_in_time(self._service.holder.get_loop())
        self.url, self._held = url, held
        for model in self._ids():
            self._unload(model)

    def base_model(self, wanted: str | None) -> str:
        """The server's name of the base model. Raises BadInput where it has none of that name, or several."""
        with _asked("list models"):
            names = [model.model_name for model in self._service.get_server_capabilities().supported_models]
        if wanted is None and len(names) == 1:
            return names[0]
        if wanted in names:
            return wanted
        has = f"{self.url} has {', '.join(map(str, names[:10])) or 'no models'}"
        raise BadInput(f"trainer.model {wanted!r}: {has}; name one of them")

    def create(self, model: str, *, rank: int, seed: int, modules: list[str]) -> Adapter:
        """Makes a LoRA on the kinds of `modules`; the server chooses the modules of each kind. Raises BadInput."""
        wanted = {
            "train_attn": bool(ATTENTION & set(modules)),
            "train_unembed": "lm_head" in modules,
            "train_mlp": bool(set(modules) - ATTENTION - {"lm_head"}),
        }
        with _asked(f"create a LoRA of rank {rank} on {model}"):
            try:
                client = self._service.create_lora_training_client(model, rank, seed=seed, **wanted)
            except (tinker.TinkerError, ValueError) as error:
                if "LoRA rank" in str(error):
                    raise BadInput(
                        f"training.lora.r {rank}: {self.url} says {error}; lower it, or start the server so"
                    ) from error
                raise
        return self._adapter(client)

    def resume(self, state: str, model: str) -> Adapter:
        """Returns the LoRA with its optimizer as they were saved. Raises StateLost or ServerFailed."""
        with _asked(f"resume from {state}"):
            try:
                client = self._service.create_training_client_from_state_with_optimizer(state, base_model=model)
            except (tinker.TinkerError, ValueError) as error:
                if isinstance(error, tinker.NotFoundError) or "not found" in str(error).lower():
                    raise StateLost(f"{self.url} has no {state} any more") from error
                raise
        return self._adapter(client)

    def _adapter(self, client: Any) -> Adapter:
        self._keep([*self._ids(), client.model_id])
        return Adapter(self._service, client)

    def leave(self, adapter: Adapter) -> None:
        """Frees its place on the server, which would else be held for minutes after this process has gone."""
        self._unload(adapter.model_id)

    def _unload(self, model: str) -> None:
        holder = self._service.holder

        async def unload() -> None:
            with holder.aclient(ClientConnectionPoolType.TRAIN) as client:
                await client.models.unload(request=types.UnloadModelRequest(model_id=model))

        with suppress(Exception):
            holder.run_coroutine_threadsafe(unload()).result(timeout=10)
        self._keep([one for one in self._ids() if one != model])

    def _ids(self) -> list[str]:
        return json.loads(self._held.read_text()) if self._held and self._held.exists() else []

    def _keep(self, models: list[str]) -> None:
        if self._held:
            write_json(self._held, models)

    def delete(self, state: str) -> None:
        """Deletes a saved state. Errors are ignored: a remaining state only uses space on the server."""
        with suppress(Exception):
            self._service.create_rest_client().delete_checkpoint_from_tinker_path(state).result(timeout=30)


class Adapter:
    """One LoRA on the server, with its optimizer."""

    def __init__(self, service: Any, client: Any) -> None:
        self._service, self._client = service, client

    @property
    def model_id(self) -> str:
        return self._client.model_id

    def logprobs(self, rows: list[Row]) -> list[np.ndarray]:
        """Returns the log-probs of each row's completion tokens, in nats. Raises ServerFailed or BadInput."""
        with _asked("forward"):
            zeros = [np.zeros(len(row.completion_ids)) for row in rows]
            data = [_datum(row, zero, zero) for row, zero in zip(rows, zeros, strict=True)]
            out = _wait(self._client.forward(data, LOSS))
            return [_completion(row, one) for row, one in zip(rows, out.loss_fn_outputs, strict=True)]

    def add_gradient(self, rows: list[Row], factors: list[np.ndarray], own: list[np.ndarray]) -> None:
        """Adds, for every completion token, its factor times the gradient of its log-prob, reduced as the server does.
        `own`: the adapter's log-probs of these tokens now."""
        with _asked("forward_backward"):
            data = [_datum(row, factor, now) for row, factor, now in zip(rows, factors, own, strict=True)]
            _wait(self._client.forward_backward(data, LOSS))

    def step(self, **adam: float) -> dict[str, float]:
        """Takes one optimizer step with the gradients added so far. Returns the server's metrics."""
        with _asked("optim_step"):
            return dict(_wait(self._client.optim_step(types.AdamParams(**adam))).metrics or {})

    def save(self, name: str) -> str:
        """Saves LoRA and optimizer on the server. Returns the path to resume from."""
        with _asked(f"save_state {name}"):
            return _wait(self._client.save_state(name)).path

    def export(self, name: str, folder: Path) -> None:
        """Writes the LoRA as it is now as a PEFT folder, with what the server says of it."""
        with _asked(f"export {name}"):
            path = _wait(self._client.save_weights_for_sampler(name)).path
            # The client's download by path does not accept SkyRL's paths of sampler weights.
            checkpoint = path.removeprefix("tinker://").partition("/")[2].removeprefix("sampler_weights/")
            rest = self._service.create_rest_client()
            url = _wait(rest.get_checkpoint_archive_url(self.model_id, checkpoint)).url
            archive = httpx.get(url, follow_redirects=True, timeout=600).raise_for_status().content
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                files = {Path(member.name).name: tar.extractfile(member) for member in tar if member.isfile()}
                if not files.keys() >= set(ADAPTER_FILES):
                    raise ValueError(f"the archive has {', '.join(files) or 'nothing'}, not {', '.join(ADAPTER_FILES)}")
                folder.mkdir(parents=True, exist_ok=True)
                for file in ADAPTER_FILES:
                    (folder / file).write_bytes(files[file].read())
            with suppress(Exception):
                rest.delete_checkpoint(self.model_id, f"sampler_weights/{checkpoint}").result(timeout=30)


def _datum(row: Row, factor: np.ndarray, own: np.ndarray) -> Any:
    """Returns the server's form of a row. It is one token shorter, because each position predicts the next token."""
    ids = row.prompt_ids + row.completion_ids

    def whole(values: np.ndarray) -> Any:
        prompt = np.zeros(len(row.prompt_ids) - 1)
        return types.TensorData(data=np.concatenate([prompt, values]).astype(np.float32), dtype="float32")

    return types.Datum(
        model_input=types.ModelInput.from_ints(ids[:-1]),
        loss_fn_inputs={
            "target_tokens": types.TensorData(data=ids[1:], dtype="int64"),
            "logprobs": whole(own),
            "advantages": whole(factor),
        },
    )


def _completion(row: Row, output: Any) -> np.ndarray:
    return np.asarray(output["logprobs"].data, dtype=np.float64)[len(row.prompt_ids) - 1 :]
