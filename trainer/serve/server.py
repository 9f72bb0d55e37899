"""The front of the embedded policy server (docs/policy-server.md): requests come in here, become token ids in chat.py,
and are generated in another process (worker.py), by the thread of engine.py.

Invariants: every answer that is not 2xx is an OpenAI error object, and a request that its client gave up on leaves the
batch. A signal, or the end of stdin, fails what is in flight with 503 and ends both processes with exit code 0. Stdout
carries one JSON line, `{"type":"listening","url":...}`, when requests will be answered; logs go to stderr."""

import argparse
import asyncio
import contextlib
import hmac
import ipaddress
import json
import logging
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from http import HTTPStatus
from itertools import count
from pathlib import Path

import uvicorn

from trainer.campaign_adapters import AdapterCache, adapters_of_store
from trainer.command import blaming
from trainer.model_folder import check_files, model_at
from trainer.serve.chat import ChatFormat
from trainer.serve.client import EngineClient
from trainer.serve.messages import (
    BASE,
    BadRequest,
    GenerationRequest,
    NotFound,
    Outcome,
    Ready,
    RequestError,
    Unavailable,
)
from trainer.serve.protocol import (
    ChatRequest,
    DerenderRequest,
    GenerateRequest,
    LoadRequest,
    UnloadRequest,
    completion,
    derendered,
    generated,
    parse,
)

log = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 5
MAX_BODY_BYTES = 8 * 1024 * 1024
KEY_VARIABLE = "POLICY_SERVER_API_KEY"

Answer = tuple[str, bytes]
Receive = Callable[[], Awaitable[dict]]
Send = Callable[[dict], Awaitable[None]]


def main(argv: list[str]) -> int:
    """Serves until SIGTERM, SIGINT or, with --exit-with-parent, the end of stdin. Returns the exit code."""
    args = _arguments(argv)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    try:
        check_files(model_at(args.model, name="--model"))
        asyncio.run(serve(args, _bound(args.host, args.port)))
    except (ValueError, OSError, RequestError) as error:  # what a user can cure: one line, no traceback
        print(f"serve: {error}", file=sys.stderr)
        return 1
    return 0


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m trainer serve",
        description="Serve a base model and LoRA adapters.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--model", type=Path, required=True, metavar="DIR", help="model folder (transformers format)")
    add("--host", default="127.0.0.1", help="address to listen on")
    add("--port", type=int, default=8000, help="0 picks a free one")
    add("--max-batch", type=int, default=64, metavar="N", help="rows generated together")
    add("--threads", type=int, default=1, metavar="N", help="CPU threads of the forward pass")
    add("--dtype", choices=["float32", "bfloat16"], default="float32", help="format of the linear layers' weights")
    add("--exit-with-parent", action="store_true", help="stop at the end of stdin")
    return parser.parse_args(argv)


def _bound(host: str, port: int) -> socket.socket:
    """A socket that does not listen yet: clients are refused until the model is loaded."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        raise ValueError(
            f"--port {port}: cannot listen on {host} ({error.strerror}); choose another, or 0 for a free one"
        ) from error
    address = listener.getsockname()[0]
    if not _key() and not ipaddress.ip_address(address).is_loopback:
        listener.close()
        raise ValueError(f"--host {host}: any client could load files; set {KEY_VARIABLE}, or listen on 127.0.0.1")
    return listener


def _key() -> str:
    """The key that requests must carry, as vLLM's; empty where none is demanded."""
    return os.environ.get(KEY_VARIABLE, "").strip()


async def serve(args: argparse.Namespace, listener: socket.socket) -> None:
    """Serves on a bound socket until a signal or the end of stdin. Raises RequestError or ValueError."""
    options = {"max_batch": args.max_batch, "threads": args.threads, "dtype": args.dtype}
    engine = EngineClient({"model": str(args.model), **options})
    stopped = asyncio.Event()

    def stop() -> None:
        stopped.set()
        engine.close(Unavailable())

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if args.exit_with_parent:
        threading.Thread(target=_watch_stdin, args=(loop, stop), daemon=True).start()
    try:
        await _serve(args, listener, engine)
    except Unavailable:
        if not stopped.is_set():
            raise
    finally:
        stop()
        engine.kill(SHUTDOWN_SECONDS)


async def _serve(args: argparse.Namespace, listener: socket.socket, engine: EngineClient) -> None:
    ready = await engine.ready()
    with blaming("--model"):
        chat = ChatFormat(args.model)
    config = uvicorn.Config(
        App(engine, chat, ready, adapters_of_store()),
        http="h11",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    server = _Server(config)

    async def follow() -> None:
        await engine.gone.wait()
        server.should_exit = True

    follower = asyncio.create_task(follow())
    await server.serve(sockets=[listener])
    follower.cancel()
    await engine.call("names")  # raises what ended the generation process


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        host, port = sockets[0].getsockname()[:2]
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        print(json.dumps({"type": "listening", "url": url}, separators=(",", ":")), flush=True)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # `serve` handles them


def _watch_stdin(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    loop.call_soon_threadsafe(stop)


_THIS_MACHINE = re.compile(rb"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?", re.IGNORECASE)
"""Hosts that are answered without a key. Others are refused: a web page can point its own name to this machine."""


class ClientGone(Exception):
    """The client closed its connection."""


class App:
    """A plain ASGI application (HTTP only; lifespan is switched off) with the routes of docs/policy-server.md."""

    def __init__(self, engine: EngineClient, chat: ChatFormat, ready: Ready, fetched: AdapterCache | None) -> None:
        self._engine, self._chat, self._ready, self._key, self._fetched = engine, chat, ready, _key(), fetched
        self._numbers = count()
        self._routes: dict[str, Callable[[bytes, Receive], Awaitable[Answer]]] = {
            "POST /v1/chat/completions": self._complete,
            "POST /v1/chat/completions/render": self._render,
            "POST /v1/chat/completions/derender": self._derender,
            "POST /inference/v1/generate": self._generate,
            "GET /v1/models": self._models,
            "POST /v1/load_lora_adapter": self._load,
            "POST /v1/unload_lora_adapter": self._unload,
            "GET /health": self._health,
        }

    async def __call__(self, scope: dict, receive: Receive, send: Send) -> None:
        """ASGI's entry point."""
        try:
            status, (kind, body) = 200, await self._answer(scope, receive)
        except ClientGone:
            return
        except RequestError as error:
            status, (kind, body) = error.status, _json(_error_body(error))
        except Exception as error:  # a defect of the server must not look like a network failure
            log.exception("request failed")
            status, (kind, body) = 500, _json(_error_body(RequestError(repr(error))))
        headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
        if status >= 400:  # the rest of its body may not have been read
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: dict, receive: Receive) -> Answer:
        path, method, sent = scope["path"], scope["method"], dict(scope["headers"])
        if not self._key and not _THIS_MACHINE.fullmatch(sent.get(b"host", b"")):
            raise RequestError(
                "host: without a key only localhost and 127.0.0.1 are answered", status=HTTPStatus.FORBIDDEN
            )
        handle = self._routes.get(f"{method} {path}")
        if handle is None:
            raise NotFound(f"path {path}: no {method} there; there are: {', '.join(self._routes)}")
        if path.startswith(("/v1/", "/inference/")) and self._key:
            given = sent.get(b"authorization", b"")
            if not hmac.compare_digest(given, f"Bearer {self._key}".encode()):
                refused = f"authorization: it is not the key that is in this server's {KEY_VARIABLE}"
                raise RequestError(refused, status=HTTPStatus.UNAUTHORIZED)
        if method == "POST" and sent.get(b"content-type", b"").split(b";")[0].strip().lower() != b"application/json":
            raise RequestError("content-type: send application/json", status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        return await handle(await _body(receive), receive)

    async def _complete(self, body: bytes, receive: Receive) -> Answer:
        request = parse(ChatRequest, body)
        prompt = request.prompt_ids(self._chat)
        outcome = await self._sampled(request.in_ids(prompt), receive, field="messages")
        number = next(self._numbers)
        answer = completion(request, prompt_ids=prompt, outcome=outcome, chat=self._chat, number=number)
        return _json(answer)

    async def _render(self, body: bytes, _receive: Receive) -> Answer:
        request = parse(ChatRequest, body)
        return _json(request.in_ids(request.prompt_ids(self._chat)).model_dump())

    async def _generate(self, body: bytes, receive: Receive) -> Answer:
        outcome = await self._sampled(parse(GenerateRequest, body), receive, field="token_ids")
        return _json(generated(outcome, number=next(self._numbers)))

    async def _derender(self, body: bytes, _receive: Receive) -> Answer:
        request = parse(DerenderRequest, body)
        if (count := len(request.generate_response.choices[0].token_ids)) > self._ready.context:
            field = "generate_response.choices.0.token_ids"
            raise BadRequest(f"{field}: {count} tokens; the context holds {self._ready.context}", field)
        return _json(derendered(request, chat=self._chat, number=next(self._numbers)))

    async def _sampled(self, request: GenerateRequest, receive: Receive, *, field: str) -> Outcome:
        if request.model != BASE:
            await self._find(request.model)
        limits = {"context": self._ready.context, "vocabulary": self._ready.vocabulary}
        generation = request.generation(**limits, field=field)
        return await self._unless_gone(generation, receive)

    async def _find(self, name: str) -> None:
        """Loads an adapter from the bucket if need be. Raises NotFound, BadRequest, Unavailable."""
        try:
            await self._engine.call("find", name)
        except NotFound:
            try:
                folder = self._fetched and await asyncio.to_thread(self._fetched.find, name)
            except ValueError as error:
                raise BadRequest(f"model {name!r}: {error}", "model") from error
            except Exception as error:  # whatever boto3 raises where a bucket does not answer
                raise Unavailable(f"model {name!r}: the bucket of CAMPAIGN_STORE can't be read: {error!r}") from error
            if folder is None:
                raise
            await self._engine.call("load", (name, str(folder)))

    async def _unless_gone(self, request: GenerationRequest, receive: Receive) -> Outcome:
        """Generates, and gives up when the client does."""
        finished = asyncio.ensure_future(self._engine.generate(request))
        gone = asyncio.ensure_future(receive())
        try:
            await asyncio.wait((finished, gone), return_when=asyncio.FIRST_COMPLETED)
            if finished.done():
                return finished.result()
            raise ClientGone
        finally:
            gone.cancel()
            finished.cancel()

    async def _models(self, _body: bytes, _receive: Receive) -> Answer:
        card = {"object": "model", "created": 0, "owned_by": "campaign", "max_model_len": self._ready.context}
        models = [{"id": BASE, "root": self._ready.base_id, "parent": None, **card}]
        adapters = await self._engine.call("names")
        models += [{"id": name, "root": name, "parent": BASE, **card} for name in adapters]
        return _json({"object": "list", "data": models})

    async def _load(self, body: bytes, _receive: Receive) -> Answer:
        request = parse(LoadRequest, body)
        await self._engine.call("load", (request.lora_name, request.lora_path))
        return _text(f"Success: LoRA adapter '{request.lora_name}' added successfully.")

    async def _unload(self, body: bytes, _receive: Receive) -> Answer:
        request = parse(UnloadRequest, body)
        await self._engine.call("unload", request.lora_name)
        return _text(f"Success: LoRA adapter '{request.lora_name}' removed successfully.")

    async def _health(self, _body: bytes, _receive: Receive) -> Answer:
        if self._engine.gone.is_set():
            raise Unavailable("the generation process has ended; start the server again")
        return _text("")


def _error_body(error: RequestError) -> dict:
    """OpenAI's error object."""
    return {"error": {"message": str(error), "type": error.type, "param": error.param, "code": error.code}}


def _json(value: object) -> Answer:
    return "application/json", json.dumps(value, separators=(",", ":")).encode()


def _text(value: str) -> Answer:
    return "text/plain; charset=utf-8", value.encode()


async def _body(receive: Receive) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY_BYTES:
            refused = f"body: over {MAX_BODY_BYTES} bytes; send a shorter conversation"
            raise RequestError(refused, status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        if not message.get("more_body"):
            return b"".join(parts)
