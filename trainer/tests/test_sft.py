"""Training on conversations: which tokens carry loss, that they are learned, how it goes on, what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from trainer.command import BadInput
from trainer.serve.chat import ChatFormat
from trainer.serve.protocol import ChatRequest, for_template
from trainer.tests.train_harness import Learner, Message, Worker, at, lora_job
from trainer.train.conversations import NO_LOSS, SftJob, rows_of
from trainer.train.sft import order

STEPS = 5

CALL = {"id": "c0", "type": "function", "function": {"name": "get_account", "arguments": '{"user": "u17"}'}}
TALK: list[Message] = [
    {"role": "system", "content": "you are a help desk ."},
    {"role": "user", "content": "cancel my lamp please"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c0", "content": "lamp i10 pending"},
    {"role": "assistant", "content": "done . bye"},
    {"role": "user", "content": "thanks"},
]


def save(folder: Path, conversations: list[Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "conversations.jsonl"
    lines = [
        one if isinstance(one, str) else json.dumps({"id": f"t{n}", "tools": None, **one})
        for n, one in enumerate(conversations)
    ]
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def make_job(base: Path, folder: Path, conversations: list[Any], **changes: Any) -> Message:
    file = save(folder, conversations)
    fields = {"conversations": str(file), "epochs": 1.0, "steps": STEPS, "rows_per_step": 2}
    return lora_job(base, folder / "out", **{**fields, **changes})


def talks() -> list[Message]:
    things = ["lamp", "chair", "desk"]
    return [{"messages": [*TALK[:1], {"role": "user", "content": f"cancel my {thing}"}, *TALK[2:]]} for thing in things]


def worker(base: Path, folder: Path, **changes: Any) -> Worker:
    return Worker(folder, make_job(base, folder, talks(), **changes), program="sft")


@pytest.fixture(scope="module")
def uninterrupted(tiny_model_dir, tmp_path_factory):
    return worker(tiny_model_dir, tmp_path_factory.mktemp("sft")).run()


def test_loss_is_on_the_assistants_turns_with_their_ends_alone(tiny_model_dir, tmp_path):
    job = SftJob.model_validate(make_job(tiny_model_dir, tmp_path, [{"messages": TALK}]))
    [row] = rows_of(job)
    tokenizer = AutoTokenizer.from_pretrained(tiny_model_dir)
    learned = [token for token in row.labels if token != NO_LOSS]
    assert tokenizer.decode(learned).split() == [
        *'<|call|> get_account(user=" u17 ") <|end|> done . bye <|end|>'.split()
    ]
    assert all(label in (NO_LOSS, token) for label, token in zip(row.labels, row.input_ids, strict=True))
    # Nothing after the last turn that is learned.
    assert row.labels[-1] == tokenizer.eos_token_id
    prompt = tokenizer.apply_chat_template(TALK[:2], add_generation_prompt=True, tokenize=False)
    assert row.input_ids[: row.labels.index(learned[0])] == tokenizer.encode(prompt, add_special_tokens=False)


def test_micro_batches_are_told(tiny_model_dir, tmp_path):
    at_once = "import trainer.train.channel as channel; channel.TELL_SECONDS = 0"
    run = worker(tiny_model_dir, tmp_path, steps=2, tokens_per_forward=1).run(before=at_once)
    told = [(message["step"], message["done"], message["total"]) for message in run.of_type("progress")]
    assert told == [(step, done, 2) for step in (0, 1) for done in (1, 2)]


def with_template(base: Path, folder: Path, old: str, new: str) -> Path:
    """A copy of the model with something else in its chat template."""
    folder.mkdir()
    for file in base.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    template = (folder / "chat_template.jinja").read_text()
    assert old in template
    (folder / "chat_template.jinja").write_text(template.replace(old, new))
    return folder


def test_calls_are_rendered_as_the_policy_server_renders_them(tiny_model_dir, tmp_path):
    shown = "{{ m.content or '' }} {{ m.tool_calls | tojson if m.tool_calls }}"
    base = with_template(tiny_model_dir, tmp_path / "base", "{{ m.content or '' }}", shown)
    [row] = rows_of(SftJob.model_validate(make_job(base, tmp_path, [{"messages": TALK}])))
    *before, last = for_template(ChatRequest.model_validate({"model": "base", "messages": TALK[:5]}).messages)
    chat = ChatFormat(base)
    assert row.input_ids == chat.prompt_ids(before, None) + chat.answer_ids(before, last, None)


def test_a_history_that_is_rendered_otherwise_later_begins_a_new_row(tiny_model_dir, tmp_path):
    # As models that think: earlier answers are shown without their first word.
    shown = "<|assistant|> {{ m.content or '' if loop.last else (m.content or '')[5:] }}"
    base = with_template(tiny_model_dir, tmp_path / "base", "<|assistant|> {{ m.content or '' }}", shown)
    messages = [*TALK[:2], {"role": "assistant", "content": "done . bye"}, TALK[-1], TALK[4]]
    rows = rows_of(SftJob.model_validate(make_job(base, tmp_path, [{"messages": messages}])))
    assert len(rows) == 2
    assert [sum(label != NO_LOSS for label in row.labels) for row in rows] == [4, 4]


@pytest.mark.parametrize(
    ("conversation", "said"),
    [
        ("{", r"conversations.jsonl:1 .*"),
        ({"messages": TALK[:2]}, r"holds no turn of the assistant's"),
        (
            {"messages": [*TALK[:1], {"role": "assistant", "content": "bye " * 300}]},
            r"conversation t0: message 1 ends after 3\d\d tokens, .* has room for 256",
        ),
        (
            {
                "messages": [
                    *TALK[:2],
                    {**TALK[2], "tool_calls": [{**CALL, "function": {"name": "f", "arguments": "[]"}}]},
                ]
            },
            r"message 2 can't be rendered: .*2.tool_calls.0.function.arguments '\[\]': must be a JSON object",
        ),
        ({"messages": [*TALK[:2], {"role": "robot"}]}, r"conversations.jsonl:1 messages.2.role \"robot\": must be .*"),
    ],
)
def test_what_can_not_be_learned_from_is_said(tiny_model_dir, tmp_path, conversation, said):
    with pytest.raises(BadInput, match=said):
        rows_of(SftJob.model_validate(make_job(tiny_model_dir, tmp_path, [conversation])))


def test_each_pass_has_every_row_once():
    drawn = order(seed=1, rows=4, drawn=10)
    assert [sorted(drawn[:4]), sorted(drawn[4:8]), len(drawn)] == [[0, 1, 2, 3], [0, 1, 2, 3], 10]
    # A longer training begins as a shorter one.
    assert order(seed=1, rows=4, drawn=6) == drawn[:6] != order(seed=2, rows=4, drawn=6)


def test_it_learns_and_asks_for_nothing(uninterrupted):
    assert uninterrupted.exit_code == 0, uninterrupted.stderr
    kinds = [message["type"] for message in uninterrupted.messages if message["type"] != "progress"]
    assert kinds == ["ready", "step", "step", "checkpoint", "step", "step", "checkpoint", "step", "checkpoint", "done"]
    metrics = [message["metrics"] for message in uninterrupted.of_type("step")]
    assert metrics[-1]["loss"] < 0.6 * metrics[0]["loss"]
    assert metrics[-1]["token_accuracy"] > metrics[0]["token_accuracy"]


@pytest.mark.parametrize("how", [Learner.terminate, Learner.kill])
def test_stopped_or_killed_it_goes_on_to_the_same_bytes(tiny_model_dir, tmp_path, uninterrupted, how):
    run = worker(tiny_model_dir, tmp_path).run(at(2, how, "checkpoint"))
    if how == Learner.terminate:
        assert (run.exit_code, run.messages[-1]["type"]) == (0, "interrupted")
    again = run.again()
    assert again.messages[0]["step"] >= 2
    assert again.adapter_bytes(STEPS) == uninterrupted.adapter_bytes(STEPS)


def test_it_ends_with_its_worker(tiny_model_dir, tmp_path):
    run = worker(tiny_model_dir, tmp_path, steps=500).run(at(0, lambda learner: learner.stdin.close(), "ready"))
    assert run.exit_code == 0, run.stderr
    assert run.messages[-1]["type"] == "interrupted"


def test_rows_of_a_step_do_not_depend_on_how_many_go_at_once(tiny_model_dir, tmp_path, uninterrupted):
    run = worker(tiny_model_dir, tmp_path, tokens_per_forward=1, steps=1).run()
    [alone], together = run.of_type("step"), uninterrupted.of_type("step")[0]
    assert alone["metrics"]["loss"] == pytest.approx(together["metrics"]["loss"], rel=1e-5)
