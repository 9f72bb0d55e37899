"""Tool calls as the policy server reads them out of sampled text."""

import json
from pathlib import Path

import pytest
import trl

from trainer.serve.chat import calls_shown_in, coerce
from trainer.serve.chat import parse_calls as parse
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


@pytest.mark.parametrize(
    ("value", "schema", "typed"),
    [
        ("12", {"type": "integer"}, 12),
        ("-12", {"type": "integer"}, -12),
        ("1.5", {"type": "integer"}, "1.5"),
        ("inf", {"type": "number"}, "inf"),
        ("False", {"type": "boolean"}, False),
        ("12345678901234567890", {"type": "integer"}, 12345678901234567890),
        ("1e400", {"type": "number"}, "1e400"),
        ("12", {}, "12"),
        ("12", True, "12"),
    ],
)
def test_coercion(value, schema, typed):
    coerced = json.loads(coerce(value, schema))
    assert coerced == typed and type(coerced) is type(typed)


@pytest.mark.parametrize("number", ["2.0", "1e3", "-0", "0.1234567890123456789", "12345678901234567890", "3"])
def test_numbers_are_told_and_shown_again_as_they_were_sampled(number):
    _, [call] = parse(f'<|call|>refund(amount="{number}")', TOOLS)
    assert call["function"]["arguments"] == f'{{"amount": {number}}}'
    [told] = for_template([Message.model_validate({"role": "assistant", "tool_calls": [call]})])
    assert str(told["tool_calls"][0]["function"]["arguments"]["amount"]) == number


SHOWN = '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
HERMES, LLAMA = calls_shown_in(SHOWN), calls_shown_in('<|python_tag|> {"name": .., "parameters": ..}')
LOOK = '{"name": "look", "arguments": {"n": 2.0, "big": 12345678901234567890}}'


@pytest.mark.parametrize(
    ("read", "text", "content", "names"),
    [
        (HERMES, f"<tool_call>\n{LOOK}\n</tool_call>", "", ["look"]),
        (
            HERMES,
            f"One moment.\n\n<tool_call>\n{LOOK}\n</tool_call>\n<tool_call>{LOOK}</tool_call>",
            "One moment.",
            2 * ["look"],
        ),
        (LLAMA, LOOK.replace("arguments", "parameters"), "", ["look"]),
        (LLAMA, f"<|python_tag|>{LOOK}; {LOOK}", "", 2 * ["look"]),
    ],
)
def test_calls_are_read_in_the_format_that_the_template_shows(read, text, content, names):
    said, calls = read(text, TOOLS)
    assert said == content and [call["function"]["name"] for call in calls] == names
    # A number stays as it was written.
    assert {call["function"]["arguments"] for call in calls} == {'{"n": 2.0, "big": 12345678901234567890}'}


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (parse, "no call at all"),
        (parse, '<|call|>refund(item="x"'),
        (parse, "<|call|>refund(item=x)"),
        (parse, '<|call|>refund(item="x" count="1")'),
        (parse, '<|call|>refund(item="x", item="y")'),
        (parse, '<|call|>refund(item="x") and more'),
        (parse, '<|call|>refund(item="x")<|call|>refund(item="x'),
        (HERMES, f"<tool_call>{LOOK}"),
        (HERMES, f"<tool_call>{LOOK}</tool_call><tool_call>"),
        (HERMES, "<tool_call>{not json}</tool_call>"),
        (HERMES, '<tool_call>{"name": "look", "arguments": [1]}</tool_call>'),
        (LLAMA, f"{LOOK} and more"),
        (LLAMA, '{"answer": 3}'),
        (LLAMA, ""),
    ],
)
def test_what_is_no_call_stays_content(read, text):
    assert read(text, TOOLS) == (text, [])


@pytest.mark.parametrize("name", ["qwen2_5", "qwen3", "qwen3_instruct_2507", "llama3_1", "llama3_2"])
def test_templates_of_well_known_models_show_a_format_that_is_read(name):
    template = (Path(trl.__file__).parent / "chat_templates" / f"{name}.jinja").read_text()
    assert calls_shown_in(template) is (LLAMA if name.startswith("llama") else HERMES)
