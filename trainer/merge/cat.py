"""PEFT's `cat` merge. Invariant: B A of the result is sum(weight x scale x B A) of the parts, up to rounding.

The factors of the parts stand side by side, so the rank is the sum of theirs. Where a module has fewer, zeros fill
up: one rank for all modules is what every loader knows."""

from __future__ import annotations

import shutil
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from trainer.peft_folder import CONFIG, WEIGHTS, BadAdapter, Factors, PeftFolder, read_peft_folder, write_peft_folder

from .job import BadMerge, MergeJob


def merge(job: MergeJob) -> None:
    """Reads the parts and writes the merged folder. Raises BadMerge."""
    output = Path(job.output_dir).resolve()
    _check_output(job, output)
    parts = []
    for index, part in enumerate(job.adapters):
        try:
            parts.append((read_peft_folder(Path(part.path)), part.weight))
        except BadAdapter as error:
            raise BadMerge(f"adapters.{index}.path {error}") from error
    rank, factors = side_by_side(parts)
    output.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as scratch:
        aside = Path(scratch) / "adapter"
        write_peft_folder(aside, base=parts[0][0].config.base_model_name_or_path, rank=rank, factors=factors)
        if output.exists():
            shutil.rmtree(output)
        aside.rename(output)


def side_by_side(parts: list[tuple[PeftFolder, float]]) -> tuple[int, Factors]:
    """(Rank, factors) of the weighted sum. Raises BadMerge for parts of different base models."""
    widths = [max(a.shape[0] for a, _ in part.factors.values()) for part, _ in parts]
    tensors = [tensor for part, _ in parts for pair in part.factors.values() for tensor in pair]
    dtype = reduce(torch.promote_types, (tensor.dtype for tensor in tensors))
    factors: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
    for module in sorted({module for part, _ in parts for module in part.factors}):
        begin = 0
        for index, ((part, weight), width) in enumerate(zip(parts, widths, strict=True)):
            if module in part.factors:
                a, b = part.factors[module]
                if module not in factors:
                    shape_a, shape_b = (sum(widths), a.shape[1]), (b.shape[0], sum(widths))
                    factors[module] = torch.zeros(shape_a, dtype=dtype), torch.zeros(shape_b, dtype=dtype)
                wide_a, wide_b = factors[module]
                if (wide_b.shape[0], wide_a.shape[1]) != (b.shape[0], a.shape[1]):
                    raise BadMerge(
                        f"adapters.{index}: {module} is {b.shape[0]} x {a.shape[1]}, in an adapter before it "
                        f"{wide_b.shape[0]} x {wide_a.shape[1]}; merge adapters of one base model"
                    )
                wide_a[begin : begin + a.shape[0]] = a
                wide_b[:, begin : begin + a.shape[0]] = b.double() * (weight * part.config.scale(module))
            begin += width
    return sum(widths), factors


def _check_output(job: MergeJob, output: Path) -> None:
    if output.exists() and (not output.is_dir() or {file.name for file in output.iterdir()} - {CONFIG, WEIGHTS}):
        raise BadMerge(f"output_dir {output}: holds something that is no adapter; name a new folder")
    if any(Path(part.path).resolve() == output for part in job.adapters):
        raise BadMerge(f"output_dir {output}: is one of the adapters; name a new folder")
