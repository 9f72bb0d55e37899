"""A server of OpenEnv's: that of a URL, or one that is started here and ends with this process."""

import os
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import httpx
from openenv.core.generic_client import GenericEnvClient
from websockets.protocol import State

# Of a server that lists no tasks a task is a seed; those of the splits are far apart.
FIRST_SEED = {"train": 0, "test": 1_000_000}
STARTING_SECONDS = 120
# The one tool of an environment whose actions are more than a text.
ACT = "act"


class Session(GenericEnvClient):
    """OpenEnv's client connects again by itself, to a session that knows nothing of the episode; this one does not."""

    begun = False

    async def _ensure_connected(self) -> None:
        if self.begun and (self._ws is None or self._ws.state is not State.OPEN):
            raise ConnectionError("the connection was lost, and with it the episode")
        await super()._ensure_connected()


class Server:
    """What it offers, once it answers: `metadata`, `tools`, `words`, and `tasks`, the arguments of `reset` by split."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._process = None if options.get("url") else self._start()
        self._http = httpx.Client(base_url=options["url"], timeout=options["timeout"])
        self._wait()
        if self._process is not None:
            # Whoever started this process starts it again, and with it a new server.
            threading.Thread(target=self._end_with, args=(self._process,), daemon=True).start()
        self.metadata = self._get("/metadata")
        self.prompt = options.get("prompt") or self.metadata["description"]
        action = self._get("/schema")["action"]
        fields = {name: of for name, of in action.get("properties", {}).items() if name != "metadata"}
        self.has_tools = {"tool_name", "arguments"} <= fields.keys()
        self.tools = self._tools() if self.has_tools else []
        # Which action, with which field, the agent's words are: a tool that is named, or one text that is all of it.
        self.words = self._words() if self.has_tools else text_alone(ACT, fields)
        if not self.has_tools and self.words is None:
            parameters = {**action, "type": "object", "properties": fields}
            self.tools = [{"name": ACT, "description": action.get("description", "Acts."), "parameters": parameters}]
        self.tasks = self._listed() or {
            split: [{"seed": first + n} for n in range(options[f"{split}Tasks"])] for split, first in FIRST_SEED.items()
        }

    def session(self) -> Any:
        return Session(base_url=self._options["url"], message_timeout_s=self._options["timeout"]).sync()

    def _start(self) -> "subprocess.Popen[bytes]":
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._options["url"] = f"http://127.0.0.1:{port}"
        words = [word.replace("{port}", str(port)) for word in self._options["command"]]
        # Its output is not the protocol's: stdout is stderr here.
        return subprocess.Popen(words, cwd=self._options["cwd"], stdin=subprocess.DEVNULL)

    def _end_with(self, server: "subprocess.Popen[bytes]") -> None:
        os._exit(server.wait() or 1)

    def _wait(self) -> None:
        url, end = self._options["url"], time.monotonic() + STARTING_SECONDS
        while True:
            try:
                self._get("/health")
                return
            except httpx.HTTPError as error:
                if self._process is None:
                    sys.exit(f"target.url: {url} is no running server of OpenEnv's ({error}); start it")
                if self._process.poll() is not None or time.monotonic() > end:
                    sys.exit(f"target.command: it serves nothing at {url} ({error}); run it by hand")
            time.sleep(0.2)

    def _get(self, path: str) -> Any:
        return self._http.get(path).raise_for_status().json()

    def _tools(self) -> list[dict[str, Any]]:
        with self.session() as session:
            listed = session.step({"type": "list_tools"}).observation["tools"]
        return [{"name": t["name"], "description": t["description"], "parameters": t["input_schema"]} for t in listed]

    def _words(self) -> tuple[str, str] | None:
        name = self._options.get("words")
        if name is None:
            return None
        tool = next((tool for tool in self.tools if tool["name"] == name), None)
        found = tool and text_alone(name, tool["parameters"].get("properties", {}))
        if not found:
            known = ", ".join(tool["name"] for tool in self.tools)
            sys.exit(f"target.words: {name} is no tool that takes one text alone; there are {known}")
        return found

    def _listed(self) -> dict[str, list[dict[str, Any]]] | None:
        """By the task API, where it has one. Without `test`, `validation` is it, else a fifth of the one split."""
        answer = self._http.get("/list_environments")
        splits = answer.is_success and self._http.get(f"/{answer.json()[0]}/splits")
        if not splits or not splits.is_success:
            return None
        names = {split["type"]: split["name"] for split in reversed(splits.json())}
        train = next((names[kind] for kind in ("train", "validation", "test") if kind in names), None)
        test = next((names[kind] for kind in ("test", "validation") if names.get(kind, train) != train), None)

        def tasks(split: str | None) -> list[dict[str, Any]]:
            if split is None:
                return []
            asked = self._http.post(f"/{answer.json()[0]}/num_tasks", json={"split": split}).raise_for_status()
            return [{"split": split, "index": n} for n in range(asked.json()["num_tasks"])]

        ours = tasks(train)
        kept = len(ours) if test else len(ours) * 4 // 5
        return {"train": ours[:kept], "test": tasks(test) or ours[kept:]}


def text_alone(action: str, fields: dict[str, Any]) -> tuple[str, str] | None:
    [(name, schema)] = fields.items() if len(fields) == 1 else [("", {})]
    return (action, name) if schema.get("type") == "string" and "enum" not in schema else None
