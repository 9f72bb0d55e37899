"""A training that starts from an adapter: the trainer as a process, with real gradients."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from trainer.merge import main as merge
from trainer.peft_folder import read_peft_folder
from trainer.tests.conftest import save_adapter, save_tiny_model
from trainer.tests.train_harness import LORA, ROOT, TARGETS, Message, Worker, make_job
from trainer.train.job import BadJob, parse_job
from trainer.train.model import build_model

STEPS = 3
WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"


@pytest.fixture(scope="module")
def parts_sum(tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sum of two adapters: of rank 6, where the job says 4."""
    folder = tmp_path_factory.mktemp("parts")
    parts = [save_adapter(folder / f"{n}", tiny_model_dir, n, TARGETS, rank=2 * n, spread=0.05) for n in (1, 2)]
    job = folder / "merge.json"
    adapters = [{"path": str(part), "weight": 1} for part in parts]
    job.write_text(json.dumps({"adapters": adapters, "output_dir": str(folder / "sum")}))
    assert merge(["--job", str(job)]) == 0
    return folder / "sum"


def worker(base: Path, folder: Path, adapter: Path, **changes: object) -> Worker:
    return Worker(folder, make_job(base, folder / "out", steps=STEPS, init_adapter=str(adapter), **changes))


@pytest.fixture(scope="module")
def uninterrupted(tiny_model_dir: Path, parts_sum: Path, tmp_path_factory: pytest.TempPathFactory) -> Worker:
    run = worker(tiny_model_dir, tmp_path_factory.mktemp("uninterrupted"), parts_sum)

    def keep(message: Message, process: subprocess.Popen) -> None:
        """The folder of step 0 is gone at the next request."""
        if message["type"] == "rollouts":
            shutil.copytree(message["policy"]["adapter"], run.folder / "asked" / f"step-{message['step']}")

    return run.run(on_message=keep)


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / WEIGHTS)


def change_of(folder: Path) -> dict[str, torch.Tensor]:
    """By module: what the adapter adds to its weight."""
    adapter = read_peft_folder(folder)
    return {name: adapter.config.scale(name) * b @ a for name, (a, b) in adapter.factors.items()}


def test_step_0_is_the_initial_adapter_and_training_moves_it(uninterrupted: Worker, parts_sum: Path) -> None:
    assert uninterrupted.exit_code == 0, uninterrupted.stderr
    initial, first = weights_of(parts_sum), weights_of(uninterrupted.folder / "asked" / "step-0")
    assert initial.keys() == first.keys()
    assert all(torch.equal(initial[name], first[name]) for name in initial)
    # The rollouts of step 0 were sampled by the worker with that adapter: the trainer's log-probs are theirs.
    assert uninterrupted.of_type("step")[0]["metrics"]["logprob_gap"] < 1e-5
    last = uninterrupted.folder / "out" / f"checkpoint-{STEPS}"
    moved = weights_of(last)
    assert all((moved[name] - tensor).abs().max() > 0 for name, tensor in initial.items())


def test_what_is_saved_holds_the_sum_and_needs_no_other_adapter(uninterrupted: Worker, parts_sum: Path) -> None:
    """At a learning rate of 0 the change of weights is the sum's; ours is that and what was learned."""
    before, after = change_of(parts_sum), change_of(uninterrupted.folder / "out" / f"checkpoint-{STEPS}")
    assert before.keys() == after.keys()
    for name, change in before.items():
        assert 0 < (after[name] - change).norm() < change.norm()
    config = json.loads((uninterrupted.folder / "out" / f"checkpoint-{STEPS}" / CONFIG).read_text())
    assert (config["r"], config["lora_alpha"]) == (6, 6)


@pytest.mark.parametrize(("step", "ready"), [(1, 0), (2, 2)], ids=["before a checkpoint", "after one"])
def test_killed_and_resumed_it_comes_to_the_same_end(
    tiny_model_dir: Path, parts_sum: Path, tmp_path: Path, uninterrupted: Worker, step: int, ready: int
) -> None:
    """The folder of the initial adapter has moved meanwhile: its content counts."""
    here, there = tmp_path / "here", tmp_path / "there"
    shutil.copytree(parts_sum, here)

    def kill(message: Message, process: subprocess.Popen) -> None:
        if message["type"] == "rollouts" and message["step"] == step:
            process.kill()
            process.wait()
            process.stdin.close()

    run = worker(tiny_model_dir, tmp_path / "run", here).run(on_message=kill)
    assert run.exit_code == -9
    here.rename(there)
    again = worker(tiny_model_dir, tmp_path / "run", there).run()
    assert again.exit_code == 0, again.stderr
    assert again.messages[0] == {"type": "ready", "step": ready}
    last = Path("out") / f"checkpoint-{STEPS}" / WEIGHTS
    assert (again.folder / last).read_bytes() == (uninterrupted.folder / last).read_bytes()


def test_a_checkpoint_of_another_initial_adapter_is_not_continued(
    tiny_model_dir: Path, parts_sum: Path, tmp_path: Path, uninterrupted: Worker
) -> None:
    other = tmp_path / "other"
    shutil.copytree(parts_sum, other)
    weights = weights_of(other)
    save_file({**weights, **{name: tensor * 2 for name, tensor in list(weights.items())[:1]}}, other / WEIGHTS)
    for adapter in (str(other), None):
        job = {**uninterrupted.job, "init_adapter": adapter}
        refused = Worker(uninterrupted.folder, job).run()
        assert refused.exit_code == 1
        assert "output_dir" in refused.messages[-1]["error"]["message"]


def test_the_reference_of_kl_is_the_base_without_the_adapter(
    tiny_model_dir: Path, parts_sum: Path, tmp_path: Path
) -> None:
    """At step 0 an adapter that changes something has a distance from the base; a fresh one has none."""
    losses = {}
    for adapter in (None, str(parts_sum)):
        for kl in (0, 0.5):
            folder = tmp_path / f"{adapter is None}-{kl}"
            job = make_job(tiny_model_dir, folder / "out", steps=1, kl=kl, init_adapter=adapter)
            run = Worker(folder, job).run()
            assert run.exit_code == 0, run.stderr
            losses[adapter is None, kl] = run.of_type("step")[0]["metrics"]["loss"]
    assert losses[True, 0.5] == pytest.approx(losses[True, 0], abs=1e-6)
    assert losses[False, 0.5] > losses[False, 0] + 1e-4


def test_dropout_is_the_jobs(tiny_model_dir: Path, parts_sum: Path, tmp_path: Path) -> None:
    job = make_job(tiny_model_dir, tmp_path, init_adapter=str(parts_sum), lora={**LORA, "dropout": 0.25})
    model = build_model(parse_job(job))
    assert {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)} == {0.25}
    assert model.peft_config["default"].lora_dropout == 0.25


def test_what_is_saved_is_the_same_bytes_in_every_process(
    tiny_model_dir: Path, parts_sum: Path, tmp_path: Path
) -> None:
    program = """
import sys
from pathlib import Path
from trainer.train.job import read_job
from trainer.train.model import build_model
from trainer.train.saving import save_adapter
save_adapter(build_model(read_job(sys.argv[1])), Path(sys.argv[2]))
"""
    job = tmp_path / "job.json"
    job.write_text(json.dumps(make_job(tiny_model_dir, tmp_path / "out", init_adapter=str(parts_sum))))
    for hash_seed in ("1", "2"):
        command = [sys.executable, "-c", program, str(job), str(tmp_path / hash_seed)]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": hash_seed}, check=True)
    for name in (WEIGHTS, CONFIG):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def without_weights(adapter: Path) -> None:
    (adapter / WEIGHTS).unlink()


def not_finite(adapter: Path) -> None:
    weights = weights_of(adapter)
    name = min(weights)
    save_file({**weights, name: torch.full_like(weights[name], torch.nan)}, adapter / WEIGHTS)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (without_weights, rf'init_adapter ".*: no PEFT adapter folder \({WEIGHTS}\) there; name one, or null'),
        (shutil.rmtree, rf'init_adapter ".*: no PEFT adapter folder \({CONFIG}\) there; name one, or null'),
        (not_finite, r"init_adapter .*copy: .* holds values that are not finite"),
    ],
)
def test_an_adapter_that_is_missing_or_damaged(
    tiny_model_dir: Path, parts_sum: Path, tmp_path: Path, spoil: Callable[[Path], None], said: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(parts_sum, copy)
    spoil(copy)
    with pytest.raises(BadJob, match=said):
        build_model(parse_job(make_job(tiny_model_dir, tmp_path / "out", init_adapter=str(copy))))


def test_an_adapter_of_other_modules_or_of_another_base(tiny_model_dir: Path, parts_sum: Path, tmp_path: Path) -> None:
    def start(adapter: Path, **changes: object) -> None:
        build_model(parse_job(make_job(tiny_model_dir, tmp_path / "out", init_adapter=str(adapter), **changes)))

    some = {**LORA, "target_modules": TARGETS[:-1]}
    with pytest.raises(BadJob, match=r"init_adapter .*: .*w3 is none of the modules that lora.target_modules names"):
        start(parts_sum, lora=some)
    few = save_adapter(tmp_path / "few", tiny_model_dir, 1, TARGETS[:-1])
    with pytest.raises(BadJob, match=r"init_adapter .*: it has no factors for .*w3, which .* names; name an adapter"):
        start(few)
    other_base = save_tiny_model(tmp_path / "wide", size="bench")
    foreign = save_adapter(tmp_path / "foreign", other_base, 1, TARGETS)
    with pytest.raises(BadJob, match=r"init_adapter .*: .*; name an adapter of this base"):
        start(foreign)
