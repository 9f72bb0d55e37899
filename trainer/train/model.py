"""The model that is trained: the base with a fresh LoRA.

Invariant: its weights at step 0 depend on the job alone."""

import copy
import shutil
from pathlib import Path
from typing import Any

import psutil
import torch
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

from trainer.adapter_config import WEIGHTS
from trainer.command import BadInput, blaming
from trainer.linear import to_bfloat16
from trainer.model_folder import check_files, lora_modules

from .job import Job


def build_model(job: Job) -> Any:
    """The base model with its LoRA. Raises BadInput."""
    with blaming("base_model"):
        check_files(Path(job.base_model))
    base = load_base(job.base_model, job.dtype)
    _, unknown, choices = lora_modules(base, job.lora.target_modules)
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise BadInput(
            f"lora.target_modules {names}: no such module in {job.base_model}; choose from {', '.join(choices)}"
        )
    torch.manual_seed(job.seed)
    config = LoraConfig(
        r=job.lora.r,
        lora_alpha=job.lora.alpha,
        lora_dropout=job.lora.dropout,
        target_modules=job.lora.target_modules,
        task_type="CAUSAL_LM",
    )
    return get_peft_model(base, config)


def load_base(folder: str, dtype: str) -> Any:
    """The base model, on the first GPU that this process may see if there is one. On a CPU, bfloat16 is the format of
    its linear layers' weights alone."""
    if torch.cuda.is_available():
        return AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype), device_map={"": 0})
    base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    if dtype == "bfloat16":
        to_bfloat16(base)
    return base


def needs_checkpointing(config: Any, tokens: int) -> bool:
    """Returns True if, without a GPU, float32 activations of a forward would take over half of the free memory. The
    estimate is for a LoRA on all linear layers of a Llama: 10 hidden and 4 intermediate vectors a token."""
    config = config.get_text_config()
    floats = 10 * config.hidden_size + 4 * getattr(config, "intermediate_size", 4 * config.hidden_size)
    activations = 4 * floats * config.num_hidden_layers * tokens
    return not torch.cuda.is_available() and activations > psutil.virtual_memory().available / 2


def b_norm(model: Any) -> float:
    """The norm of all B matrices of the LoRA together. It is 0 while the adapter changes nothing."""
    parts = [weight.detach().float().norm() for name, weight in model.named_parameters() if "lora_B" in name]
    return torch.stack(parts).norm().item()


def save_adapter(model: Any, folder: Path) -> None:
    """Writes the LoRA as a PEFT folder: adapter_config.json and adapter_model.safetensors, nothing else. The same LoRA,
    the same bytes: rollouts are known by them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    weights = get_peft_model_state_dict(model, save_embedding_layers=False)
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    config = copy.copy(model.peft_config["default"])
    config.inference_mode = True
    if isinstance(config.target_modules, set):  # PEFT would list it in the order of this process
        config.target_modules = sorted(config.target_modules)
    config.save_pretrained(str(folder))
