"""Reports a training's metrics to TensorBoard or Weights & Biases, through the callbacks of transformers.

Invariant: after a resume the curve holds every finished step once. The steps before it are reported again from
metrics.jsonl; they take the place of what an earlier attempt reported."""

import json
import os
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerState
from transformers.integrations import TensorBoardCallback, WandbCallback

from trainer.command import BadInput

from .checkpoint import METRICS
from .job import Job

TENSORBOARD = "tensorboard"
"""The folder of event files in the training's folder."""
STEP = "train/global_step"
"""The metric that WandbCallback draws all others by."""


def curve_callbacks(job: Job) -> list[TrainerCallback]:
    """Returns the callbacks that report to `job.report_to`. The training's folder must be locked, and its metrics.jsonl
    cut to the finished steps. Raises BadInput if wandb refuses its settings or key."""
    if job.report_to == "none":
        return []
    reporter = _tensorboard(job.output) if job.report_to == "tensorboard" else _wandb(job.output)
    return [reporter, _EarlierSteps(reporter, job.output / METRICS)]


def _tensorboard(output: Path) -> TrainerCallback:
    from torch.utils.tensorboard import SummaryWriter

    # Readers drop what earlier event files hold from this step on.
    return TensorBoardCallback(SummaryWriter(str(output / TENSORBOARD), purge_step=0))


def _wandb(output: Path) -> TrainerCallback:
    """The run's id is the name of the training's folder, so that every attempt continues the same run."""
    import wandb

    # The channel to the worker owns stdout.
    for name, value in {"WANDB_PROJECT": "campaign", "WANDB_DIR": str(output), "WANDB_CONSOLE": "off"}.items():
        os.environ.setdefault(name, value)
    # wandb starts a program of its own, which would show the key in its environment.
    settings = wandb.Settings(api_key=os.environ.pop("WANDB_API_KEY", None))
    try:
        run = wandb.init(id=output.name, name=output.name, resume="allow", settings=settings)
    except (wandb.errors.UsageError, wandb.errors.AuthenticationError) as error:
        raise BadInput(
            f"report_to wandb: {str(error).rstrip('.')}; set WANDB_API_KEY, or WANDB_MODE=offline"
        ) from error
    return _FromStep(run.summary.get(STEP, 0) + 1)


class _FromStep(WandbCallback):
    """Skips the steps that the resumed run already has: W&B keeps every row that it is sent."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self._first = first

    def on_log(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        if state.global_step >= self._first:
            super().on_log(args, state, control, **kwargs)


class _EarlierSteps(TrainerCallback):
    """Reports the steps that were finished before this process started."""

    def __init__(self, reporter: TrainerCallback, metrics: Path) -> None:
        self._reporter = reporter
        self._lines = metrics.read_text().splitlines() if metrics.exists() else []

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        for line in self._lines:
            metrics = json.loads(line)
            self._reporter.on_log(args, TrainerState(global_step=metrics.pop("step")), control, logs=metrics)
