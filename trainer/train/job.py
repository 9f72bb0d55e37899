"""The job file. Invariant: a `Job` holds only values that training can run with; everything else is a `BadJob` that
names the field, the value and the fix."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal


class BadJob(ValueError):
    """The job, or a batch of rollouts that belongs to it, cannot be trained on. Trying again does not help."""


@dataclass(frozen=True)
class Lora:
    r: int
    alpha: float
    target_modules: tuple[str, ...]
    dropout: float = 0.0


@dataclass(frozen=True)
class Job:
    """Fields as in docs/trainer-protocol.md; defaults are the preset `paper`."""

    base_model: str
    output_dir: str
    seed: int
    tasks: tuple[str, ...]
    steps: int
    groups_per_step: int
    group_size: int
    lora: Lora
    learning_rate: float
    max_grad_norm: float = 1.0
    clip: float = 0.2
    kl: float = 0.0
    temperature: float = 1.0
    advantage: Literal["group", "batch"] = "group"
    checkpoint_every: int = 4
    threads: int = 2
    dtype: Literal["float32", "bfloat16"] = "float32"
    tokens_per_forward: int = 4096
    gradient_checkpointing: bool = False

    def fingerprint(self) -> str:
        """Digest of what decides the weights of step N: a checkpoint of a job with another one cannot be continued."""
        free = {"output_dir", "steps", "checkpoint_every", "threads"}
        decisive = {name: value for name, value in asdict(self).items() if name not in free}
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


def read_job(path: str) -> Job:
    """Parses and checks a job file. Raises BadJob."""
    try:
        raw = json.loads(Path(path).read_text())
    except OSError as error:
        raise BadJob(f"--job {path}: {error.strerror}; name a readable job.json") from error
    except ValueError as error:
        raise BadJob(f"--job {path}: not JSON ({error}); write one JSON object") from error
    return parse_job(raw)


def parse_job(raw: Any) -> Job:
    """Checks a decoded job. Raises BadJob."""
    raw = _record("job", raw, Job)
    raw["lora"] = _parse_lora(raw["lora"])
    tasks = raw["tasks"]
    if not isinstance(tasks, list) or not tasks or not all(isinstance(task, str) for task in tasks):
        raise BadJob(f"tasks {_short(tasks)}: must be a list of at least one task id; give the tasks to draw from")
    raw["tasks"] = tuple(tasks)
    for name in ("base_model", "output_dir"):
        if not isinstance(raw[name], str) or not raw[name]:
            raise BadJob(f"{name} {_short(raw[name])}: must be a folder's path; name one")
    job = Job(**raw)
    _integer("seed", job.seed, 0)
    for name in ("steps", "groups_per_step", "checkpoint_every", "threads", "tokens_per_forward"):
        _integer(name, getattr(job, name), 1)
    if not isinstance(job.group_size, int) or job.group_size < 2:
        raise BadJob(
            f"group_size {_short(job.group_size)}: a group of one has no contrast; use an integer of at least 2"
        )
    for name in ("learning_rate", "kl"):
        _number(name, getattr(job, name), above=None)
    for name in ("max_grad_norm", "clip"):
        _number(name, getattr(job, name), above=0)
    if job.temperature != 1:
        raise BadJob(
            f"temperature {_short(job.temperature)}: the sampler's log-probs are those at temperature 1; use 1"
        )
    _choice("advantage", job.advantage, ("group", "batch"))
    _choice("dtype", job.dtype, ("float32", "bfloat16"))
    _choice("gradient_checkpointing", job.gradient_checkpointing, (True, False))
    if not (Path(job.base_model) / "config.json").is_file():
        raise BadJob(
            f"base_model {job.base_model}: no model folder (config.json) there; build the base model or name its folder"
        )
    return job


def _parse_lora(raw: Any) -> Lora:
    raw = _record("lora", raw, Lora)
    modules = raw["target_modules"]
    if not isinstance(modules, list) or not modules or not all(isinstance(name, str) for name in modules):
        raise BadJob(f"lora.target_modules {_short(modules)}: must be a list of module names; give at least one")
    lora = Lora(**{**raw, "target_modules": tuple(modules)})
    _integer("lora.r", lora.r, 1)
    _number("lora.alpha", lora.alpha, above=0)
    _number("lora.dropout", lora.dropout, above=None)
    if lora.dropout >= 1:
        raise BadJob(f"lora.dropout {lora.dropout}: must be below 1; the method uses 0")
    return lora


def _record(name: str, raw: Any, cls: type) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise BadJob(f"{name} {_short(raw)}: must be a JSON object; see docs/trainer-protocol.md")
    prefix = "" if name == "job" else f"{name}."
    known = {field.name: field for field in fields(cls)}
    for field in raw:
        if field not in known:
            raise BadJob(f"{prefix}{field} {_short(raw[field])}: no such field; known are {', '.join(known)}")
    optional = {field for field in known if hasattr(cls, field)}  # dataclass defaults are class attributes
    for field in known:
        if field not in raw and field not in optional:
            raise BadJob(f"{prefix}{field}: missing; add it, see docs/trainer-protocol.md")
    return dict(raw)


def _integer(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise BadJob(f"{name} {_short(value)}: must be an integer of at least {least}; change it")


def _number(name: str, value: Any, above: float | None) -> None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not good or (value <= above if above is not None else value < 0):
        rule = f"above {above}" if above is not None else "of at least 0"
        raise BadJob(f"{name} {_short(value)}: must be a finite number {rule}; change it")


def _choice(name: str, value: Any, options: tuple[Any, ...]) -> None:
    if value not in options:
        raise BadJob(f"{name} {_short(value)}: must be one of {', '.join(json.dumps(o) for o in options)}; choose one")


def _short(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
