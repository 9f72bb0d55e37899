"""
The HTTP front: a plain ASGI application over the engine. Invariant: every answer that is not 2xx is an OpenAI error
object, and a request that its client gave up on leaves the batch.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import count

from trainer.serve.chat import ChatFormat
from trainer.serve.engine_client import EngineClient
from trainer.serve.errors import BadRequest, MethodNotAllowed, NotFound, RequestError, TooLarge, Unavailable
from trainer.serve.generation import GenerationRequest, Outcome, Ready
from trainer.serve.metrics import exposition
from trainer.serve.protocol import (
    ChatRequest,
    LoadRequest,
    UnloadRequest,
    completion,
    parse,
)

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 8 * 1024 * 1024

Answer = tuple[str, bytes]
Receive = Callable[[], Awaitable[dict]]
Send = Callable[[dict], Awaitable[None]]


class ClientGone(Exception):
    """The client closed its connection."""


class App:
    """Routes of docs/policy-server.md."""

    def __init__(self, *, engine: EngineClient, chat: ChatFormat, ready: Ready, base_name: str) -> None:
        self._engine, self._chat, self._context = engine, chat, ready.context
        self._base, self._base_id = base_name, ready.base_id
        self._outcomes: Counter[str] = Counter()
        self._numbers = count()
        self._started = int(time.time())
        self._routes: dict[str, tuple[str, Callable[[bytes, Receive], Awaitable[Answer]]]] = {
            "/v1/chat/completions": ("POST", self._complete),
            "/v1/models": ("GET", self._models),
            "/v1/load_lora_adapter": ("POST", self._load),
            "/v1/unload_lora_adapter": ("POST", self._unload),
            "/health": ("GET", self._health),
            "/metrics": ("GET", self._metrics),
        }

    async def __call__(self, scope: dict, receive: Receive, send: Send) -> None:
        """ASGI entry point (HTTP only; lifespan is switched off)."""
        try:
            status, (kind, body) = 200, await self._answer(scope, receive)
        except ClientGone:
            return
        except RequestError as error:
            self._outcomes["error" if error.status >= 500 else "refused"] += 1
            status, kind, body = error.status, "application/json", json.dumps(error.body()).encode()
        except Exception as error:  # a bug here must not look like a network failure
            log.exception("request failed")
            status, kind, body = 500, "application/json", json.dumps(RequestError(repr(error)).body()).encode()
        headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: dict, receive: Receive) -> Answer:
        route = self._routes.get(scope["path"])
        if route is None:
            raise NotFound(f"path {scope['path']}: there is none; there are: {', '.join(self._routes)}")
        method, handle = route
        if scope["method"] != method:
            raise MethodNotAllowed(f"method {scope['method']}: {scope['path']} takes {method}")
        return await handle(await _body(receive), receive)

    async def _complete(self, body: bytes, receive: Receive) -> Answer:
        request = parse(ChatRequest, body)
        if request.model != self._base:
            await self._engine.call("find", request.model)
        prompt = self._chat.prompt_ids(request.template_messages(), request.offered_tools())
        room = self._context - len(prompt)
        if room < 1:
            held = f"the context holds {self._context} and a sample needs one; send fewer"
            raise BadRequest(
                f"messages: {len(prompt)} tokens, {held}", param="messages", code="context_length_exceeded"
            )
        generation = GenerationRequest(
            prompt=prompt,
            model=request.model,
            max_tokens=min(request.token_limit or room, room),
            temperature=request.temperature,
            top_p=request.top_p,
            seed=request.seed,
            likeliest=request.top_logprobs or 0,
        )
        outcome = await self._unless_gone(generation, receive)
        answer = completion(request, prompt_ids=prompt, outcome=outcome, chat=self._chat, number=next(self._numbers))
        self._outcomes[answer["choices"][0]["finish_reason"]] += 1
        return _json(answer)

    async def _unless_gone(self, request: GenerationRequest, receive: Receive) -> Outcome:
        """Generates, and gives up when the client does."""
        finished = asyncio.ensure_future(self._engine.generate(request))
        gone = asyncio.ensure_future(receive())
        try:
            await asyncio.wait((finished, gone), return_when=asyncio.FIRST_COMPLETED)
            if finished.done():
                return finished.result()
            self._outcomes["cancelled"] += 1
            raise ClientGone
        finally:
            gone.cancel()
            finished.cancel()

    async def _models(self, _body: bytes, _receive: Receive) -> Answer:
        card = {"object": "model", "created": self._started, "owned_by": "campaign", "max_model_len": self._context}
        models = [{"id": self._base, "root": self._base_id, "parent": None, **card}]
        adapters = await self._engine.call("names")
        models += [{"id": name, "root": name, "parent": self._base, **card} for name in adapters]
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
        if not self._engine.alive:
            raise Unavailable("the generation process has ended; start the server again")
        return _text("")

    async def _metrics(self, _body: bytes, _receive: Receive) -> Answer:
        counters, gauges = await self._engine.call("metrics")
        return _text(exposition(requests=self._outcomes, counters=counters, gauges=gauges))


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
            raise TooLarge(f"body: over {MAX_BODY_BYTES} bytes; send a shorter conversation")
        if not message.get("more_body"):
            return b"".join(parts)
