"""Measures a Tinker server with steps whose outcome is known, because servers reduce a loss differently and ignore
unsupported settings silently.

A step of Adam with betas of 0 and a huge epsilon is a step of plain gradient descent, W += rate x c x G, where G is the
gradient of the log-probs and c the factor of the server's reduction. The exported weights give |dW|, and the log-probs
give dJ = G dW. So c = |dW|^2 / (rate x dJ) for every model."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pydantic import Field

from trainer.command import BadInput, Closed
from trainer.model_folder import unlikely_ids
from trainer.train.job import Lora, ModelFolder, Row

from .archive import WEIGHTS, Exported, read_export
from .job import vocabulary_of
from .server import Adapter, Server

EPSILON = 1e6
SMALL, LARGE, AIM = 0.05, 1.0, 0.3
"""Limits and target of dJ: below SMALL, rounding hides it; above LARGE, it is no longer linear."""


REDUCTIONS: dict[str, Callable[[Row, list[Row]], int]] = {
    "sum": lambda row, rows: 1,
    "mean of rows": lambda row, rows: len(rows),
    "mean of rows' means": lambda row, rows: (row.length - 1) * len(rows),
    "mean of tokens": lambda row, rows: sum(one.length - 1 for one in rows),
}
"""Known reductions of a step's rows. A row's factors are multiplied with the returned number, so that the server's
gradient is the sum over all rows."""


class Question(Closed):
    url: str = Field(pattern=r"^https?://\S+$")
    server_model: str | None
    base_model: ModelFolder
    lora: Lora
    max_grad_norm: float = Field(ge=0)
    tries: bool
    """True: makes a LoRA and takes some steps with it. False: only asks the server for its models."""


@dataclass(frozen=True)
class Found:
    reduction: str
    clips: bool
    modules: list[str]
    rank: int
    alpha: float


def check(question: Question) -> dict[str, Any]:
    """Returns {"model", "found"}. Raises BadInput if the server can't train such an adapter, and ServerFailed."""
    server = Server(question.url)
    model = server.base_model(question.server_model)
    if not question.tries:
        return {"model": model, "found": None}
    clip = question.max_grad_norm > 0
    vocabulary = vocabulary_of(question.base_model)
    adapter, found = probed(server, model, lora=question.lora, seed=1, vocabulary=vocabulary, clip=clip)
    server.leave(adapter)
    check_found(question.lora, question.max_grad_norm, found)
    return {"model": model, "found": asdict(found)}


def probed(server: Server, model: str, *, lora: Lora, seed: int, vocabulary: int, clip: bool) -> tuple[Adapter, Found]:
    """Makes and saves a LoRA, measures some steps with it, and returns the resumed adapter and the measurements.

    Raises BadInput for a server that can't be trained with, NotAnAdapter and ServerFailed."""
    tried = server.create(model, rank=lora.r, seed=seed, modules=lora.target_modules)
    try:
        with TemporaryDirectory(prefix="tinker-probe.") as folder:
            scratch = Path(folder)
            state = tried.save("begin")
            begin = _export(tried, scratch / "begin")
            found = _try(tried, begin, vocabulary=vocabulary, clip=clip, scratch=scratch)
            server.leave(tried)
            tried = server.resume(state, model)
            _export(tried, scratch / "resumed")
            if (scratch / "resumed" / WEIGHTS).read_bytes() != (scratch / "begin" / WEIGHTS).read_bytes():
                raise BadInput(f"{server.url}: what it saves is not what it loads; it can't be trained with")
            return tried, found
    except BaseException:
        server.leave(tried)
        raise


def _try(adapter: Adapter, begin: Exported, *, vocabulary: int, clip: bool, scratch: Path) -> Found:
    asked, beside = _row(3, 5, vocabulary), _row(2, 64, vocabulary)
    rate, before, clips = 1e-3, begin, False
    for number in range(12):
        change, gain = _descend(adapter, asked, beside, rate, before, scratch / f"step-{number}")
        after = read_export(scratch / f"step-{number}")
        if SMALL <= gain <= LARGE:
            break
        rate *= float(np.clip(AIM / gain, 0.01, 100)) if gain > 0 else 100.0
        before = after
    else:
        raise BadInput("the Tinker server: a step with a gradient changes no log-prob; it can't be trained with")
    factor = change**2 / (rate * gain)
    reduction = _closest(factor, asked, [asked, beside])
    if clip:
        clipped, _ = _descend(adapter, asked, beside, rate, after, scratch / "clipped", most=change / rate / 4)
        clips = clipped < change / 2
    return Found(reduction, clips, begin.modules, begin.rank, begin.alpha)


def check_found(lora: Lora, max_grad_norm: float, found: Found) -> None:
    """Raises BadInput for a setting that the server does not follow."""
    if found.rank != lora.r:
        raise BadInput(f"training.lora.r {lora.r}: the Tinker server made one of {found.rank}; set it to that")
    if found.alpha != lora.alpha:
        raise BadInput(f"training.lora.alpha {lora.alpha:g}: the Tinker server's is {found.alpha:g}; set it to that")
    if max_grad_norm > 0 and not found.clips:
        raise BadInput(f"training.maxGradNorm {max_grad_norm:g}: the Tinker server clips no gradients; set it to 0")
    names = sorted({module.rsplit(".", 1)[-1] for module in found.modules})
    matched = {one: [name for name in found.modules if f".{name}".endswith(f".{one}")] for one in lora.target_modules}
    trained = {name for of_one in matched.values() for name in of_one}
    if not all(matched.values()) or trained != set(found.modules):
        raise BadInput(
            f"training.lora.targetModules {', '.join(lora.target_modules)}: the Tinker server trains "
            f"{', '.join(names)}; name exactly these"
        )


def _descend(
    adapter: Adapter, asked: Row, beside: Row, rate: float, before: Exported, folder: Path, most: float = 0.0
) -> tuple[float, float]:
    """Takes one step and returns (|dW|, dJ). Its rows are sent in two requests, like the rows of large steps."""
    rows = [asked, beside]
    own = adapter.logprobs(rows)
    for row, now in zip(rows, own, strict=True):
        factor = np.ones(len(now)) if row is asked else np.zeros(len(now))
        adapter.add_gradient([row], [factor], [now])
    adapter.step(learning_rate=rate * EPSILON, beta1=0.0, beta2=0.0, eps=EPSILON, weight_decay=0.0, grad_clip_norm=most)
    after = _export(adapter, folder)
    change = sum(
        float(((after.tensors[key] - old).astype(np.float64) ** 2).sum()) for key, old in before.tensors.items()
    )
    gain = float((adapter.logprobs([asked])[0] - own[0]).sum())
    return change**0.5, gain


def _export(adapter: Adapter, folder: Path) -> Exported:
    adapter.export(f"probe-{folder.name}", folder)
    return read_export(folder)


def _closest(factor: float, row: Row, rows: list[Row]) -> str:
    """Returns the name of the reduction whose scale matches the measured factor. Raises BadInput if none does."""
    for name, scale in REDUCTIONS.items():
        if 0.8 < factor * scale(row, rows) < 1.25:
            return name
    raise BadInput(
        f"the Tinker server: it multiplies a gradient with {factor:.4g}, which no reduction explains that is known "
        f"({', '.join(REDUCTIONS)}); it can't be trained with"
    )


def _row(prompt: int, completion: int, vocabulary: int) -> Row:
    ids = unlikely_ids(prompt + completion, vocabulary)
    return Row(prompt_ids=ids[:prompt], completion_ids=ids[prompt:], logprobs=[0.0] * completion, mask=[1] * completion)
