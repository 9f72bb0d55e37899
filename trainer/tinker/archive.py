"""The PEFT folder that a Tinker server exports. Invariant: its config is written from the keys of its weights, since
servers leave target_modules out, and PEFT then loads a part of the adapter without a word."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trainer.adapter_config import CONFIG, PREFIX, WEIGHTS, adapter_config


class NotAnAdapter(RuntimeError):
    """The server's export is not a LoRA that PEFT can load."""


@dataclass(frozen=True)
class Exported:
    """`tensors` by their keys in the file."""

    tensors: dict[str, np.ndarray]
    modules: list[str]
    rank: int
    alpha: float


def read_export(folder: Path) -> Exported:
    """Reads an exported folder. Raises NotAnAdapter."""
    try:
        config = json.loads((folder / CONFIG).read_text())
        tensors = _tensors(folder / WEIGHTS)
        rank, alpha = int(config["r"]), float(config["lora_alpha"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotAnAdapter(f"{folder}: {error!r}") from error
    for key, tensor in tensors.items():
        if rank not in tensor.shape:
            raise NotAnAdapter(f"{folder}: {key} is {tensor.shape}, its config says r {rank}")
    modules = sorted({key.removeprefix(PREFIX).rpartition(".lora_")[0] for key in tensors})
    if tensors.keys() != {f"{PREFIX}{module}.lora_{factor}.weight" for module in modules for factor in "AB"}:
        raise NotAnAdapter(f"{folder}: {', '.join(tensors)} are not lora_A and lora_B of each module")
    return Exported(tensors, modules, rank, alpha)


def write_config(folder: Path, exported: Exported, base: str) -> None:
    config = adapter_config(base=base, rank=exported.rank, alpha=exported.alpha, modules=exported.modules)
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n")


def _tensors(path: Path) -> dict[str, np.ndarray]:
    """Reads a safetensors file; bfloat16, which numpy lacks, becomes float32. Raises ValueError for other types."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header: dict[str, Any] = json.loads(content[8 : 8 + size])
    header.pop("__metadata__", None)
    return {name: _tensor(content[8 + size :], entry) for name, entry in header.items()}


def _tensor(data: bytes, entry: dict[str, Any]) -> np.ndarray:
    begin, end = entry["data_offsets"]
    match entry["dtype"]:
        case "F32" | "F16" as dtype:
            flat = np.frombuffer(data[begin:end], dtype="<f4" if dtype == "F32" else "<f2")
        case "BF16":
            flat = (np.frombuffer(data[begin:end], dtype="<u2").astype(np.uint32) << 16).view(np.float32)
        case dtype:
            raise ValueError(f"numbers are {dtype}, not F32, F16 or BF16")
    return flat.reshape(entry["shape"])
