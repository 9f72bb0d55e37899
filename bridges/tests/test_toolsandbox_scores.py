"""Scores and prompts of the bridge are those of ToolSandbox's own run, whose clock and ids are not ours."""

import json
import random
import re
from functools import cache

import pytest
from toolsandbox_bridge import Played, ask, methods, needs_folder, official

pytestmark = needs_folder

SCORES = ("similarity", "milestone_similarity", "minefield_similarity", "turn_count")


def call(tool, /, **arguments):
    return {"content": "", "toolCalls": [{"name": tool, "arguments": arguments}]}


def say(content):
    return {"content": content}


@cache
def catalogue():
    methods()
    # Can be imported now.
    from bridges.toolsandbox.catalogue import Catalogue

    return Catalogue(0.0)


def wanted(scenario, milestone):
    """Returns the target of a milestone: a database's row, the words of a message, the arguments of a call."""
    matcher = catalogue().scenarios[scenario].evaluation.milestone_matcher
    row = matcher.milestones[milestone].snapshot_constraints[0].target_dataframe.to_dicts()[0]
    return {**row, **json.loads(row.get("tool_trace") or "{}").get("arguments", {})}


def solutions(scenario):
    """Right, half right and wrong, each with how well it must do: least, most."""
    last = say(wanted(scenario, -1)["content"])
    match scenario:
        case "wifi_off":
            return [
                (1, 1, [call("set_wifi_status", on=False), last]),
                (0.5, 0.9, [call("set_wifi_status", on=False), NONSENSE]),
                (0, 0.1, [call("set_wifi_status", on=True), NONSENSE]),
            ]
        case "remove_contact_by_phone":
            search = call("search_contacts", phone_number=wanted(scenario, 0)["phone_number"])
            return [
                (1, 1, [search, call("remove_contact", person_id="$0.0.person_id"), last]),
                (0.3, 0.9, [search, NONSENSE]),
                (0, 0.1, [call("remove_contact", person_id="nobody"), NONSENSE]),
            ]
        # It depends on the present: its results differ between the clocks, its scores don't.
        case "find_days_till_holiday":
            now, holiday = call("get_current_timestamp"), call("search_holiday", holiday_name=HOLIDAY)
            difference = call("timestamp_diff", timestamp_0="$0", timestamp_1="$1")
            return [
                (0.75, 1, [now, holiday, difference, NONSENSE]),
                (0.2, 0.7, [now, NONSENSE]),
                (0, 0.2, [call("search_holiday", holiday_name="Nothing"), NONSENSE]),
            ]
        # Can't be done: the tool for it is missing, and calling one that is not offered is the end.
        case "remove_contact_by_phone_no_remove_contact_insufficient_information":
            return [(1, 1, [last]), (0, 0.5, [NONSENSE]), (0, 0, [call("remove_contact", person_id="nobody")])]


SOLVED = [
    "wifi_off",
    "remove_contact_by_phone",
    "find_days_till_holiday",
    "remove_contact_by_phone_no_remove_contact_insufficient_information",
]
NONSENSE = say("bananas")
HOLIDAY = "Christmas Day"


# Text that differs by run: times and values computed from them, new ids, addresses in memory.
VARYING = re.compile(r"'(?:days|seconds)': \d+|\d{10}\.\d+|12/25/\d{4}|\w{8}-\w{4}-4\w{3}-\w{4}-\w{12}| at 0x\w+>")


def normal(prompt):
    """Drops varying text and words beside calls, and sorts the results of simultaneous calls."""
    messages, results = [], []
    for message in prompt:
        content = VARYING.sub("", message["content"])
        if message["role"] == "tool":
            results.append(content)
            continue
        messages += sorted(results)
        results = []
        calls = [
            (c["name"], c["arguments"])
            if "name" in c
            else (c["function"]["name"], json.loads(c["function"]["arguments"]))
            for c in message.get("toolCalls") or message.get("tool_calls") or []
        ]
        messages.append((message["role"], "" if calls else content, VARYING.sub("", json.dumps(calls))))
    return messages + sorted(results)


def schema(tools):
    return [{field: tool[field] for field in ("name", "description", "parameters")} for tool in tools]


def compare(jobs):
    """Plays each job here as it was played there; the scores that both gave."""
    scores = []
    for job, theirs in zip(jobs, official(jobs), strict=True):
        ours = Played(job).play()
        breakdown = ours.evaluate()["breakdown"]
        assert {name: breakdown[name] for name in SCORES} == pytest.approx(theirs["scores"]), job
        assert [normal(p) for p in ours.user_prompts] == [normal(p) for p in theirs["user"]], job
        for our, their in zip(ours.prompts, theirs["agent"], strict=True):
            assert normal(our["messages"]) == normal(their["messages"]), job
            assert schema(our["tools"]) == their["tools"], job
        scores.append(theirs["scores"]["similarity"])
        ask("close", episode=ours.episode)
    return scores


def test_an_agent_that_never_helps_on_all_base_scenarios():
    words = "I am of no help."
    tasks = [task["id"] for task in ask("tasks", split="test")["tasks"]]
    assert len(tasks) == 129
    jobs = [{"scenario": task, "agent": [say(words)] * 4, "user": ["try again"] * 2} for task in tasks]
    compare(jobs)


@pytest.mark.parametrize("suffix", ["", "_10_distraction_tools"])
def test_right_half_right_and_wrong_solutions(suffix):
    jobs, expected = [], []
    for scenario in SOLVED:
        for least, most, agent in solutions(scenario):
            jobs.append({"scenario": scenario + suffix, "agent": agent, "user": []})
            expected.append((least, most))
    for score, (least, most), job in zip(compare(jobs), expected, jobs, strict=True):
        assert least <= score <= most, (score, job)


def test_conversations_that_reach_the_limit():
    silent = {"scenario": "wifi_off", "agent": [say("hm")] * 40, "user": ["go on"] * 40}
    busy = {"scenario": "wifi_off", "agent": [call("set_wifi_status", on=bool(n % 2)) for n in range(40)], "user": []}
    crowded = {
        "scenario": "wifi_off",
        "agent": [{"content": "", "toolCalls": [*call("set_wifi_status", on=False)["toolCalls"] * 31]}],
        "user": [],
    }
    compare([silent, busy, crowded])


WORDS = ["", "friend", "celsius", "?\n'\"\\", HOLIDAY, "USD", "+10000000000"]
POOL = {
    "string": WORDS,
    "number": [0, -1, 37.3, 1e9, 2**70],
    "integer": [0, 1, 2025, -(2**65)],
    "boolean": [True, False],
}
ANYTHING = [value for values in POOL.values() for value in values] + [None, [], {"a": [None]}]


def random_call(draw, tools):
    tool = draw.choice(tools)
    name = tool["name"] if draw.random() > 0.02 else "no_such_tool"
    properties, required = tool["parameters"]["properties"], tool["parameters"]["required"]
    chosen = [field for field in {**dict.fromkeys(required), **properties} if field in required or draw.random() < 0.3]
    pools = {field: POOL.get(properties.get(field, {}).get("type"), ANYTHING) for field in chosen}
    return {
        "name": name,
        "arguments": {f: draw.choice(ANYTHING if draw.random() < 0.1 else pool) for f, pool in pools.items()},
    }


def test_random_conversations():
    """All kinds of scenario; calls alone and at once, of wrong types, of unknown tools; early and late ends."""
    draw = random.Random(7)
    tasks = [task["id"] for split in ("test", "train") for task in ask("tasks", split=split)["tasks"]]
    jobs = []
    for scenario in draw.sample(tasks, 100):
        begun = ask("reset", task={"id": scenario, "seed": 1})
        agent = []
        for _ in range(draw.randint(1, 4)):
            calls = (
                [random_call(draw, begun["tools"]) for _ in range(draw.choice([0, 1, 1, 1, 2, 3]))]
                if begun["tools"]
                else []
            )
            agent.append(
                {"content": draw.choice(["", "ok", "Wifi is turned off"]), **({"toolCalls": calls} if calls else {})}
            )
        jobs.append({"scenario": scenario, "agent": agent, "user": ["and then ?"] * draw.randint(0, 2)})
    compare(jobs)
