"""Curves in the real TensorBoard, trackio and wandb (`make test-metrics`), read back with the reader of each.

Each is written by the process that campaigns use; it is killed, begun again, and shown what has changed."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("tensorboard", "trackio", "wandb")
VALUES = {"train/loss": 1 / 3, "train/reward": 0.625}
TWO = [{"step": step, "values": {tag: value * step for tag, value in VALUES.items()}} for step in (1, 2)]
LATE = {"step": 1, "values": {"held_out/success": 0.5}}
THIRD = {"step": 3, "values": {"train/loss": 0.25}}


class Writer:
    def __init__(self, out: Path, *tools: str, under: tuple[str, ...] = ()) -> None:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("WANDB_", "TRACKIO_", "HF_"))}
        named = [part for tool in tools for part in ("--tool", tool)]
        command = [*under, sys.executable, "-m", "trainer", "metrics", "--out", str(out)]
        self.process = subprocess.Popen(
            [*command, "--campaign", "demo", "--key", "0123abcd", *named],
            cwd=ROOT,
            env={**env, "HOME": str(out / "home")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def show(self, rows: list[dict[str, Any]], run: str = "ask_first") -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps({"run": run, "rows": rows}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        said, _ = self.process.communicate()
        assert (said, self.process.returncode) == ("", 0)


def read_back(tool: str, out: Path, run: str = "ask_first") -> Counter[tuple[str, int, float]]:
    """Every point, as often as it is there."""
    found: list[tuple[str, int, float]] = []
    if tool == "tensorboard":
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(out / tool / run), size_guidance={"scalars": 0})
        events.Reload()
        found = [(tag, at.step, at.value) for tag in events.Tags()["scalars"] for at in events.Scalars(tag)]
    elif tool == "trackio":
        script = (
            "import json, sys, trackio\n"
            "rows = [row for run in trackio.Api().runs('demo') if run.name == sys.argv[1]\n"
            "        for row in trackio.SQLiteStorage.get_logs('demo', run.name, run_id=run.id)]\n"
            "print(json.dumps(rows))"
        )
        command = [sys.executable, "-c", script, run]
        said = subprocess.run(
            command, env={**os.environ, "TRACKIO_DIR": str(out / tool)}, capture_output=True, check=True
        )
        for row in json.loads(said.stdout):
            found += [(tag, row["step"], value) for tag, value in row.items() if tag not in ("step", "timestamp")]
    else:
        for file in (out / tool / "wandb").glob(f"offline-run-*-{run}-*/*.wandb"):
            said = subprocess.run(
                [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(file)],
                env={**os.environ, "WANDB_ERROR_REPORTING": "false"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=True,
            )
            items = [json.loads(line).get("history", {}).get("item") for line in said.stdout.splitlines()]
            for item in filter(None, items):
                found += [(tag, item["step"], at) for tag, at in item.items() if tag != "step" and tag[0] != "_"]
    return Counter((tag, step, round(value, 5)) for tag, step, value in found)


def totals(found: Counter[tuple[str, int, float]]) -> dict[tuple[str, int], float]:
    """Where every point is there once."""
    assert max(found.values()) == 1
    return {(tag, step): value for tag, step, value in found}


def points(*rows: dict[str, Any]) -> Counter[tuple[str, int, float]]:
    return Counter((tag, row["step"], round(value, 5)) for row in rows for tag, value in row["values"].items())


@pytest.mark.parametrize("tool", TOOLS)
def test_every_point_is_there_once_after_kills_repeats_and_steps_that_were_done_again(tool, tmp_path):
    first = Writer(tmp_path, tool)
    assert first.show(TWO)["written"] == {tool: 4}
    assert first.show(TWO)["written"] == {tool: 0}
    first.process.kill()
    first.process.wait()
    second = Writer(tmp_path, tool)
    second.show(TWO)
    second.show([*TWO, THIRD, LATE])
    second.end()
    assert read_back(tool, tmp_path) == points(*TWO, THIRD, LATE)
    third = Writer(tmp_path, tool)
    assert third.show([*TWO, THIRD, LATE])["written"] == {tool: 0}
    # The second step came out otherwise, and the third has not been made yet.
    again = [TWO[0], {"step": 2, "values": {"train/loss": 9.0, "train/reward": 0.0}}]
    third.show(again)
    third.show([*TWO, LATE], run="tell+ask_first")
    third.end()
    assert read_back(tool, tmp_path) == points(*again)
    assert read_back(tool, tmp_path, "tell+ask_first") == points(*TWO, LATE)


def test_what_a_crash_has_torn_is_written_again(tmp_path):
    writer = Writer(tmp_path, "tensorboard")
    writer.show(TWO)
    writer.end()
    [file] = (tmp_path / "tensorboard" / "ask_first").iterdir()
    file.write_bytes(file.read_bytes()[:-5])
    assert sum(read_back("tensorboard", tmp_path).values()) == 2
    writer = Writer(tmp_path, "tensorboard")
    assert writer.show(TWO)["written"] == {"tensorboard": 2}
    writer.end()
    assert read_back("tensorboard", tmp_path) == points(*TWO)


def test_two_processes_do_not_write_in_one_folder(tmp_path):
    first = Writer(tmp_path, "tensorboard")
    first.show(TWO)
    said, _ = Writer(tmp_path, "tensorboard").process.communicate()
    assert "another process writes in" in json.loads(said)["problem"]
    first.end()


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_nothing_leaves_the_machine(tmp_path):
    trace = tmp_path / "trace"
    # The second process reads what is there, which wandb does with a program of its own.
    for rows in (TWO, [*TWO, THIRD]):
        under = ("strace", "-f", "-A", "-e", "trace=connect,sendto,sendmsg", "-o", str(trace))
        writer = Writer(tmp_path / "out", *TOOLS, under=under)
        assert set(writer.show(rows)["written"]) == set(TOOLS)
        writer.end()
    calls = trace.read_text()
    assert "connect(" in calls  # wandb's own service, on a local socket
    reached = re.findall(r"sa_family=AF_INET6?,.*", calls)
    assert [call for call in reached if '"127.0.0.1"' not in call and '"::1"' not in call] == []


CAMPAIGN = """preset: demo
name: demo
target: { kind: builtin, name: shop }
baseModel: { path: BASE }
metrics: [tensorboard, trackio, wandb]
rollouts: { tasks: 60, perTask: 4 }
selection: { maxCandidates: 1, passes: 4, votes: 1, rho: 0, delta: 0 }
calibration: { seeds: 6, rolloutsPerSeed: 8, meanReward: [0, 1], successRate: [0, 1], maxAllSuccess: 1, maxAllZero: 1,
  maxConstant: 1, minInformative: 0, minRewardStd: 0 }
training: { groupsPerStep: 1, groupSize: 8, steps: 6, checkpointEvery: 2 }
validation: { seeds: 6, targetTasks: 8 }
router: { tasks: 12, folds: 3 }
evaluation: { tasks: 12 }
"""


def test_a_campaign_that_is_killed_and_goes_on_has_the_curves_of_its_report(tmp_path):
    file, home = tmp_path / "demo.yaml", tmp_path / "home"
    file.write_text(CAMPAIGN.replace("BASE", os.environ.get("BASE_MODEL", str(ROOT / "models" / "base"))))
    campaign = ["node", "bin/campaign", "--home", str(home)]
    env = {**os.environ, "CAMPAIGN_METRICS_PYTHON": sys.executable}
    run = [*campaign, "run", str(file), "--exit", "--json"]
    killed = subprocess.Popen(run, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
    assert killed.stdout
    next(line for line in killed.stdout if re.search("train · step [1-5]/6", line))
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    subprocess.run(run, cwd=ROOT, env=env, check=True, capture_output=True)
    report = json.loads((home / "demo" / "report.json").read_text())
    out = home / "demo" / "metrics"
    for tool in TOOLS:
        for arm in report["arms"]:
            if arm["name"] == "union_ceiling":  # no policy of its own
                continue
            curves = totals(read_back(tool, out, arm["name"]))
            assert curves["test/success", 0] == pytest.approx(arm["successRate"]["value"], abs=1e-5)
            own = next((one for one in report["capabilities"] if one["name"] == arm["name"]), arm)
            for point in own.get("training", {}).get("rewardCurve", {}).get("points", []):
                assert curves["train/reward", point["step"]] == pytest.approx(point["reward"], abs=1e-5)
                assert ("train/grad_norm", point["step"]) in curves
            for iteration in own.get("training", {}).get("iterations", []):
                success = iteration["successRate"]["value"]
                assert curves["held_out/success", iteration["step"]] == pytest.approx(success, abs=1e-5)
        made = totals(read_back(tool, out, "all-rollouts"))
        assert max(made.values()) >= report["rollouts"]["scored"]["value"]
    again = subprocess.run(
        [*campaign, "metrics", "demo", "--to", ",".join(TOOLS), "--json"], cwd=ROOT, env=env, capture_output=True
    )
    assert json.loads(again.stdout)["written"] == dict.fromkeys(TOOLS, 0)
