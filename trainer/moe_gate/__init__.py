"""`python -m trainer train-gate --job gate.json`: one policy out of several adapters behind a gate inside the model.

Stdout has a line {"done": 3, "total": 21} for every step; a bad job is refused (trainer/command.py)."""

from __future__ import annotations

from trainer.command import job_main, tell_progress

from .job import BadGateJob, GateJob


def main(argv: list[str]) -> int:
    """Trains the gate. Returns the exit code."""

    def run(job: GateJob) -> None:
        from .train import train_gate  # imports torch: seconds

        train_gate(job, progress=tell_progress)

    return job_main(
        argv,
        run,
        program="train-gate",
        description="Train a gate over adapters on successful rollouts.",
        model=GateJob,
        refusal=BadGateJob,
    )
