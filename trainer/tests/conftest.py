"""Fixtures shared by the Python tests. Invariant: built from fixed seeds, without network, once per session."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

# Before torch is imported: threads that wait for each other take longer than one that computes. All on the CPU.
os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "CUDA_VISIBLE_DEVICES": ""}

WORDS = (
    "you are a help desk . look the account up first cancel only pending items return delivered not allowed done "
    "red blue green lamp chair desk i10 i11 i12 i42 i77 u17 u18 pending delivered 5 10 15 30 35 please and thanks bye "
    "the is my what much how ? ; : , ( ) tools error unknown item sorry get_account cancel_item return_item user "
    "id refund"
).split()
FRAGMENTS = ['get_account(user="', 'cancel_item(item="', 'return_item(item="', '", id="', '", refund="', '")']
SPECIAL = ["<|pad|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|call|>", "<|end|>"]
EOS = SPECIAL.index("<|end|>")

TARGETS = {
    "lfm2": (["q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3"], ["q_proj", "w2"]),
    "llama": (["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], ["v_proj"]),
}

CHAT_TEMPLATE = """\
{%- for m in messages -%}
{%- if m.role == 'assistant' -%}
<|assistant|> {{ m.content or '' }}
{%- for c in m.tool_calls or [] -%}
<|call|>{{ c.function.name }}(
{%- for k, v in c.function.arguments.items() -%}{{ ', ' if not loop.first }}{{ k }}="{{ v }}"{%- endfor -%}
)
{%- endfor -%}
<|end|>
{%- else -%}
<|{{ m.role }}|> {{ m.content }}
{%- if m.role == 'system' and tools %} tools :
{%- for t in tools %} {{ t.function.name }}({{ t.function.parameters.properties | join(', ') }}){%- endfor -%}
{%- endif -%}
<|end|>
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}
"""


def save_tokenizer(folder: Path) -> int:
    """Writes a word-level tokenizer in the shipped text format; returns its vocabulary size."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokens = list(dict.fromkeys([*SPECIAL, "<|unk|>", *FRAGMENTS, *WORDS]))
    tokenizer = Tokenizer(models.WordLevel({t: i for i, t in enumerate(tokens)}, unk_token="<|unk|>"))
    fragments = Regex(r'\w+\(\w+="|", \w+="|"\)|\w+|[^\w\s]')
    tokenizer.pre_tokenizer = pre_tokenizers.Split(fragments, "removed", invert=True)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<|pad|>",
        eos_token="<|end|>",
        unk_token="<|unk|>",
        additional_special_tokens=SPECIAL[1:-1],
        chat_template=CHAT_TEMPLATE,
    ).save_pretrained(folder)
    return len(tokens)


def save_hermes_model(folder: Path, context: int = 2048) -> Path:
    """Writes a random Llama that is spoken to as Qwen3 is: chat template and calls of Hermes, and a tokenizer over
    bytes in which most texts have several spellings."""
    import torch
    import trl
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    pairs = [("t", "h"), ("e", "r"), ("a", "c"), ("o", "u"), ("n", "t"), ("i", "n"), ("{", '"'), ("er", "s")]
    merged = [first + second for first, second in pairs]
    tokens = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet()), *merged]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens(["<tool_call>", "</tool_call>"])
    template = Path(trl.__file__).parent / "chat_templates" / "qwen3_instruct_2507.jinja"
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=special[0],
        eos_token=special[2],
        additional_special_tokens=special[1:2],
        chat_template=template.read_text(),
    ).save_pretrained(folder)
    torch.manual_seed(1)
    config = LlamaConfig(
        **{"vocab_size": tokenizer.get_vocab_size(), "max_position_embeddings": context, "initializer_range": 0.1},
        **{"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 3, "tie_word_embeddings": True},
        **{"num_attention_heads": 4, "num_key_value_heads": 2},
        **{"bos_token_id": None, "eos_token_id": 2, "pad_token_id": 0},
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def save_tiny_model(folder: Path, kind: str = "lfm2", spread: float = 0.25) -> Path:
    """Writes a random model with tokenizer. `kind`: "lfm2" (convolutions and attention), "llama" (grouped query
    attention), "qwen2", "qwen3" or "moe" (Qwen3-MoE of four experts, untied). `spread`: the weights' standard
    deviation, wide enough for peaked distributions."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    kinds = {
        "lfm2": {"layer_types": ["conv", "full_attention"] * 2, "block_auto_adjust_ff_dim": False},
        **{"llama": {}, "qwen2": {}},
        "qwen3": {"head_dim": 32, "num_hidden_layers": 2, "tie_word_embeddings": False},
        "moe": {
            **{"moe_intermediate_size": 16, "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2},
            **{"num_hidden_layers": 2, "tie_word_embeddings": False},
        },
    }
    shape = {
        "vocab_size": save_tokenizer(folder),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "initializer_range": spread,
        "pad_token_id": 0,
        "bos_token_id": None,
        "eos_token_id": EOS,
        "tie_word_embeddings": True,
    }
    torch.manual_seed(7)
    config = AutoConfig.for_model("qwen3_moe" if kind == "moe" else kind, **{**shape, **kinds[kind]})
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


def save_adapter(
    folder: Path,
    model_dir: Path,
    seed: int,
    targets: list[str],
    rank: int = 4,
    alpha: int = 8,
    spread: float = 0.15,
    **settings: object,
) -> Path:
    """Writes a random PEFT LoRA (A and B both non-zero) for a model. `settings` are more of LoraConfig's."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    fixed = {"lora_dropout": 0.0, "task_type": "CAUSAL_LM"}
    config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=targets, **fixed, **settings)
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(model_dir), config)
    filled(model, seed, spread).save_pretrained(folder)
    return folder


def filled(model: Any, seed: int, spread: float, part: str = "lora_") -> Any:
    """The model, whose LoRA is random: as it begins it changes nothing."""
    import torch

    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if part in name:
                parameter.normal_(0, spread)
    return model


def _model_fixture(kind: str):
    @pytest.fixture(scope="session", name=f"tiny_{kind}_dir")
    def model(tmp_path_factory):
        return save_tiny_model(tmp_path_factory.mktemp(kind), kind=kind)

    return model


tiny_lfm2_dir, tiny_llama_dir, tiny_moe_dir = map(_model_fixture, ("lfm2", "llama", "moe"))


@pytest.fixture
def ask(tmp_path):
    """Exit code of a command, and its answer where it gives one."""

    def ask(command: str, question: dict) -> tuple[int, Any]:
        from trainer.__main__ import main

        asked, answer = tmp_path / "question.json", tmp_path / "answer.json"
        answer.unlink(missing_ok=True)
        asked.write_text(json.dumps(question))
        code = main([command, "--in", str(asked), "--out", str(answer)])
        return code, json.loads(answer.read_text()) if answer.exists() else None

    return ask


@pytest.fixture(scope="session")
def tiny_model_dir(tiny_lfm2_dir):
    """4 layers, hidden 32, context 256."""
    return tiny_lfm2_dir


@pytest.fixture(scope="session")
def shop_tools():
    """Tool schemas in the OpenAI shape that the tokenizer's fragments can call."""
    text = {"type": "string"}
    parameters = {
        "get_account": {"user": text},
        "cancel_item": {"item": text, "id": text},
        "return_item": {"item": text, "id": text, "refund": {"type": "integer"}},
    }
    functions = (
        {"name": n, "description": n, "parameters": {"type": "object", "properties": p}} for n, p in parameters.items()
    )
    return [{"type": "function", "function": function} for function in functions]


@pytest.fixture(scope="session")
def adapters(tiny_model_dir, tmp_path_factory):
    """Folders of two random adapters of the tiny Lfm2."""
    folder = tmp_path_factory.mktemp("served-adapters")
    return [str(save_adapter(folder / f"a{n}", tiny_model_dir, n, ["q_proj", "w1", "in_proj"])) for n in range(2)]


@pytest.fixture(scope="session")
def url(tiny_model_dir):
    """A policy server of the tiny Lfm2."""
    from trainer.tests.serving import running_server

    with running_server(tiny_model_dir, "--max-batch", "16") as (_, url):
        yield url


@pytest.fixture(scope="session", params=["lfm2", "llama"])
def setting(request, tiny_lfm2_dir, tiny_llama_dir, tmp_path_factory):
    """A model folder and two adapters of different rank and targets for it, with PEFT's own view of each."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model = {"lfm2": tiny_lfm2_dir, "llama": tiny_llama_dir}[request.param]
    folder = tmp_path_factory.mktemp("adapters")
    all_modules, some_modules = TARGETS[request.param]
    paths = {
        "one": save_adapter(folder / "one", model, 1, all_modules, rank=4),
        "two": save_adapter(folder / "two", model, 2, some_modules, rank=8, alpha=4),
    }
    plain = {"base": AutoModelForCausalLM.from_pretrained(model).eval()}
    for name, path in paths.items():
        plain[name] = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(model), path).eval()
    return model, paths, plain
