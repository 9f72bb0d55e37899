"""Reports a training's metrics to TensorBoard or Weights & Biases, through the callbacks of transformers."""

import os
from pathlib import Path

from transformers import TrainerCallback
from transformers.integrations import TensorBoardCallback, WandbCallback

from trainer.command import BadInput

from .job import Job


def curve_callbacks(job: Job, step: int) -> list[TrainerCallback]:
    """Returns the callbacks that report to `job.report_to` from the step after `step`. The training's folder must be
    locked. Raises BadInput if wandb refuses its settings or key."""
    if job.report_to == "tensorboard":
        from torch.utils.tensorboard import SummaryWriter

        # Readers drop what an earlier attempt reported of the steps that are made again.
        return [TensorBoardCallback(SummaryWriter(str(job.output / "tensorboard"), purge_step=step + 1))]
    return [_wandb(job.output)] if job.report_to == "wandb" else []


def _wandb(output: Path) -> TrainerCallback:
    """The run's id is the name of the training's folder, so that every attempt continues the same run."""
    import wandb

    # The channel to the worker owns stdout.
    for name, value in {"WANDB_PROJECT": "campaign", "WANDB_DIR": str(output), "WANDB_CONSOLE": "off"}.items():
        os.environ.setdefault(name, value)
    # wandb starts a program of its own, which would show the key in its environment.
    settings = wandb.Settings(api_key=os.environ.pop("WANDB_API_KEY", None))
    try:
        wandb.init(id=output.name, name=output.name, resume="allow", settings=settings)
    except (wandb.errors.UsageError, wandb.errors.AuthenticationError) as error:
        raise BadInput(
            f"report_to wandb: {str(error).rstrip('.')}; set WANDB_API_KEY, or WANDB_MODE=offline"
        ) from error
    return WandbCallback()
