"""The word-level tokenizer of the base models.

Invariant: ids, numbers, words, tool signatures and the fixed parts of a call (`name(arg="`, `", arg="`, `")`) are one
token each and white space is dropped, so encoding a rendered conversation gives back the ids that were sampled.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from transformers import PreTrainedTokenizerFast

PAD, UNKNOWN, END, ASSISTANT, CALL = "<|pad|>", "<|unk|>", "<|end|>", "<|assistant|>", "<|call|>"
SPECIAL = [PAD, UNKNOWN, END, "<|system|>", "<|user|>", ASSISTANT, "<|tool|>", CALL]
PIECE = r"""[a-z_]+\([a-z_]+="|", ?[a-z_]+="|"\)|[a-z_]+\([a-z_, ]*\)|[A-Za-z0-9_]+|[^\sA-Za-z0-9_]"""


def pieces(text: str) -> list[str]:
    """The tokens of a text without special tokens."""
    return re.findall(PIECE, text)


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
    tokens += ['")', *pieces(f"{environment['policy']} tools :")]
    for text in texts:
        tokens += pieces(text)
    return list(dict.fromkeys(tokens))


def build(environment: dict, texts: Iterable[str]) -> PreTrainedTokenizerFast:
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
