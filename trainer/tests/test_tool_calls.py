"""Tool calls as the policy server reads them out of sampled text."""

import json
from pathlib import Path

import pytest
import trl

from trainer.serve.calls import calls_shown_in
from trainer.serve.calls import parse_shop_calls as parse
from trainer.serve.protocol import Message, for_template

TYPES = {"item": "string", "count": "integer", "amount": "number", "opened": "boolean", "code": ["integer", "null"]}
PROPERTIES = {name: {"type": type} for name, type in TYPES.items()}
TOOLS = [{"function": {"name": "refund", "parameters": {"properties": PROPERTIES}}}]


def test_calls_are_parsed_and_their_arguments_get_the_schemas_types():
    text = '<|call|> refund(item=" red lamp ", count="3", amount="2.5", opened="true", code="7") <|call|>other()'
    content, calls = parse(text, TOOLS)
    assert content == ""
    assert [call["id"] for call in calls] == ["call_0", "call_1"]
    typed = {"item": "red lamp", "count": 3, "amount": 2.5, "opened": True, "code": 7}
    assert json.loads(calls[0]["function"]["arguments"]) == typed
    assert calls[1]["function"] == {"name": "other", "arguments": "{}"}
    assert parse('one moment <|call|>refund(unknown="5")', TOOLS)[0] == "one moment"


@pytest.mark.parametrize("number", ["2.0", "1e3", "-0", "0.1234567890123456789", "12345678901234567890", "3"])
def test_numbers_keep_the_spelling_that_was_sampled(number):
    _, [call] = parse(f'<|call|>refund(amount="{number}")', TOOLS)
    assert call["function"]["arguments"] == f'{{"amount": {number}}}'
    [told] = for_template([Message.model_validate({"role": "assistant", "tool_calls": [call]})])
    assert str(told["tool_calls"][0]["function"]["arguments"]["amount"]) == number


TEMPLATES = Path(trl.__file__).parent / "chat_templates"
TEMPLATE = {
    name: (TEMPLATES / f"{name}.jinja").read_text() for name in ("qwen2_5", "qwen3", "llama3_1", "llama3_2", "gemma4")
}
TEMPLATE |= {"lfm2": (TEMPLATES / "lfm2_v2.jinja").read_text(), "granite3": "with <|tool_call|> a JSON list follows"}
TEMPLATE |= {"functiongemma": "<start_function_call>call:", "gemma3": "[func_name1(params_name1=params_value1...)]"}
OFFERED = [{"function": {"name": name}} for name in ("look", "refund")]
ARGUMENTS = '{"n": 2.0, "big": 12345678901234567890}'
LOOK = f'{{"name": "look", "arguments": {ARGUMENTS}}}'
OTHER = f'{{"name": "other", "arguments": {ARGUMENTS}}}'
PYTHON = "look(n=2.0, big=12345678901234567890)"


@pytest.mark.parametrize(
    ("model", "text", "content", "calls"),
    [
        ("qwen2_5", f"<tool_call>\n{LOOK}\n</tool_call>", "", 1),
        (
            "qwen2_5",
            f"One moment.\n\n<tool_call>\n{LOOK}\n</tool_call>\n<tool_call>{OTHER}</tool_call>",
            "One moment.",
            2,
        ),
        ("qwen2_5", f"<tool_call>\n{LOOK}\n{LOOK}\n</tool_call>", "", 2),
        ("qwen2_5", f"<tool_call>\n{LOOK}", "", 1),
        ("qwen2_5", LOOK, "", 1),
        ("qwen2_5", f"{LOOK}\n{LOOK}", "", 2),
        ("qwen2_5", f"[{LOOK}, {LOOK}]", "", 2),
        ("qwen2_5", f"```json\n{LOOK}\n```", "", 1),
        ("qwen2_5", f"```\n{LOOK}\n```\n\n```json\n{LOOK}\n```", "", 2),
        ("qwen3", f"<think>\nFirst look.\n</think>\n\n{LOOK}", "<think>\nFirst look.\n</think>", 1),
        ("llama3_1", LOOK.replace("arguments", "parameters"), "", 1),
        ("llama3_1", f"<|python_tag|>{LOOK}; {OTHER}", "", 2),
        ("llama3_2", OTHER, "", 1),
        ("granite3", f"<|tool_call|>[{LOOK}, {OTHER}]", "", 2),
        ("lfm2", f"Checking.<|tool_call_start|>[{PYTHON}, other({PYTHON[5:]}]<|tool_call_end|>", "Checking.", 2),
        ("lfm2", f"<|tool_call_start|>[{LOOK}]<|tool_call_end|>", "", 1),
        ("gemma3", f"[{PYTHON}, {PYTHON}]", "", 2),
        ("gemma3", f"```tool_code\n{PYTHON}\n{PYTHON}\n```", "", 2),
    ],
)
def test_calls_are_read_in_the_formats_that_models_write(model, text, content, calls):
    said, found = calls_shown_in(TEMPLATE[model])(text, OFFERED)
    assert said == content and [call["id"] for call in found] == [f"call_{n}" for n in range(calls)]
    # A number stays as it was written.
    assert {call["function"]["arguments"] for call in found} == {ARGUMENTS}
    assert {call["function"]["name"] for call in found} <= {"look", "other"}


@pytest.mark.parametrize(
    ("model", "text", "arguments"),
    [
        (
            "lfm2",
            """<|tool_call_start|>[look(a='it\\'s', b=[1, -2.50, True], c={"d": None}, e="")]<|tool_call_end|>""",
            {"a": "it's", "b": [1, -2.5, True], "c": {"d": None}, "e": ""},
        ),
        (
            "gemma4",
            '<|tool_call>call:look{a:<|"|>x, y:"1"<|"|>,b:[1,{c:true}]}<tool_call|>',
            {"a": 'x, y:"1"', "b": [1, {"c": True}]},
        ),
        (
            "functiongemma",
            "<start_function_call>call:look{a:<escape>Paris {x}<escape>,n:3}<end_function_call>",
            {"a": "Paris {x}", "n": 3},
        ),
        ("functiongemma", "<start_function_call>call:look{}<end_function_call>", {}),
    ],
)
def test_arguments_that_are_no_json_become_json(model, text, arguments):
    [call] = calls_shown_in(TEMPLATE[model])(text, OFFERED)[1]
    assert call["function"]["name"] == "look" and json.loads(call["function"]["arguments"]) == arguments


@pytest.mark.parametrize(
    "text",
    [
        "no call at all",
        '<|call|>refund(item="x"',
        "<|call|>refund(item=x)",
        '<|call|>refund(item="x" count="1")',
        '<|call|>refund(item="x", item="y")',
        '<|call|>refund(item="x") and more',
        '<|call|>refund(item="x")<|call|>refund(item="x',
    ],
)
def test_other_text_of_a_shop_model_stays_content(text):
    assert parse(text, TOOLS) == (text, [])


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("qwen2_5", f"<tool_call>{LOOK}</tool_call><tool_call>"),
        ("qwen2_5", f"<tool_call>{LOOK}<tool_call>{LOOK}</tool_call>"),
        ("qwen2_5", f"<tool_call>{LOOK}</tool_call></tool_call>"),
        ("qwen2_5", "<tool_call>{not json}</tool_call>"),
        ("qwen2_5", '<tool_call>{"name": "look", "arguments": [1]}</tool_call>'),
        ("qwen2_5", OTHER),  # JSON in the user's own form: no tool of that name is offered
        ("qwen2_5", f"I would write {LOOK}"),
        ("qwen2_5", f"```json\n{LOOK}\n```\nThis looks it up."),
        ("qwen2_5", '{"name": "look"}'),
        ("qwen2_5", '{"name": "look", "parameters": "n=2"}'),
        ("qwen2_5", LOOK[:-1]),
        ("qwen2_5", "<think>\nI call look.\n</think>\n\nDone."),
        ("llama3_1", f"{LOOK} and more"),
        ("llama3_1", '{"answer": 3}'),
        ("lfm2", "<|tool_call_start|>[look(2.0)]<|tool_call_end|>"),
        ("lfm2", "<|tool_call_start|>[look(n=open('x'))]<|tool_call_end|>"),
        ("lfm2", "<|tool_call_start|>[look(n=1, n=2)]<|tool_call_end|>"),
        ("lfm2", "<|tool_call_start|>[look(**{'n': 2})]<|tool_call_end|>"),
        ("gemma3", "look(n=2); x = 3"),
        ("gemma3", "look (the tool) helps"),
        ("gemma3", "print(n=2)"),
        ("gemma4", '<|tool_call>call:look{a:<|"|>x}<tool_call|>'),
    ],
)
def test_text_that_is_no_call_stays_content(model, text):
    assert calls_shown_in(TEMPLATE[model])(text, OFFERED) == (text, [])
