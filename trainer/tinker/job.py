"""The job of a training on a Tinker server. What its API has no place for (dropout, KL, an initial adapter, rollouts
ahead or at another temperature than 1) is refused in a campaign file; what only the server itself can tell is found
out by `probe.py`."""

import json
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from trainer.train.job import Job


class TinkerJob(Job):
    url: str = Field(pattern=r"^https?://\S+$")
    server_model: str | None
    """The base model's name there; None where the server has one alone."""

    INDECISIVE: ClassVar[set[str]] = Job.INDECISIVE | {"url", "dtype", "tokens_per_forward", "gradient_checkpointing"}


def vocabulary_of(base_model: str) -> int:
    config: dict[str, Any] = json.loads((Path(base_model) / "config.json").read_text())
    return (config.get("text_config") or config)["vocab_size"]
