"""The model that is trained: the base with a LoRA, a fresh one or one that goes on from an initial adapter.

Invariant: its weights at step 0 depend on the job alone; an initial adapter is taken as it is, and trains exactly the
modules that the job names."""

from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM

from trainer.command import BadInput, blaming
from trainer.model_folder import Experts, check_files, lora_modules
from trainer.peft_folder import read_peft_folder, size_of

from .job import LoraJob


def build_model(job: LoraJob) -> Any:
    """The base model with its LoRA. Raises BadInput."""
    with blaming("base_model"):
        check_files(Path(job.base_model))
    base = load_base(job.base_model, job.dtype, whole=not getattr(job, "shard_base", False))
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
    if job.init_adapter is None:
        config = LoraConfig(
            r=job.lora.r,
            lora_alpha=job.lora.alpha,
            lora_dropout=job.lora.dropout,
            target_modules=wanted,
            target_parameters=experts or None,
            task_type="CAUSAL_LM",
        )
        return get_peft_model(base, config)
    with blaming("init_adapter"):
        _check_adapter(job, targets)
    config = LoraConfig.from_pretrained(job.init_adapter)
    config.lora_dropout = job.lora.dropout
    config.base_model_name_or_path = job.base_model
    return PeftModel.from_pretrained(base, job.init_adapter, is_trainable=True, config=config)


def load_base(folder: str, dtype: str, *, whole: bool = True) -> Any:
    """The base model, on the first GPU that this process may see if there is one; in main memory where that GPU is not
    to hold it whole."""
    placed = {"device_map": {"": 0}} if whole and torch.cuda.is_available() else {}
    return AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype), **placed)


def _check_adapter(job: LoraJob, targets: dict[str, torch.nn.Linear | Experts]) -> None:
    """Raises BadInput for an adapter that is damaged, of another base or of other modules: PEFT would only warn."""
    factors = read_peft_folder(Path(job.init_adapter)).factors
    shapes = {name: size_of(a, b) for name, (a, b) in factors.items()}
    wanted = {
        name: " x ".join(map(str, one if isinstance(one, Experts) else (one.out_features, one.in_features)))
        for name, one in targets.items()
    }
    if foreign := sorted(shapes.keys() - wanted.keys()):
        problem = f"{foreign[0]} is none of the modules that lora.target_modules names in {job.base_model}"
        fix = "name an adapter of this base that has been trained on these modules"
    elif missing := sorted(wanted.keys() - shapes.keys()):
        problem = f"it has no factors for {missing[0]}, which lora.target_modules names"
        fix = "name an adapter that has, or leave the module out of lora.target_modules"
    elif unlike := sorted(name for name in shapes if shapes[name] != wanted[name]):
        problem = f"{unlike[0]} is {shapes[unlike[0]]}, in {job.base_model} {wanted[unlike[0]]}"
        fix = "name an adapter of this base"
    else:
        return
    raise BadInput(f"{job.init_adapter}: {problem}; {fix}")
