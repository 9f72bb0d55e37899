"""The job of a training on a Tinker server. Invariant: what the Tinker API has no place for is refused here, before
anything is asked of the server; what only the server itself can tell is found out by `probe.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, model_validator

from trainer.train.job import Job


class TinkerJob(Job):
    url: str = Field(pattern=r"^https?://\S+$")
    server_model: str | None
    """The base model's name there; None where the server has one alone."""

    INDECISIVE: ClassVar[set[str]] = Job.INDECISIVE | {"url", "dtype", "tokens_per_forward", "gradient_checkpointing"}

    @model_validator(mode="after")
    def _is_possible(self) -> TinkerJob:
        refused = {
            "lora.dropout": (self.lora.dropout != 0, "the Tinker API has no dropout, set it to 0"),
            "kl": (self.kl != 0, "the Tinker API has no such penalty, set it to 0"),
            "steps_ahead": (self.steps_ahead != 0, "its learner makes one step after the other, set it to 0"),
            "report_to": (self.report_to != "none", "its learner reports no curves, set it to none"),
            "temperature": (self.temperature != 1, "the server's log-probs are at temperature 1, set it to 1"),
        }
        for field, (is_refused, why) in refused.items():
            if is_refused:
                raise ValueError(f"{field}: {why}, or train with `trainer: {{kind: local}}`")
        return self


def vocabulary_of(base_model: str) -> int:
    config: dict[str, Any] = json.loads((Path(base_model) / "config.json").read_text())
    return (config.get("text_config") or config)["vocab_size"]
