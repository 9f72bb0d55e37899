"""One training with GRPO on rollouts that the worker makes, whose LoRA a Tinker server holds and changes.

Invariants: every finished step is in the training's folder, as a checkpoint with the adapter and the path to the
server's own state, before the worker is notified. An update of the server that was not saved is made again from the
previous state. The server gets token ids, log-probs and factors, and no text."""

import json
import math
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from trainer.command import BadInput, sha256
from trainer.train.channel import Channel, Interrupted
from trainer.train.checkpoint import (
    append_metrics,
    new_checkpoint,
    only_trainer,
    policy_of,
    resume_point,
    whole_ones,
)
from trainer.train.groups import check_gap, tasks_of_all_steps, training_batch
from trainer.train.job import Row, read_groups
from trainer.train.outliers import divergence

from .archive import WEIGHTS, read_export, write_config
from .job import TinkerJob, vocabulary_of
from .probe import REDUCTIONS, check_found, probed
from .server import Adapter, Server, StateLost
from .update import token_factors

ADAM = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0}
"""The defaults of torch, as in trainer.train."""
HELD = "held.json"
CALL_TOKENS = 32_768
"""Tokens of one request to the server, at most. Progress is reported after each request."""
STATE = "tinker.json"
"""A file of each checkpoint: the server's path to the saved state, and how the server reduces a loss."""


def run(job: TinkerJob, channel: Channel) -> None:
    """Trains until done or interrupted and says so.

    Raises FolderBusy, BadInput, DamagedBatch, RolloutsFailed, ProtocolError, Diverged, SamplerDiffers, ServerFailed."""
    with only_trainer(job.output):
        training = _Training(job, channel)
        try:
            training.run()
        except Interrupted:
            channel.send("interrupted", step=training.step)
        finally:
            training.leave()


class _Training:
    def __init__(self, job: TinkerJob, channel: Channel) -> None:
        self._job, self._channel, self._output = job, channel, job.output
        self.step, self._checkpoint = resume_point(job)
        self._server: Server | None = None
        self._adapter: Adapter | None = None
        self._reduction = "sum"
        self._vocabulary = vocabulary_of(job.base_model)

    def run(self) -> None:
        job, channel = self._job, self._channel
        if self.step < job.steps:
            self._server = Server(job.url, self._output / HELD)
            self._begin(self._server)
        channel.send("ready", step=self.step)
        self._tell()  # again after a resume: the worker that was notified may have died since
        size = job.groups_per_step
        tasks = tasks_of_all_steps(job)
        while self.step < job.steps:
            metrics = self._train(tasks[self.step * size : (self.step + 1) * size])
            self.step += 1
            append_metrics(self._output, self.step, metrics)
            channel.send("step", step=self.step, metrics=metrics)
            self._save()
            self._tell()
        channel.send("done", step=job.steps)

    def _tell(self) -> None:
        self._channel.send("checkpoint", step=self.step, policy=policy_of(self._checkpoint))

    def leave(self) -> None:
        if self._server and self._adapter:
            self._server.leave(self._adapter)

    def _begin(self, server: Server) -> None:
        """Resumes the last saved state, or begins with a new LoRA. Raises BadInput if all saved states are lost."""
        job = self._job
        model = server.base_model(job.server_model)
        lost: list[str] = []
        for step, checkpoint in list(whole_ones(self._output)):
            state = json.loads((checkpoint / STATE).read_text())
            try:
                self._adapter = self._resumed(server, model, state["state"], checkpoint)
            except StateLost as error:
                lost.append(str(error))
                continue
            self._reduction = state["reduction"]
            # The rollouts of later steps are in the store; their updates are made again.
            for later in [path for number, path in whole_ones(self._output) if number > step]:
                shutil.rmtree(later)
            self.step, self._checkpoint = resume_point(job)
            return
        if lost:
            why = f"{'; '.join(lost)}; a Tinker server takes no adapter, so that the training can't be resumed"
            raise BadInput(f"output_dir {job.output_dir}: {why}; remove the folder to start again")
        self._adapter, found = probed(
            server,
            model,
            lora=job.lora,
            seed=job.seed,
            vocabulary=self._vocabulary,
            clip=job.max_grad_norm > 0,
        )
        check_found(job.lora, job.max_grad_norm, found)
        self._reduction = found.reduction
        self._save()

    def _resumed(self, server: Server, model: str, state: str, checkpoint: Path) -> Adapter:
        """Resumes a saved state. Raises StateLost, also for other weights: SkyRL loads nothing from lost files."""
        adapter = server.resume(state, model)
        with TemporaryDirectory(dir=self._output, prefix=".resumed.") as scratch:
            adapter.export(f"resumed-{checkpoint.name}", Path(scratch))
            if sha256(Path(scratch) / WEIGHTS) == sha256(checkpoint / WEIGHTS):
                return adapter
        server.leave(adapter)
        raise StateLost(f"{server.url} has other weights under {state} than were saved")

    def _train(self, tasks: list[str]) -> dict[str, float]:
        """One step, from its rollouts to the server's update. Returns its metrics."""
        job, adapter, begun = self._job, self._adapter, time.perf_counter()
        fields = {"tasks": tasks, "group_size": job.group_size, "policy": policy_of(self._checkpoint)}
        answer = self._channel.ask("rollouts", step=self.step, **fields, answers={"rollouts": "file"})
        tasks = answer.get("tasks", tasks)
        groups = read_groups(Path(answer["file"]), tasks=tasks, group_size=job.group_size, vocabulary=self._vocabulary)
        played = time.perf_counter()
        batch = training_batch(groups, job.advantage)
        calls = list(_calls(batch.rows))
        own: list[np.ndarray] = [np.empty(0)] * len(batch.rows)
        for done, call in enumerate(calls, start=1):
            for index, logprobs in zip(call, adapter.logprobs([batch.rows[i] for i in call]), strict=True):
                own[index] = logprobs
            self._channel.progress(step=self.step, done=done, total=2 * len(calls))
        update = token_factors(job, batch, own)
        if not math.isfinite(update.loss):
            raise divergence("loss", update.loss, self.step + 1, update.extreme, batch.names)
        check_gap(job, update.logprob_gap or 0.0, self.step + 1)
        for done, call in enumerate(calls, start=len(calls) + 1):
            rows = [batch.rows[i] for i in call]
            factors = [update.factors[i] * REDUCTIONS[self._reduction](batch.rows[i], batch.rows) for i in call]
            adapter.add_gradient(rows, factors, [own[i] for i in call])
            self._channel.progress(step=self.step, done=done, total=2 * len(calls))
        forward = trained = sum(row.length for row in batch.rows)
        if not calls:  # as in trainer.train: a step without a gradient still applies the momentum
            row = groups[0][0].rows[0]
            trained = row.length
            adapter.add_gradient([row], [np.zeros(len(row.completion_ids))], [np.zeros(len(row.completion_ids))])
        told = adapter.step(learning_rate=job.learning_rate, grad_clip_norm=job.max_grad_norm, **ADAM)
        norms = [value for name, value in told.items() if name.endswith("grad_norm")]
        if not all(map(math.isfinite, norms)):
            raise divergence("grad_norm", norms[0], self.step + 1, update.extreme, batch.names)
        return {
            "loss": update.loss,
            **({"grad_norm": norms[0]} if norms else {}),
            "learning_rate": job.learning_rate,
            **batch.metrics,
            "rows": len(batch.rows),
            "loss_tokens": batch.tokens,
            "masked_rows": update.masked_rows,
            "bounded_tokens": update.bounded_tokens,
            "forward_tokens": forward,
            "trained_tokens": trained,
            **({} if update.logprob_gap is None else {"logprob_gap": update.logprob_gap}),
            "rollouts_seconds": played - begun,
            "update_seconds": time.perf_counter() - played,
        }

    def _save(self) -> None:
        """Writes a checkpoint with the current adapter, and saves the state to resume from on the server."""
        fingerprint = self._job.fingerprint()
        with new_checkpoint(self._output, self.step, fingerprint=fingerprint) as (partial, self._checkpoint):
            state = self._adapter.save(f"step-{self.step}")
            self._adapter.export(f"step-{self.step}", partial)
            write_config(partial, read_export(partial), self._job.base_model)
            (partial / STATE).write_text(json.dumps({"state": state, "reduction": self._reduction}))
        # Two states are enough on the server: one that is lost costs an update.
        earlier = self._output / f"checkpoint-{self.step - 2}" / STATE
        if self._server and earlier.is_file():
            self._server.delete(json.loads(earlier.read_text())["state"])


def _calls(rows: list[Row]) -> Iterator[list[int]]:
    """Yields the indexes of the rows of each request: rows of similar length, at most CALL_TOKENS padded tokens."""
    call: list[int] = []
    for index in sorted(range(len(rows)), key=lambda i: rows[i].length):
        if call and rows[index].length * (len(call) + 1) > CALL_TOKENS:
            yield call
            call = []
        call.append(index)
    if call:
        yield call
