"""Stdout holds the protocol alone, even if a benchmark prints; every request gets one answer."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SERVER = """
from bridges.rpc import BadParams, protocol_streams, serve

def fail(params):
    raise ValueError("no data")

def refuse(params):
    raise BadParams("params.task: unknown")

def shout(params):
    print("loading data")
    import os
    os.write(1, b"from below\\n")
    os.system("echo from a child")
    return {"stdin": input() if params.get("read") else ""}

with protocol_streams() as (requests, answers):
    serve({"fail": fail, "refuse": refuse, "shout": shout}, requests, answers)
"""


def ask(*lines: str) -> tuple[list[dict], str]:
    done = subprocess.run(
        [sys.executable, "-c", SERVER],
        input="".join(f"{line}\n" for line in lines),
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def request(number: int, method: str, **params) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def test_prints_go_to_stderr():
    answers, stderr = ask(request(1, "shout"), request(2, "shout"))
    assert [answer["id"] for answer in answers] == [1, 2]
    assert all(answer["result"] == {"stdin": ""} for answer in answers)
    assert {"loading data", "from below", "from a child"} <= set(stderr.splitlines())


def test_a_benchmark_cannot_read_the_requests():
    answers, _ = ask(request(1, "shout", read=True), request(2, "shout"))
    assert "EOFError" in answers[0]["error"]["message"]
    assert "result" in answers[1]


def test_errors_say_whose_they_are():
    answers, _ = ask("no json", "{}", request(3, "nothing"), request(4, "fail"), request(5, "refuse"))
    assert [answer["error"]["code"] for answer in answers] == [-32700, -32600, -32601, -32000, -32602]
    assert answers[3]["error"]["message"] == "ValueError: no data"
