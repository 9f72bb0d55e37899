"""`python -m trainer merge --job merge.json`: makes one PEFT adapter out of several weighted ones (PEFT's `cat`).

Invariants: B A of the result is sum(weight x scale x B A) of the parts, up to rounding; the same job gives the same
bytes, written whole or not at all; a job that cannot be merged is refused (trainer/command.py).

The factors of the parts stand side by side, so the rank is the sum of theirs. Where a module has fewer, zeros fill
up: one rank for all modules is what every loader knows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from pydantic import Field

from trainer.command import Closed, job_main
from trainer.peft_folder import CONFIG, WEIGHTS, BadAdapter, Factors, PeftFolder, read_peft_folder, write_peft_folder


class BadMerge(ValueError):
    """The adapters cannot be merged; the message names the field, the value and the fix."""


class Part(Closed):
    path: str = Field(min_length=1)
    weight: float


class MergeJob(Closed):
    """`output_dir` is made; an adapter that is there already is replaced."""

    adapters: list[Part] = Field(min_length=1)
    output_dir: str = Field(min_length=1)


def main(argv: list[str]) -> int:
    """Merges. Returns the exit code."""
    return job_main(
        argv,
        merge,
        program="merge",
        description="Merge PEFT adapters into one, with weights.",
        model=MergeJob,
        refusal=BadMerge,
    )


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
    with whole_folder(output) as partial:
        write_peft_folder(partial, base=parts[0][0].config.base_model_name_or_path, rank=rank, factors=factors)


@contextmanager
def whole_folder(output: Path) -> Iterator[Path]:
    """A folder that is to be made, and then takes the place of `output`."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as scratch:
        partial = Path(scratch) / "folder"
        yield partial
        shutil.rmtree(output, ignore_errors=True)
        partial.rename(output)


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
