"""The job of a training on a Tinker server. The campaign's schema refuses settings that the Tinker API lacks, and
`probe.py` measures the properties that only the server knows."""

from __future__ import annotations

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
