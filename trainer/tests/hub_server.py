"""A model hub on this machine, as far as huggingface_hub asks one for a model: `python -m trainer.tests.hub_server DIR`
serves the files of a folder as any model, and prints its URL."""

import hashlib
import json
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlparse

COMMIT = "c0ffee" + 34 * "0"


class HubServer(ThreadingHTTPServer):
    """`send(handler, body)` sends the body of weights; `requests` holds method, file and range of each request."""

    daemon_threads = True

    def __init__(self, folder: Path, license: str | None = "apache-2.0") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder, self.license = folder, license
        self.requests: list[tuple[str, str, str | None]] = []
        self.send: Callable[[BaseHTTPRequestHandler, bytes], None] = lambda handler, body: handler.wfile.write(body)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HubServer

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = urlparse(self.path).path
        if path.startswith("/api/models/"):
            known = path.endswith(("/revision/main", f"/revision/{COMMIT}")) and "/missing/" not in path
            code = "RevisionNotFound" if "/missing/" not in path else "RepoNotFound"
            return self._json(self._info()) if known else self._json({"error": code}, 404, {"X-Error-Code": code})
        file = self.server.folder / path.rsplit("/", 1)[-1]
        if "/resolve/" in path:
            self.server.requests.append((self.command, file.name, self.headers.get("Range")))
        if not file.is_file():
            return self._json({"error": "no entry"}, 404, {"X-Error-Code": "EntryNotFound"})
        body = file.read_bytes()
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha256(body).hexdigest()}"', "Accept-Ranges": "bytes"}
        start = 0
        if wanted := self.headers.get("Range"):
            start = int(wanted.removeprefix("bytes=").partition("-")[0])
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        self._head(206 if start else 200, len(body) - start, headers)
        if self.command == "GET":
            (self.server.send if file.suffix == ".safetensors" else _plain)(self, body[start:])

    def _info(self) -> dict:
        siblings = []
        for file in sorted(self.server.folder.iterdir()):
            body = file.read_bytes()
            lfs = {"sha256": hashlib.sha256(body).hexdigest(), "size": len(body), "pointerSize": 130}
            is_large = file.suffix == ".safetensors"
            siblings.append({"rfilename": file.name, "size": len(body), **({"lfs": lfs} if is_large else {})})
        card = {"cardData": {"license": self.server.license}} if self.server.license else {}
        return {"id": "owner/tiny", "sha": COMMIT, "siblings": siblings, **card}

    def _json(self, value: dict, status: int = 200, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(value).encode()
        self._head(status, len(body), headers or {})
        if self.command == "GET":
            self.wfile.write(body)

    def _head(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def _plain(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    handler.wfile.write(body)


if __name__ == "__main__":
    server = HubServer(Path(sys.argv[1]))
    print(server.url, flush=True)
    server.serve_forever()
