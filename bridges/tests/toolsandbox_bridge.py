"""The bridge under test, in this process; and ToolSandbox's own run, in another, on the real clock."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from bridges.rpc import Methods, answer
from bridges.toolsandbox.__main__ import environment
from toolsandbox_script import after, filled, results_in

FOLDER = os.environ.get("TOOLSANDBOX")
needs_folder = pytest.mark.skipif(FOLDER is None, reason="TOOLSANDBOX names no checkout of ToolSandbox")


@cache
def methods() -> Methods:
    return environment(Path(FOLDER).resolve(), 0.0)


def ask(method, **params):
    response = answer(methods(), json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    if "error" in response:
        raise RuntimeError(response["error"]["message"])
    return response["result"]


def official(jobs):
    run = [sys.executable, Path(__file__).with_name("toolsandbox_official.py"), FOLDER]
    done = subprocess.run(run, input=json.dumps(jobs), capture_output=True, text=True, env={**os.environ, "TZ": "UTC"})
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


class Played:
    """One conversation by script, a request at a time, so that several can take turns."""

    def __init__(self, job, seed=1):
        begun = ask("reset", task={"id": job["scenario"], "seed": seed})
        self.episode, self.tools, self.messages = begun["episode"], begun["tools"], begun["messages"]
        self._agent, self._user = iter(job["agent"]), iter(job["user"])
        self._to_hear, self._heard = None, []
        self.prompts, self.user_prompts, self.log = [], [], []
        self.reason = None

    def step(self):
        if self._to_hear is None:
            self.prompts.append({"messages": [*self.messages], "tools": self.tools})
            said = filled(after(self._agent), results_in(self.messages))
        else:
            self._heard += self._to_hear
            self.user_prompts.append([*self._heard])
            text = next(self._user, None)
            said = {"content": "", "toolCalls": [{"name": "end_conversation", "arguments": {}}]}
            said = said if text is None else {"content": text}
            self._heard.append({"role": "assistant", "content": said["content"]})
        role = "assistant" if self._to_hear is None else "user"
        calls = [{"id": f"call_{len(self.log)}_{n}", **call} for n, call in enumerate(said.get("toolCalls", []))]
        message = {"role": role, **said, **({"toolCalls": calls} if calls else {})}
        self.take(message)

    def take(self, message):
        self.log.append(message)
        result = ask("step", episode=self.episode, message=message)
        self._to_hear = result.get("user")
        self.messages += [message, *result["messages"]]
        if result["done"]:
            self.reason = result["stopReason"]

    def play(self):
        while self.reason is None:
            self.step()
        return self

    def evaluate(self):
        return ask("evaluate", episode=self.episode, reason=self.reason)
