"""Writes curves to TensorBoard, trackio and Weights & Biases. What is written is a view of what the campaign's store
has: stdin brings whole curves again and again, a line each, and what a tool holds already is not written twice.

Invariants: after a line a tool holds each of its points once, whoever was killed before, as the tool's own reader
tells; one process writes in a folder at a time; a tool that fails ends for itself, and is told of once. Nothing
leaves the machine unless the tool's own environment variables say so."""

import argparse
import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Points = dict[tuple[str, int], float]
Row = tuple[int, dict[str, float]]

OFFLINE = {
    "WANDB_MODE": "offline",
    "WANDB_ERROR_REPORTING": "false",
    "WANDB_SILENT": "true",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
}
"""What holds unless the user has set the variable."""


class Tool:
    """One of the tools, as all of them are used. `out` is its own folder."""

    can_clear = True
    """Whether a run can be begun anew: what has been uploaded can't."""
    can_go_on = True
    """Whether a process can add to a run that another one has begun."""

    def __init__(self, *, out: Path, campaign: str, key: str) -> None:
        self.out, self.campaign, self.key = out, campaign, key

    def kept(self, value: float) -> float:
        """A value as the tool holds it."""
        return value

    def read(self, run: str) -> Points:
        """All points of a run that are there, by the tool's own reader."""
        raise NotImplementedError

    def add(self, run: str, rows: list[Row]) -> None:
        raise NotImplementedError

    def clear(self, run: str) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is written any more."""


class TensorBoard(Tool):
    """A folder of event files for each run."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._accumulator, self._event, self._summary, self._writer = EventAccumulator, Event, Summary, EventFileWriter
        self._open: dict[str, Any] = {}

    def kept(self, value: float) -> float:
        return struct.unpack("f", struct.pack("f", value))[0]

    def read(self, run: str) -> Points:
        if not (self.out / run).is_dir():
            return {}
        found = self._accumulator(str(self.out / run), size_guidance={"scalars": 0}, purge_orphaned_data=False)
        found.Reload()
        return {(tag, at.step): at.value for tag in found.Tags()["scalars"] for at in found.Scalars(tag)}

    def add(self, run: str, rows: list[Row]) -> None:
        writer = self._open.get(run) or self._open.setdefault(run, self._writer(str(self.out / run)))
        for step, values in rows:
            of = [self._summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
            writer.add_event(self._event(wall_time=time.time(), step=step, summary=self._summary(value=of)))
        writer.flush()

    def clear(self, run: str) -> None:
        if writer := self._open.pop(run, None):
            writer.close()
        shutil.rmtree(self.out / run, ignore_errors=True)

    def close(self) -> None:
        for writer in self._open.values():
            writer.close()


class Trackio(Tool):
    """A local SQLite file, whose project is the campaign; `trackio sync` uploads it."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        os.environ.setdefault("TRACKIO_DIR", str(self.out))
        for name in ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL"):  # it would upload, and could not tell what is there
            os.environ.pop(name, None)
        import trackio

        self._trackio, self._storage = trackio, trackio.SQLiteStorage

    def _known(self, run: str) -> list[Any]:
        if not self._storage.get_project_db_path(self.campaign).exists():
            return []
        return [one for one in self._trackio.Api().runs(self.campaign) if one.name == run]

    def read(self, run: str) -> Points:
        rows = [row for one in self._known(run) for row in self._storage.get_logs(self.campaign, run, run_id=one.id)]
        return {
            (tag, row["step"]): value for row in rows for tag, value in row.items() if tag not in ("step", "timestamp")
        }

    def add(self, run: str, rows: list[Row]) -> None:
        started = self._trackio.init(
            project=self.campaign, name=run, resume="allow", embed=False, auto_log_gpu=False, auto_log_cpu=False
        )
        for step, values in rows:
            started.log(values, step=step)
        self._trackio.finish()

    def clear(self, run: str) -> None:
        for one in self._known(run):
            one.delete()


class Wandb(Tool):
    """A run each, in the campaign's project and group. A point of an earlier step may come late: `step` is a metric, by
    which all others are drawn."""

    can_go_on = False

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        import wandb

        self._wandb = wandb
        self._open: dict[str, Any] = {}
        self._folder = Path(os.environ.get("WANDB_DIR", self.out))
        self.can_clear = os.environ["WANDB_MODE"] == "offline"
        self.can_go_on = not self.can_clear

    def _id(self, run: str) -> str:
        """The same for the same run of the same store: a second upload is of the same run."""
        return f"{run}-{self.key}"

    def _folders(self, run: str) -> list[Path]:
        return sorted((self._folder / "wandb").glob(f"*run-*-{self._id(run)}"))

    def read(self, run: str) -> Points:
        points: Points = {}
        for file in (file for folder in self._folders(run) for file in folder.glob("*.wandb")):
            command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(file)]
            said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stdout
            for record in (json.loads(line) for line in said.splitlines() if line.startswith("{")):
                item = record.get("history", {}).get("item", {})
                own = {tag: value for tag, value in item.items() if not tag.startswith("_") and tag != "step"}
                points.update({(tag, int(item["step"])): value for tag, value in own.items()})
        return points

    def add(self, run: str, rows: list[Row]) -> None:
        started = self._open.get(run) or self._open.setdefault(run, self._start(run))
        for step, values in rows:
            started.log({"step": step, **values})

    def _start(self, run: str) -> Any:
        settings = self._wandb.Settings(
            root_dir=str(self._folder),
            console="off",
            disable_git=True,
            disable_code=True,
            x_disable_stats=True,
            x_disable_meta=True,
            x_disable_machine_info=True,
            x_save_requirements=False,
        )
        project = os.environ.get("WANDB_PROJECT", self.campaign)
        started = self._wandb.init(
            project=project,
            group=self.campaign,
            name=run,
            id=self._id(run),
            resume="allow" if self.can_go_on else None,
            reinit="create_new",
            settings=settings,
        )
        started.define_metric("step", hidden=True)
        started.define_metric("*", step_metric="step")
        return started

    def clear(self, run: str) -> None:
        if started := self._open.pop(run, None):
            started.finish()
        for folder in self._folders(run):
            shutil.rmtree(folder)

    def close(self) -> None:
        for started in self._open.values():
            started.finish()


TOOLS: dict[str, type[Tool]] = {"tensorboard": TensorBoard, "trackio": Trackio, "wandb": Wandb}


class Mirror:
    """Brings one tool to what the curves are."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self._held: dict[str, Points] = {}
        self._begun: set[str] = set()

    def show(self, run: str, rows: list[Row]) -> int:
        """Writes what the tool lacks of a run, and all of a run that has become another one. Returns the points."""
        tool = self.tool
        if run not in self._held:
            self._held[run] = tool.read(run)
        held = self._held[run]
        wanted: Points = {(tag, step): tool.kept(value) for step, values in rows for tag, value in values.items()}
        fresh = {point for point in wanted if point not in held}
        goes_on = tool.can_go_on or run in self._begun or not held
        if tool.can_clear and (_differ(held, wanted) or (fresh and not goes_on)):
            tool.clear(run)
            held.clear()
            fresh = set(wanted)
        new = [(step, {tag: value for tag, value in values.items() if (tag, step) in fresh}) for step, values in rows]
        new = [(step, values) for step, values in new if values]
        if new:
            tool.add(run, new)
            self._begun.add(run)
            held.update({point: wanted[point] for point in fresh})
        return len(fresh)


def _differ(held: Points, wanted: Points) -> bool:
    """Whether a step was done again and came out otherwise, or is not there any more. A curve may have been thinned."""
    last: dict[str, int] = {}
    for tag, step in wanted:
        last[tag] = max(step, last.get(tag, step))
    return any(
        wanted.get((tag, step), value) != value or step > last.get(tag, step) for (tag, step), value in held.items()
    )


def write(tools: dict[str, Callable[[], Tool]], lines: Iterable[str], tell: Callable[[dict[str, Any]], None]) -> None:
    """Shows every line to all tools, and tells after each what came of it."""
    mirrors: dict[str, Mirror] = {}

    def attempt(name: str, do: Callable[..., Any], *given: Any) -> Any:
        try:
            return do(*given)
        except Exception as error:
            mirrors.pop(name, None)
            tell({"tool": name, "problem": f"{type(error).__name__}: {error}".replace("\n", " ")[:500]})
            return None

    for name, make in tools.items():
        if tool := attempt(name, make):
            mirrors[name] = Mirror(tool)
    for line in lines:
        curve = json.loads(line)
        rows = [(row["step"], row["values"]) for row in curve["rows"]]
        counts = {name: attempt(name, mirror.show, curve["run"], rows) for name, mirror in list(mirrors.items())}
        tell({"run": curve["run"], "written": {name: count for name, count in counts.items() if count is not None}})
    for name, mirror in list(mirrors.items()):
        attempt(name, mirror.tool.close)


def main(argv: list[str]) -> int:
    """Reads curves on stdin, a line `{"run": "..", "rows": [{"step": 1, "values": {"train/loss": 0.1}}]}` each."""
    parser = argparse.ArgumentParser(prog="trainer metrics", description="curves for TensorBoard, trackio and wandb")
    parser.add_argument("--out", required=True, type=Path, help="folder; each tool has one of its own in it")
    parser.add_argument("--campaign", required=True)
    parser.add_argument("--key", required=True, help="what tells this campaign from others of its name")
    parser.add_argument("--tool", required=True, action="append", choices=TOOLS)
    given = parser.parse_args(argv)
    os.nice(10)  # whatever it takes, the campaign comes first
    for name, value in OFFLINE.items():
        os.environ.setdefault(name, value)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the tools print

    def tell(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    def made(name: str) -> Tool:
        out = given.out / name
        out.mkdir(parents=True, exist_ok=True)
        return TOOLS[name](out=out.resolve(), campaign=given.campaign, key=given.key)

    try:
        given.out.mkdir(parents=True, exist_ok=True)
        lock = (given.out / ".lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        tell({"problem": f"another process writes in {given.out}; wait for its end, or name another folder"})
        return 1
    except OSError as error:
        tell({"problem": f"{given.out} can't be written: {error.strerror}; name another folder"})
        return 1
    write({name: lambda name=name: made(name) for name in given.tool}, sys.stdin, tell)
    return 0
