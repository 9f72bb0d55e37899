"""A Tinker server for tests: a language model of one matrix, W + alpha / r x B A, whose gradients are written by hand.
Its bodies are those that SkyRL 0.4 was seen to answer (recorded.json); what servers differ in can be set."""

import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from tinker.proto import tinker_public_pb2 as pb

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("recorded.json").read_text())
VOCABULARY = 24
MODULE = "model.layers.0.self_attn.q_proj"
BASE = np.random.default_rng(0).normal(0, 1, (VOCABULARY, VOCABULARY))


@dataclass
class Lora:
    """`moments` are Adam's, of A and B."""

    a: np.ndarray
    b: np.ndarray
    moments: list[np.ndarray] = field(default_factory=list)
    steps: int = 0
    rows: list[tuple[int, np.ndarray, np.ndarray]] = field(default_factory=list)
    """Since the last step: the length of each, and what it adds to the gradients of A and B."""


@dataclass
class Fake:
    reduction: str = "sum"
    clips: bool = False
    alpha: float = 32.0
    module: str = MODULE
    loads_nothing: bool = False
    """Loads nothing from the lost files of a state, like SkyRL's JAX backend."""
    url: str = ""
    models: dict[str, Lora] = field(default_factory=dict)
    saved: dict[str, Lora] = field(default_factory=dict)
    exported: dict[str, bytes] = field(default_factory=dict)
    results: dict[str, tuple[int, Any]] = field(default_factory=dict)
    made: int = 0

    def scale(self, lora: Lora) -> float:
        return self.alpha / len(lora.a)

    def passed(self, body: bytes, lora: Lora) -> bytes:
        """A forward pass, with its gradient unless the request says otherwise. Returns log-probs."""
        request = pb.ForwardBackwardRequest.FromString(body)
        assert request.loss_fn == "importance_sampling" and not request.loss_fn_config
        logprobs = []
        for datum in request.data:
            inputs = {name: datum.loss_fn_inputs[name].dense for name in datum.loss_fn_inputs}
            assert set(inputs) == {"target_tokens", "logprobs", "advantages"}
            ids = np.concatenate([np.frombuffer(chunk.encoded_text.tokens, np.int32) for chunk in datum.model_input])
            targets = np.frombuffer(inputs["target_tokens"], np.int64)
            old, advantages = (np.frombuffer(inputs[name], np.float32) for name in ("logprobs", "advantages"))
            logits = (BASE + self.scale(lora) * lora.b @ lora.a)[:, ids]
            logs = logits - np.log(np.exp(logits).sum(0))
            own = logs[targets, range(len(targets))]
            logprobs.append(own.astype(np.float32))
            if request.forward_only:
                continue
            factor = np.exp(own - old) * advantages
            of_logits = factor * np.exp(logs)
            of_logits[targets, range(len(targets))] -= factor
            weight = np.zeros_like(BASE)
            np.add.at(weight.T, ids, of_logits.T)
            gradients = self.scale(lora) * lora.b.T @ weight, self.scale(lora) * weight @ lora.a.T
            lora.rows.append((len(ids), *gradients))
        out = pb.ForwardBackwardOutput(loss_fn_output_type="scalar")
        record = out.loss_fn_outputs.add()
        record.num_datums = len(logprobs)
        offsets = np.cumsum([0, *(one.nbytes for one in logprobs)]).astype(np.int64).tobytes()
        data = b"".join(one.tobytes() for one in logprobs)
        record.fields["logprobs"].CopyFrom(pb.BatchedTensor(data=data, offsets=offsets, dtype=pb.DTYPE_FLOAT32))
        return out.SerializeToString()

    def step(self, lora: Lora, adam: dict[str, float]) -> dict[str, float]:
        rows, lora.rows = lora.rows, []
        tokens = sum(length for length, *_ in rows)
        shares = {
            "sum": lambda length: 1,
            "mean of rows": lambda length: 1 / len(rows),
            "mean of rows' means": lambda length: 1 / len(rows) / length,
            "mean of tokens": lambda length: 1 / tokens,
            "unheard of": lambda length: 3.3,
        }
        share = shares[self.reduction]
        gradients = [sum(share(length) * row[n] for length, *row in rows) for n in (0, 1)]
        norm = float(np.sqrt(sum((one**2).sum() for one in gradients)))
        if self.clips and adam["grad_clip_norm"] > 0:
            gradients = [one * min(1, adam["grad_clip_norm"] / norm) for one in gradients]
        lora.steps += 1
        lora.moments = lora.moments or [np.zeros_like(one) for one in (*gradients, *gradients)]
        for n, (weight, gradient) in enumerate(zip((lora.a, lora.b), gradients, strict=True)):
            for moment, beta, value in ((n, "beta1", gradient), (n + 2, "beta2", gradient**2)):
                lora.moments[moment] = adam[beta] * lora.moments[moment] + (1 - adam[beta]) * value
            first = lora.moments[n] / (1 - adam["beta1"] ** lora.steps)
            second = lora.moments[n + 2] / (1 - adam["beta2"] ** lora.steps)
            weight -= adam["learning_rate"] * first / (np.sqrt(second) + adam["eps"])
        return {"skyrl.ai/grad_norm": norm, "skyrl.ai/learning_rate": adam["learning_rate"]}

    def archive(self, lora: Lora) -> bytes:
        tensors = {"A": lora.a.astype(np.float32), "B": lora.b.astype(np.float32)}
        header, data = {}, b""
        for name, tensor in tensors.items():
            entry = {
                "dtype": "F32",
                "shape": list(tensor.shape),
                "data_offsets": [len(data), len(data) + tensor.nbytes],
            }
            header[f"base_model.model.{self.module}.lora_{name}.weight"] = entry
            data += tensor.tobytes()
        head = json.dumps(header).encode()
        config = RECORDED["adapter_config.json"] | {"r": len(lora.a), "lora_alpha": self.alpha}
        files = {
            "adapter_config.json": json.dumps(config).encode(),
            "adapter_model.safetensors": len(head).to_bytes(8, "little") + head + data,
        }
        with io.BytesIO() as out:
            with tarfile.open(fileobj=out, mode="w:gz") as tar:
                for name, content in files.items():
                    info = tarfile.TarInfo(f"/{name}")
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
            return out.getvalue()

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """To a POST of JSON."""
        recorded = deepcopy(RECORDED.get(f"POST {path}", RECORDED["POST /api/v1/client/dynamic_config 404"]))
        status, answer = recorded["status"], recorded["body"]
        model = body.get("model_id")
        match path.removeprefix("/api/v1/"):
            case "create_model":
                rank, seed = body["lora_config"]["rank"], body["lora_config"].get("seed", 0)
                model = f"model_{len(self.models)}"
                draw = np.random.default_rng(seed)
                self.models[model] = Lora(draw.normal(0, 0.2, (rank, VOCABULARY)), np.zeros((VOCABULARY, rank)))
                result = RECORDED["POST /api/v1/retrieve_future create_model"]["body"] | {"model_id": model}
                answer |= {"model_id": model}
            case "save_weights":
                state = f"tinker://{model}/weights/{body['path']}"
                self.saved[state] = deepcopy(self.models[model])
                result = RECORDED["POST /api/v1/retrieve_future save_weights"]["body"] | {"path": state}
            case "weights_info":
                if body["tinker_path"] not in self.saved:
                    lost = RECORDED["POST /api/v1/weights_info 404"]
                    return lost["status"], lost["body"]
                return status, answer | {"lora_rank": len(self.saved[body["tinker_path"]].a)}
            case "load_weights":
                assert body["optimizer"]
                if not self.loads_nothing:
                    self.models[model] = deepcopy(self.saved[body["path"]])
                result = RECORDED["POST /api/v1/retrieve_future load_weights"]["body"]
            case "save_weights_for_sampler":
                self.exported[f"{model}/{body['path']}"] = self.archive(self.models[model])
                path = f"tinker://{model}/{body['path']}"
                result = RECORDED["POST /api/v1/retrieve_future save_weights_for_sampler"]["body"] | {"path": path}
            case "optim_step":
                result = {"metrics": self.step(self.models[model], body["adam_params"])}
            case "unload_model":
                self.models[model] = None  # its id is not given again
                return status, answer | {"model_id": model}
            case "retrieve_future":
                return self.results[body["request_id"]]
            case _:
                return status, answer
        return status, answer | self.future(result)

    def future(self, result: Any) -> dict[str, str]:
        self.made += 1
        self.results[str(self.made)] = 200, result
        return {"request_id": str(self.made)}


@contextmanager
def serving(fake: Fake) -> Iterator[Fake]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def say(self, status: int, body: Any, **headers: str) -> None:
            kind = "application/x-protobuf" if isinstance(body, bytes) else "application/json"
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"content-type": kind, "content-length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path != "/api/v1/forward_backward":
                return self.say(*fake.answer(self.path, json.loads(body or b"{}")))
            if self.headers.get("content-encoding") == "zstd":
                body = zstandard.ZstdDecompressor().decompress(body)
            lora = fake.models[pb.ForwardBackwardRequest.FromString(body).model_id]
            recorded = RECORDED["POST /api/v1/forward_backward"]
            self.say(recorded["status"], recorded["body"] | fake.future(fake.passed(body, lora)))

        def do_GET(self) -> None:
            parts = self.path.split("/")
            if self.path.endswith("/archive"):
                self.say(RECORDED["GET archive"]["status"], {}, location=f"{fake.url}{self.path[:-7]}download")
            elif self.path.endswith("/download"):
                self.say(200, fake.exported[f"{parts[4]}/{parts[6]}"])
            else:
                recorded = RECORDED[f"GET {self.path}"]
                self.say(recorded["status"], recorded["body"])

        def do_DELETE(self) -> None:
            _, _, _, _, model, _, kind, name = self.path.split("/")
            if kind == "weights":
                fake.saved.pop(f"tinker://{model}/{kind}/{name}", None)
            self.send_response(204)
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
