"""The bridge's own promises: splits, episodes that take turns, replay, whose fault a failure is."""

import inspect
from collections import Counter

import pytest
from toolsandbox_bridge import FOLDER, Played, ask, methods, needs_folder

pytestmark = needs_folder

SEARCH = {"name": "search_contacts", "arguments": {"relationship": "friend"}}
ADD = {"name": "add_contact", "arguments": {"name": "Ada", "phone_number": "+12453344098"}}
NOW = {"name": "get_current_timestamp", "arguments": {}}


def job(scenario, *turns, user=("go on", "go on")):
    agent = [{"content": "", "toolCalls": turn} if isinstance(turn, list) else {"content": turn} for turn in turns]
    return {"scenario": scenario, "agent": agent, "user": list(user)}


def jobs():
    return [
        job("add_contact_with_name_and_phone_number_all_tools", [ADD], "Ada ?", [NOW], [SEARCH, NOW], "done"),
        job("add_contact_with_name_and_phone_number_all_tools", [NOW], [ADD], [ADD], "done", user=()),
        job("remove_contact_by_phone", [SEARCH], "which ?", [{**SEARCH, "arguments": {}}], "done"),
        job("wifi_off", [{"name": "set_wifi_status", "arguments": {"on": False}}], "done"),
    ]


def tasks(split):
    return {task["id"]: task["groups"] for task in ask("tasks", split=split)["tasks"]}


def test_split_test_is_published_and_train_holds_its_variants():
    test, train = tasks("test"), tasks("train")
    assert (len(test), len(train)) == (129, 903)
    assert not test.keys() & train.keys()
    counts = Counter(group for groups in test.values() for group in groups)
    assert counts["needs_web_key"] == 28
    assert counts["no_distraction_tools"] == 129
    kinds = Counter(group for groups in train.values() for group in groups if "tools" in group or "scrambled" in group)
    assert kinds == dict.fromkeys(kinds, 129)
    assert len(kinds) == 7


def test_held_out_scenarios_have_no_kin_in_train():
    methods()
    from bridges.toolsandbox.catalogue import Catalogue, family

    catalogue = Catalogue(0.25)
    test, train = ([task["id"] for task in catalogue.tasks(split)] for split in ("test", "train"))
    assert test and train
    assert not {family(name) for name in test} & {family(name) for name in train}
    assert test == [task["id"] for task in Catalogue(0.25).tasks("test")]


def test_episodes_that_take_turns_go_as_alone():
    alone = [Played(one).play() for one in jobs()]
    together = [Played(one) for one in [*jobs(), *jobs()]]
    while open_ones := [played for played in together if played.reason is None]:
        for played in open_ones:
            played.step()
    for one, other in zip([*alone, *alone], together, strict=True):
        assert one.messages == other.messages
        assert one.user_prompts == other.user_prompts
        assert one.evaluate() == other.evaluate()


def test_an_episode_is_made_again_from_its_messages():
    for one in jobs():
        played, again = Played(one).play(), Played(one)
        for message in played.log:
            again.take(message)
        assert (again.messages, again.reason) == (played.messages, played.reason)
        assert again.evaluate() == played.evaluate()


def test_tools_that_only_read_do_not_write():
    methods()
    from tool_sandbox.common.tool_discovery import ToolBackend, get_all_tools

    reading = {t["name"] for t in ask("describe")["tools"] if t["annotations"]["readOnlyHint"]}
    for name, tool in get_all_tools(ToolBackend.DEFAULT).items():
        code = inspect.getsource(inspect.unwrap(tool))
        writes = any(f"{word}(" in code for word in ("add_to_database", "remove_from_database", "update_database"))
        assert not (writes and name in reading), name


def test_a_web_service_that_fails_is_not_the_agents_fault(monkeypatch):
    import requests

    monkeypatch.setenv("RAPID_API_KEY", "none")
    monkeypatch.setattr(requests, "get", lambda **_: (_ for _ in ()).throw(requests.ConnectionError("no route")))
    played = Played(job("find_stock_symbol_with_company_name", [{"name": "search_stock", "arguments": {"query": "x"}}]))
    with pytest.raises(RuntimeError, match="no route"):
        played.step()
    monkeypatch.delenv("RAPID_API_KEY")
    played = Played(job("find_stock_symbol_with_company_name", [{"name": "search_stock", "arguments": {"query": "x"}}]))
    played.step()
    assert "PermissionError" in played.messages[-1]["content"]


def test_a_user_that_calls_an_unknown_tool_is_not_the_agents_fault():
    played = Played(job("wifi_off", "hm"))
    played.step()
    with pytest.raises(RuntimeError, match="UserError"):
        played.take({"role": "user", "content": "", "toolCalls": [{"id": "1", "name": "hang_up", "arguments": {}}]})


def test_a_wrong_folder_is_reported():
    import subprocess
    import sys

    run = [sys.executable, "-m", "bridges.toolsandbox", f"{FOLDER}/tool_sandbox"]
    done = subprocess.run(run, capture_output=True, text=True, cwd=__file__.split("/bridges/")[0])
    assert done.returncode == 1
    assert "target.folder" in done.stderr and done.stderr.count("\n") == 1
