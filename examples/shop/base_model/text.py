"""Text of the base models: the word-level tokenizer, and conversations as token rows and back.

Invariants: ids, numbers, words, tool signatures and the fixed parts of a call (`name(arg="`, `", arg="`, `")`) are one
token each and white space is dropped, so encoding a rendered conversation gives back the ids that were sampled. A row's
loss mask is 1 on exactly the tokens that the model writes itself, `<|end|>` of its turns included."""

import json
import random
import re
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from transformers import PreTrainedTokenizerFast

from trainer.serve.calls import parse_shop_calls

PAD, UNKNOWN, END, ASSISTANT, CALL = "<|pad|>", "<|unk|>", "<|end|>", "<|assistant|>", "<|call|>"
SPECIAL = [PAD, UNKNOWN, END, "<|system|>", "<|user|>", ASSISTANT, "<|tool|>", CALL]
PIECE = r"""[a-z_]+\([a-z_]+="|", ?[a-z_]+="|"\)|[a-z_]+\([a-z_, ]*\)|[A-Za-z0-9_]+|[^\sA-Za-z0-9_]"""


def expand(pattern: str) -> list[str]:
    """All words of a schema pattern of literals, `(a|b)` groups and `[0-9]{n}`."""
    words: set[str] = set()
    for part in re.findall(r"\(([^)]*)\)|(\w+)\[0-9\]\{(\d)\}", pattern):
        group, prefix, digits = part
        words.update(group.split("|") if group else (f"{prefix}{n:0{digits}}" for n in range(10 ** int(digits))))
    return sorted(words)


def schema_words(schema: dict) -> list[str]:
    """Every word that a value of this schema can hold."""
    words = [str(value) for value in schema.get("enum", [])]
    if "pattern" in schema:
        words += expand(schema["pattern"])
    if schema.get("type") == "integer":
        words += [str(n) for n in range(schema["minimum"], schema["maximum"] + 1, schema.get("multipleOf", 1))]
    for inner in schema.get("properties", {}).values():
        words += schema_words(inner)
    return words


def signature(tool: dict) -> str:
    """`name(arg, arg)`, as the chat template lists a tool."""
    return f"{tool['name']}({', '.join(tool['parameters']['properties'])})"


def vocabulary(environment: dict, texts: Iterable[str]) -> list[str]:
    """Tokens of an environment: what its schemas and policy can spell, then the words of the texts, each once."""
    tokens = list(SPECIAL)
    for tool in environment["tools"]:
        first, *others = tool["parameters"]["properties"]
        tokens += [signature(tool), f'{tool["name"]}({first}="', *(f'", {name}="' for name in others)]
        tokens += schema_words(tool["parameters"]) + schema_words(tool.get("outputSchema", {}))
    tokens.append('")')
    for text in (f"{environment['policy']} tools :", *texts):
        tokens += re.findall(PIECE, text)
    return list(dict.fromkeys(tokens))


def build_tokenizer(environment: dict, texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """The tokenizer of an environment's description; `texts` add words that the schemas do not spell."""
    tokens = vocabulary(environment, texts)
    tokenizer = Tokenizer(WordLevel({token: i for i, token in enumerate(tokens)}, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = Split(Regex(PIECE), behavior="removed", invert=True)
    tokenizer.add_special_tokens(SPECIAL)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        unk_token=UNKNOWN,
        eos_token=END,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        chat_template=(Path(__file__).parent / "chat_template.jinja").read_text(),
    )


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
    content, calls = parse_shop_calls(text.replace(END, "").strip(), schemas)
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
