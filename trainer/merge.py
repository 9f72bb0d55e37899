"""Makes one PEFT adapter out of several weighted ones (PEFT's `cat`): their factors stand side by side, so the rank is
the sum of theirs.

Invariants: B A of the result is sum(weight x scale x B A) of the parts, up to rounding; the same job gives the same
bytes, written whole or not at all."""

from functools import reduce
from pathlib import Path

import torch
from pydantic import Field

from trainer.command import BadInput, Closed, blaming, whole_folder
from trainer.peft_folder import CONFIG, WEIGHTS, read_peft_folder, side_by_side, write_peft_folder


class Part(Closed):
    path: str = Field(min_length=1)
    weight: float


class MergeJob(Closed):
    """`output_dir` is made; an adapter that is there already is replaced."""

    adapters: list[Part] = Field(min_length=1)
    output_dir: str = Field(min_length=1)


def merge(job: MergeJob) -> dict[str, int]:
    """Reads the parts and writes the merged folder. Returns its rank. Raises BadInput."""
    output = Path(job.output_dir).resolve()
    if output.exists() and (not output.is_dir() or {file.name for file in output.iterdir()} - {CONFIG, WEIGHTS}):
        raise BadInput(f"output_dir {output}: holds something that is no adapter; name a new folder")
    if any(Path(part.path).resolve() == output for part in job.adapters):
        raise BadInput(f"output_dir {output}: is one of the adapters; name a new folder")
    parts = []
    for index, part in enumerate(job.adapters):
        with blaming(f"adapters.{index}.path"):
            parts.append(read_peft_folder(Path(part.path)))
    tensors = [tensor for part in parts for pair in part.factors.values() for tensor in pair]
    scaled = [
        {module: (a, b.double() * (asked.weight * part.config.scale)) for module, (a, b) in part.factors.items()}
        for part, asked in zip(parts, job.adapters, strict=True)
    ]
    # float32 where any part is.
    widths, factors = side_by_side(scaled, reduce(torch.promote_types, (tensor.dtype for tensor in tensors)))
    with whole_folder(output) as partial:
        write_peft_folder(partial, base=parts[0].config.base_model_name_or_path, rank=sum(widths), factors=factors)
    return {"rank": sum(widths)}
