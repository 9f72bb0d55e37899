"""Curves of real trainings in TensorBoard, read back with its own reader."""

import pytest

from trainer.tests.train_harness import Learner, Worker, at, make_job


def test_a_resumed_training_has_each_step_once_in_tensorboard(tiny_model_dir, tmp_path):
    """The training is killed after its third step, and its last checkpoint is the second's."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = Worker(tmp_path, make_job(tiny_model_dir, tmp_path / "out", steps=4, report_to="tensorboard", kl=0.1))
    run.run(at(3, Learner.kill))
    assert [line["step"] for line in run.metrics()] == [1, 2, 3], run.stderr
    run.run()
    assert run.exit_code == 0, run.stderr
    assert run.messages[0] == {"type": "ready", "step": 2}
    lines = run.metrics()
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert {"loss", "reward", "kl", "grad_norm", "learning_rate", "entropy", "rollouts"} <= lines[0].keys()
    events = EventAccumulator(str(run.output / "tensorboard"), size_guidance={"scalars": 0}).Reload()
    found = [(tag, at.step, at.value) for tag in events.Tags()["scalars"] for at in events.Scalars(tag)]
    assert sorted(found) == sorted(
        (f"train/{name}", line["step"], pytest.approx(value, rel=1e-6))
        for line in lines
        for name, value in line.items()
        if name != "step"
    )
