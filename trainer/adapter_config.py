"""PEFT's folder of a plain LoRA, for PEFT and vLLM: its files, their keys and its config. Nothing here needs torch."""

from collections.abc import Iterable
from typing import Any

CONFIG, WEIGHTS = ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")
PREFIX = "base_model.model."
"""Starts every key of the weights."""


def adapter_config(*, base: str | None, rank: int, alpha: float, modules: Iterable[str]) -> dict[str, Any]:
    """`modules` are whole names: what ends alike elsewhere in the model has no weights in the adapter."""
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "inference_mode": True,
        "r": rank,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "use_rslora": False,
        "use_dora": False,
        "rank_pattern": {},
        "alpha_pattern": {},
        "modules_to_save": None,
        "target_modules": sorted(modules),
    }
