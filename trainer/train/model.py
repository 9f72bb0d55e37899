"""The model that is trained: the base with a fresh LoRA.

Invariant: its weights at step 0 depend on the job alone."""

from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from trainer.command import BadInput, blaming
from trainer.model_folder import Experts, check_files, lora_modules

from .job import Job


def build_model(job: Job) -> Any:
    """The base model with its LoRA. Raises BadInput."""
    with blaming("base_model"):
        check_files(Path(job.base_model))
    base = load_base(job.base_model, job.dtype, whole=not job.shard_base)
    targets, unknown, choices = lora_modules(base, job.lora.target_modules)
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise BadInput(
            f"lora.target_modules {names}: no such module in {job.base_model}; choose from {', '.join(choices)}"
        )
    experts = [name for name, target in targets.items() if isinstance(target, Experts)]
    if experts and job.lora.dropout > 0:
        raise BadInput(f"lora.dropout {job.lora.dropout:g}: experts take none; set it to 0")
    # PEFT takes names that end alike for those of experts too; and it wraps a layer's parameters in the order given.
    wanted = [name for name in targets if name not in experts] if experts else job.lora.target_modules
    torch.manual_seed(job.seed)
    config = LoraConfig(
        r=job.lora.r,
        lora_alpha=job.lora.alpha,
        lora_dropout=job.lora.dropout,
        target_modules=wanted,
        target_parameters=experts or None,
        task_type="CAUSAL_LM",
    )
    return get_peft_model(base, config)


def load_base(folder: str, dtype: str, *, whole: bool = True) -> Any:
    """The base model, on the first GPU that this process may see if there is one; in main memory where that GPU is not
    to hold it whole."""
    placed = {"device_map": {"": 0}} if whole and torch.cuda.is_available() else {}
    return AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype), **placed)
