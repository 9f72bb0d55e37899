"""The model that is trained: the base with a LoRA, a fresh one or one that goes on from an initial adapter.

Invariant: its weights at step 0 depend on the job alone; an initial adapter is taken as it is, and trains exactly the
modules that the job names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM

from trainer.model_folder import BadModel, check_files, lora_modules
from trainer.peft_folder import BadAdapter, Factors, read_peft_folder

from .job import BadJob, Job


def build_model(job: Job) -> Any:
    """The base model with its LoRA. Raises BadJob."""
    try:
        check_files(Path(job.base_model))
    except BadModel as error:
        raise BadJob(f"base_model {error}") from error
    # Where there are GPUs, the layers are spread over all that this trainer may see.
    spread = {"device_map": "auto"} if torch.cuda.is_available() else {}
    base = AutoModelForCausalLM.from_pretrained(job.base_model, dtype=getattr(torch, job.dtype), **spread)
    targets = target_modules(job, base)
    torch.manual_seed(job.seed)
    if job.init_adapter is None:
        config = LoraConfig(
            r=job.lora.r,
            lora_alpha=job.lora.alpha,
            lora_dropout=job.lora.dropout,
            target_modules=job.lora.target_modules,
            task_type="CAUSAL_LM",
        )
        return get_peft_model(base, config)
    _check_adapter(job, targets)
    config = LoraConfig.from_pretrained(job.init_adapter)
    config.lora_dropout = job.lora.dropout
    config.base_model_name_or_path = job.base_model
    return PeftModel.from_pretrained(base, job.init_adapter, is_trainable=True, config=config)


def target_modules(job: Job, base: Any) -> dict[str, torch.nn.Linear]:
    """The modules that the job trains, by their whole names. Raises BadJob."""
    found, unknown, choices = lora_modules(base, job.lora.target_modules)
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise BadJob(
            f"lora.target_modules {names}: no such module in {job.base_model}; choose from {', '.join(choices)}"
        )
    return found


def _check_adapter(job: Job, targets: dict[str, torch.nn.Linear]) -> None:
    """Raises BadJob for an adapter that is damaged, of another base or of other modules: PEFT would only warn."""

    def bad(problem: str) -> BadJob:
        return BadJob(f"init_adapter {job.init_adapter}: {problem}")

    try:
        factors = read_peft_folder(Path(job.init_adapter)).factors
    except BadAdapter as error:
        raise BadJob(f"init_adapter {error}") from error
    if foreign := sorted(set(factors) - set(targets)):
        raise bad(
            f"{foreign[0]} is none of the modules that lora.target_modules names in {job.base_model}; "
            "name an adapter of this base that has been trained on these modules"
        )
    if missing := sorted(set(targets) - set(factors)):
        raise bad(
            f"it has no factors for {missing[0]}, which lora.target_modules names; "
            "name an adapter that has, or leave the module out of lora.target_modules"
        )
    for name, (rows, columns) in _shapes(factors).items():
        module = targets[name]
        if (rows, columns) != (module.out_features, module.in_features):
            raise bad(
                f"{name} is {rows} x {columns}, in {job.base_model} {module.out_features} x {module.in_features}; "
                "name an adapter of this base"
            )


def _shapes(factors: Factors) -> dict[str, tuple[int, int]]:
    return {name: (b.shape[0], a.shape[1]) for name, (a, b) in factors.items()}
