"""What is written of curves that are shown again and again, over a tool in memory; the real ones: metrics_suite.py."""

import json
from typing import Any

import pytest

from trainer.metrics import Mirror, Points, Row, Tool, write


class Memory(Tool):
    """`points` is what the tool would read back; `rows` counts what was ever added."""

    def __init__(self, points: dict[str, Points] | None = None) -> None:
        self.points, self.rows = points or {}, 0

    def read(self, run: str) -> Points:
        return dict(self.points.get(run, {}))

    def add(self, run: str, rows: list[Row]) -> None:
        self.rows += len(rows)
        self.points.setdefault(run, {}).update({(tag, step): v for step, values in rows for tag, v in values.items()})

    def clear(self, run: str) -> None:
        self.points.pop(run, None)

    def close(self) -> None:
        pass


FIRST: list[Row] = [(1, {"loss": 0.5}), (2, {"loss": 0.25})]


def test_what_is_there_is_not_written_again_by_this_process_nor_by_another():
    tool = Memory()
    mirror = Mirror(tool)
    assert (mirror.show("a", FIRST), mirror.show("a", FIRST)) == (2, 0)
    assert Mirror(tool).show("a", [*FIRST, (3, {"loss": 0.1, "reward": 1.0})]) == 2
    # What is known late of an earlier step is added to it.
    late: list[Row] = [(1, {"loss": 0.5, "held_out": 1.0}), *FIRST[1:], (3, {"loss": 0.1, "reward": 1.0})]
    assert Mirror(tool).show("a", late) == 1
    assert tool.rows == 4


@pytest.mark.parametrize(
    "rows",
    [[(1, {"loss": 0.5}), (2, {"loss": 0.3})], [(1, {"loss": 0.5})]],
    ids=["came out otherwise", "is not there any more"],
)
def test_a_step_that_was_done_again_leaves_nothing_of_before(rows):
    tool = Memory({"a": {("loss", 1): 0.5, ("loss", 2): 0.25}})
    Mirror(tool).show("a", rows)
    assert tool.points["a"] == {("loss", step): values["loss"] for step, values in rows}


def test_points_of_a_curve_that_is_thinned_stay():
    tool = Memory({"a": {("dollars", step): step / 2 for step in (1, 2, 3)}})
    assert Mirror(tool).show("a", [(1, {"dollars": 0.5}), (10, {"dollars": 5.0})]) == 1
    assert sorted(step for _, step in tool.points["a"]) == [1, 2, 3, 10]


def test_a_run_that_no_other_process_can_go_on_with_is_written_anew_where_it_grows():
    tool = Memory({"a": {("loss", 1): 0.5}})
    tool.can_go_on = False
    mirror = Mirror(tool)
    assert mirror.show("a", FIRST[:1]) == 0
    assert mirror.show("a", FIRST) == 2
    assert mirror.show("a", [*FIRST, (3, {"loss": 0.1})]) == 1
    # What has been uploaded can't be.
    tool.can_clear = False
    assert Mirror(tool).show("a", [(1, {"loss": 9.0}), (4, {"loss": 0.1})]) == 1


def test_one_tool_that_fails_ends_alone_and_says_so_once():
    class Failing(Memory):
        def add(self, run: str, rows: list[Row]) -> None:
            raise OSError("no room")

    def missing() -> Tool:
        raise ModuleNotFoundError("No module named 'wandb'")

    told: list[dict[str, Any]] = []
    tool = Memory()
    lines = [json.dumps({"run": run, "rows": [{"step": 1, "values": {"loss": 1.0}}]}) for run in ("a", "b")]
    write({"wandb": missing, "trackio": Failing, "tensorboard": lambda: tool}, lines, told.append)
    assert [(one["tool"], one["problem"]) for one in told if "problem" in one] == [
        ("wandb", "ModuleNotFoundError: No module named 'wandb'"),
        ("trackio", "OSError: no room"),
    ]
    assert [one["written"] for one in told if "written" in one] == [{"tensorboard": 1}] * 2
