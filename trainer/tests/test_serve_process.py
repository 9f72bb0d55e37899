"""The policy server as a process: how it starts, how it ends, and what keeps it from either."""

import signal
import socket
import subprocess
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import httpx
import pytest

from trainer.__main__ import main
from trainer.tests.serving import ask, running_server, start_server


@pytest.mark.parametrize("how", [signal.SIGTERM, "stdin"])
def test_a_server_that_is_stopped_answers_503_and_ends_with_0(tiny_model_dir, how):
    with running_server(tiny_model_dir, "--max-batch", "1") as (process, url):
        # One row and many long requests: most of them are still waiting when the server is stopped.
        with ThreadPoolExecutor(40) as pool:
            answers = [pool.submit(ask, url, seed=n) for n in range(40)]
            wait(answers, return_when=FIRST_COMPLETED)
            process.stdin.close() if how == "stdin" else process.send_signal(how)
            codes = {answer.result().status_code if not answer.exception() else "refused" for answer in answers}
        assert process.wait(20) == 0
        assert process.stdout.read() == "", "stdout carries the listening line alone"
    assert 503 in codes and codes <= {200, 503, "refused"}


def children_of(process: subprocess.Popen[str]) -> list[str]:
    return subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()


def test_a_server_that_is_stopped_while_it_loads_ends_with_0(tiny_model_dir):
    process = start_server("--model", str(tiny_model_dir), "--port", "0")
    while not (children := children_of(process)):
        time.sleep(0.01)
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0 and out == "" and "Traceback" not in err
    assert subprocess.run(["kill", "-0", children[0]], capture_output=True).returncode != 0


def test_a_dead_generation_process_is_reported_and_ends_the_server(tiny_model_dir):
    with running_server(tiny_model_dir) as (process, url):
        [child] = children_of(process)
        assert httpx.get(f"{url}/health").status_code == 200
        subprocess.run(["kill", "-9", child], check=True)
        assert process.wait(20) == 1
        said = process.stderr.read()
        assert "generation process was killed" in said and "lower policyServer.maxBatch" in said


def test_a_startup_error_is_one_line(tiny_model_dir, tmp_path, capfd):
    def failure(*options: str) -> str:
        assert main(["serve", *options]) == 1
        out, err = capfd.readouterr()
        assert out == "" and "Traceback" not in err
        return err.strip().splitlines()[-1]

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        line = failure("--model", str(tiny_model_dir), "--port", port)
        assert f"--port {port}" in line and "in use" in line
    line = failure("--model", str(tmp_path / "none"))
    assert "make base-model" in line and str(tmp_path / "none") in line


def test_a_server_with_a_key_requires_it_and_agrees_on_a_seed(tiny_model_dir, url, monkeypatch, capfd):
    options = ("serve", "--model", str(tiny_model_dir), "--port", "0", "--host", "0.0.0.0")
    assert main(list(options)) == 1
    assert "--host 0.0.0.0: any client could load files; set POLICY_SERVER_API_KEY" in capfd.readouterr().err
    monkeypatch.setenv("POLICY_SERVER_API_KEY", "secret")
    with running_server(tiny_model_dir, "--host", "0.0.0.0") as (_, everywhere):
        other = everywhere.replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(f"{other}/health").status_code == 200
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            refused = httpx.get(f"{other}/v1/models", headers=headers)
            assert refused.status_code == 401 and "POLICY_SERVER_API_KEY" in refused.json()["error"]["message"]
        known = {"Authorization": "Bearer secret"}
        assert httpx.get(f"{other}/v1/models", headers=known).status_code == 200
        for seed in range(3):
            answers = [ask(one, seed=seed, max_tokens=20, headers=known).json() for one in (url, other)]
            first, second = (answer["choices"][0]["token_ids"] for answer in answers)
            assert first == second
