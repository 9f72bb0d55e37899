"""Conversations as token rows: rendering through the chat template, and reading an assistant turn back.

Invariant: a row's loss mask is 1 on exactly the tokens that the model writes itself, `<|end|>` of its turns included.
"""

import json
import random

from transformers import PreTrainedTokenizerFast

from trainer.base_model.tokenizer import ASSISTANT, END
from trainer.serve import tool_calls


def to_openai(message: dict) -> dict:
    """The environment's message in the shape that chat templates read."""
    out = {"role": message["role"], "content": message["content"]}
    if message.get("toolCalls"):
        functions = ({"name": c["name"], "arguments": c["arguments"]} for c in message["toolCalls"])
        out["tool_calls"] = [{"type": "function", "function": f} for f in functions]
    return out


def render(tokenizer: PreTrainedTokenizerFast, messages: list[dict], tools: list[dict], generate: bool) -> str:
    """The text of a conversation in the environment's message shape; `generate` opens the next assistant turn."""
    return tokenizer.apply_chat_template(
        [to_openai(m) for m in messages], tools=tools, tokenize=False, add_generation_prompt=generate
    )


def loss_mask(ids: list[int], tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """1 where the model is the author: after `<|assistant|>` up to and with `<|end|>`."""
    start, end = tokenizer.convert_tokens_to_ids([ASSISTANT, END])
    mask, own = [], False
    for token in ids:
        mask.append(int(own))
        own = (own or token == start) and token != end
    return mask


def parse(text: str, tools: list[dict]) -> dict:
    """The environment's assistant message of a sampled turn, read as the policy server reads it."""
    schemas = [{"type": "function", "function": tool} for tool in tools]
    content, calls = tool_calls.parse(text.replace(END, "").strip(), schemas)
    made = [
        {"id": c["id"], "name": c["function"]["name"], "arguments": json.loads(c["function"]["arguments"])}
        for c in calls
    ]
    return {"role": "assistant", "content": content, **({"toolCalls": made} if made else {})}


def vary_prompt(messages: list[dict], tools: list[dict], rng: random.Random) -> tuple[list[dict], list[dict]]:
    """Another prompt for the same conversation, as smaller environments of the same kind have it: some of the tools, in
    order, with all that are used, and some sentences of the policy."""
    used = {call["name"] for m in messages for call in m.get("toolCalls", [])}
    if rng.random() < 0.5:
        keep = rng.random()
        tools = [t for t in tools if t["name"] in used or rng.random() < keep]
    if rng.random() < 0.3:
        keep = rng.random()
        sentences = [s for s in messages[0]["content"].removesuffix(" .").split(" . ") if rng.random() < keep]
        messages = [{"role": "system", "content": " ".join(f"{s} ." for s in sentences)}, *messages[1:]]
    return messages, tools


def to_row(
    tokenizer: PreTrainedTokenizerFast, messages: list[dict], tools: list[dict], prompt: bool
) -> tuple[list[int], list[int]]:
    """Ids and loss mask of a whole conversation without the user's goodbye, which no policy sees; with `prompt` False
    also without the system turn."""
    text = render(tokenizer, messages[:-1], tools, generate=False)
    ids = tokenizer.encode(text if prompt else text[text.index(END) + len(END) :])
    if tokenizer.unk_token_id in ids:
        raise SystemExit(f"base_model: a word is not in the vocabulary: {text}")
    return ids, loss_mask(ids, tokenizer)
