"""The gradient against references written by hand: masks, padding, clipping, dropped groups, rollouts of several
rows."""

import io
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from trainer.tests.conftest import filled
from trainer.tests.train_harness import make_job, parse_job
from trainer.tinker.update import token_factors
from trainer.train.channel import Channel
from trainer.train.groups import EPS, Batch, group_advantages, training_batch
from trainer.train.job import Rollout, Row
from trainer.train.learn import make_trainer
from trainer.train.ranks import Ranks

CLIP = 0.2


def tuned_trainer(model: Path, output: Path, **changes: Any) -> Any:
    """A trainer whose LoRA is not zero, so that every parameter of it has a gradient."""
    silent = Channel(source=io.StringIO(), sink=io.StringIO())
    built = make_trainer(parse_job(make_job(model, output, **{"max_logprob_gap": 9.0, **changes})), silent, Ranks())
    filled(built.model, 1, 0.2, part="lora_B")
    return built


@pytest.fixture(scope="module")
def trainer(tiny_model_dir, tmp_path_factory):
    return tuned_trainer(tiny_model_dir, tmp_path_factory.mktemp("out"))


def row_of(prompt: list[int], completion: list[int], *, mask: list[int]) -> Row:
    """A row whose sampler was certain of every token."""
    return Row(prompt_ids=prompt, completion_ids=completion, logprobs=[0.0] * len(completion), mask=mask)


def random_rows(count: int, seed: int) -> list[Row]:
    """Rows of unequal prompts and completions; old log-probs scattered around the model's, so that some ratios clip."""
    generator = random.Random(seed)
    rows = []
    for _ in range(count):
        length = generator.randint(3, 14)
        mask = [generator.randint(0, 1) for _ in range(length - 1)] + [1]
        prompt = generator.choices(range(10, 60), k=generator.randint(2, 9))
        rows.append(row_of(prompt, generator.choices(range(10, 60), k=length), mask=mask))
    return rows


def logps(trainer: Any, row: Row, temperature: float = 1.0) -> torch.Tensor:
    """Log-probs of a row's completion from a plain forward of the unpadded row."""
    ids = torch.tensor([row.prompt_ids + row.completion_ids])
    logits = trainer.model(input_ids=ids).logits[0, len(row.prompt_ids) - 1 : -1].float() / temperature
    return logits.log_softmax(-1).gather(1, ids[0, len(row.prompt_ids) :, None])[:, 0]


def with_old_logps(trainer: Any, rows: list[Row], spread: float) -> list[Row]:
    generator = torch.Generator().manual_seed(4)
    filled = []
    for row in rows:
        noise = spread * torch.randn(len(row.mask), generator=generator)
        old = (logps(trainer, row).detach() + noise) * torch.tensor(row.mask)
        filled.append(row.model_copy(update={"logprobs": old.tolist()}))
    return filled


def shifted(row: Row, by: float) -> Row:
    """The sampler's log-probs of its loss tokens are so much more."""
    return row.model_copy(update={"logprobs": [x + by * m for x, m in zip(row.logprobs, row.mask, strict=True)]})


def reference(
    trainer: Any, rows: list[Row], advantages: list[float], temperature: float = 1.0
) -> tuple[float, list[torch.Tensor]]:
    """GRPO's clipped loss, token by token, one row after the other: the mean over loss tokens."""
    trainer.model.zero_grad()
    total, tokens = torch.zeros(()), 0
    for row, advantage in zip(rows, advantages, strict=True):
        for logp, old, own in zip(logps(trainer, row, temperature), row.logprobs, row.mask, strict=True):
            if own:
                ratio = torch.exp(logp - old)
                total = total - torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
                tokens += 1
    loss = total / tokens
    loss.backward()
    return loss.item(), gradients(trainer)


def gradients(trainer: Any) -> list[torch.Tensor]:
    return [p.grad.clone() for p in trainer.model.parameters() if p.requires_grad]


def step(trainer: Any, batch: Batch, tokens_per_forward: int = 40) -> tuple[float, list[torch.Tensor]]:
    """Loss and gradient as `training_step` makes them."""
    trainer.model.zero_grad()
    trainer.current_gradient_accumulation_steps = 1
    trainer._job = trainer._job.model_copy(update={"tokens_per_forward": tokens_per_forward})
    trainer._collect = lambda step, tasks: batch
    loss = trainer.training_step(trainer.model, [{"prompt": "s1"}] * 4)
    return loss.item(), gradients(trainer)


def batch_of(rows: list[Row], advantages: list[float]) -> Batch:
    return Batch(rows=rows, advantages=advantages, tokens=sum(sum(row.mask) for row in rows), metrics={})


def assert_close(ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
    assert any(g.abs().max() > 1e-4 for g in theirs)


@pytest.mark.parametrize("tokens_per_forward", [1, 40, 10_000])
def test_loss_and_gradient_of_a_padded_batch_are_the_handwritten_ones(trainer, tokens_per_forward):
    rows = with_old_logps(trainer, random_rows(7, seed=2), spread=0.4)
    advantages = [1.3, -0.7, 0.2, -1.9, 0.5, 2.0, -0.1]
    expected, expected_gradient = reference(trainer, rows, advantages)
    loss, gradient = step(trainer, batch_of(rows, advantages), tokens_per_forward)
    assert loss == pytest.approx(expected, rel=1e-4)
    assert_close(gradient, expected_gradient)


def test_the_gap_to_the_samplers_logprobs_is_measured_on_loss_tokens(trainer):
    rows = with_old_logps(trainer, random_rows(4, seed=3), spread=0.0)
    step(trainer, batch_of(rows, [1.0] * 4))
    assert trainer._step_metrics["logprob_gap"] < 1e-5
    step(trainer, batch_of([shifted(row, -0.25) for row in rows], [1.0] * 4))
    assert trainer._step_metrics["logprob_gap"] == pytest.approx(0.25, abs=1e-4)


@pytest.mark.parametrize("ours", [True, False])
def test_at_another_temperature_the_loss_is_over_the_sampled_distribution(ours, tiny_model_dir, tmp_path):
    """The sampler's log-probs are those at 1: the ratio is to the policy's own, and the gap is to the sampler's."""
    trainer = tuned_trainer(tiny_model_dir, tmp_path, temperature=0.7)
    trainer._sampled.usable &= ours
    rows, advantages = with_old_logps(trainer, random_rows(5, seed=6), spread=0.0), [1.3, -0.7, 0.2, -1.9, 0.5]
    own = [logps(trainer, row, temperature=0.7).tolist() for row in rows]
    held = [row.model_copy(update={"logprobs": old}) for row, old in zip(rows, own, strict=True)]
    expected, expected_gradient = reference(trainer, held, advantages, temperature=0.7)
    loss, gradient = step(trainer, batch_of(rows, advantages))
    assert loss == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert_close(gradient, expected_gradient)
    # TRL's forward has none at temperature 1.
    assert trainer._step_metrics.get("logprob_gap", 0.0) < 1e-5
    assert ("logprob_gap" in trainer._step_metrics) == ours


@pytest.mark.parametrize(
    ("ratio", "advantage", "weight", "moves"),
    [(1.5, 1.0, 1.2, False), (1.5, -1.0, 1.5, True), (3.0, -1.0, 3.0, True), (8.0, -1.0, 4.0, False)],
)
def test_clip_bounds_the_ratio_and_delta_where_clip_does_not(trainer, ratio, advantage, weight, moves):
    [row] = with_old_logps(trainer, [row_of([11, 12], [13, 14], mask=[1, 1])], spread=0.0)
    loss, gradient = step(trainer, batch_of([shifted(row, -math.log(ratio))], [advantage]))
    assert loss == pytest.approx(-advantage * weight, rel=1e-4)
    assert any(g.abs().max() > 0 for g in gradient) == moves


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_truncated_importance_weights_are_the_handwritten_ones(dtype, tiny_model_dir, tmp_path):
    """Noise of known size on the sampler's log-probs: a token weighs exp(-noise), at most 1.5, and none is clipped."""
    most = 1.5
    trainer = tuned_trainer(tiny_model_dir, tmp_path, importance_sampling_clip_max=most)
    if dtype == "bfloat16":  # TRL's own forward
        trainer._sampled = None
    rows, advantages = with_old_logps(trainer, random_rows(6, seed=2), spread=0.5), [1.3, -0.7, 0.2, -1.9, 0.5, 2.0]
    trainer.model.zero_grad()
    total, weights = torch.zeros(()), []
    for row, advantage in zip(rows, advantages, strict=True):
        for logp, old, own in zip(logps(trainer, row), row.logprobs, row.mask, strict=True):
            if own:
                weights.append(min(math.exp(logp.item() - old), most))
                total = total - advantage * weights[-1] * logp
    (total / len(weights)).backward()
    assert min(weights) < 0.8 and max(weights) == most  # what PPO's clip would leave out is there
    expected = gradients(trainer)
    loss, gradient = step(trainer, batch_of(rows, advantages))
    assert_close(gradient, expected)
    each = iter(weights)
    by_hand = -sum(a * next(each) for row, a in zip(rows, advantages, strict=True) for _ in range(sum(row.mask)))
    assert loss == pytest.approx(by_hand / len(weights), rel=1e-4)


@pytest.mark.parametrize("most", [None, 2.0])
def test_rows_beyond_the_threshold_are_left_out_where_their_advantage_is_negative(most, tiny_model_dir, tmp_path):
    trainer = tuned_trainer(tiny_model_dir, tmp_path, importance_sampling_clip_max=most)
    near, far, liked = with_old_logps(trainer, random_rows(3, seed=7), spread=0.0)
    rows = [shifted(near, 0.45), shifted(far, 0.55), shifted(liked, 0.55)]
    _, gradient = step(trainer, batch_of(rows, [-1.0, -1.0, 1.0]))
    assert trainer._step_metrics["masked_rows"] == 1
    without = batch_of([rows[0], rows[2]], [-1.0, 1.0])
    _, expected = step(trainer, Batch(**{**vars(without), "tokens": sum(sum(row.mask) for row in rows)}))
    assert trainer._step_metrics["masked_rows"] == 0
    for a, b in zip(gradient, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", [{}, {"kl": 0.5}])
def test_one_wrong_logprob_leaves_a_step_as_it_is(loss, tiny_model_dir, tmp_path):
    trainer = tuned_trainer(tiny_model_dir, tmp_path, off_policy_mask_threshold=99, **loss)
    rows = with_old_logps(trainer, random_rows(4, seed=3), spread=0.1)

    def stepped(**changes: Any) -> list[torch.Tensor]:
        batch = batch_of([rows[0], rows[1].model_copy(update=changes), *rows[2:]], [0.5, 1.0, -0.3, 0.2])
        tokens = sum(sum(one.mask) for one in rows)
        return step(trainer, Batch(batch.rows, batch.advantages, tokens, {}))[1]

    # A ratio of the size of the bound is clipped, or weighs nothing.
    without = stepped(mask=[*rows[1].mask[:-1], 0])
    for reported in (-92.0, 60.0, 1e300):
        found = stepped(logprobs=[*rows[1].logprobs[:-1], reported])
        assert trainer._step_metrics["bounded_tokens"] == 1
        for a, b in zip(found, without, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-6)


def test_a_base_far_from_the_policy_is_bounded(tiny_model_dir, tmp_path, monkeypatch):
    trainer = tuned_trainer(tiny_model_dir, tmp_path, kl=0.5)
    rows = with_old_logps(trainer, random_rows(4, seed=3), spread=0.1)
    for far in (-500.0, 500.0):
        monkeypatch.setattr(
            trainer, "_base_logps", lambda micro, far=far: torch.full_like(micro["old_per_token_logps"], far)
        )
        loss, gradient = step(trainer, batch_of(rows, [1.0, -1.0, 0.5, 0.2]))
        assert math.isfinite(loss) and all(one.isfinite().all() for one in gradient)
        assert trainer._step_metrics["bounded_tokens"] == trainer._step_metrics["loss_tokens"]


def test_kl_is_against_the_base_model_without_any_adapter(tiny_model_dir, tmp_path, monkeypatch):
    trainer = tuned_trainer(tiny_model_dir, tmp_path / "out")
    rows = with_old_logps(trainer, random_rows(3, seed=8), spread=0.1)
    plain, _ = step(trainer, batch_of(rows, [1.0, -1.0, 0.5]))
    total, tokens = 0.0, 0
    for row in rows:
        with torch.no_grad(), trainer.model.disable_adapter():
            base = logps(trainer, row)
        own = logps(trainer, row).detach()
        ratio = (own - torch.tensor(row.logprobs)).exp()  # TRL weighs the estimate by it, which makes it unbiased
        total += (((base - own).exp() - (base - own) - 1) * ratio * torch.tensor(row.mask)).sum().item()
        tokens += sum(row.mask)
    monkeypatch.setattr(trainer, "beta", 0.5)
    loss, _ = step(trainer, batch_of(rows, [1.0, -1.0, 0.5]))
    assert total > 0
    assert loss == pytest.approx(plain + 0.5 * total / tokens, abs=1e-5)


@pytest.mark.parametrize("truncated", [None, 1.5])
def test_the_factors_that_a_tinker_server_is_sent_are_the_losss_derivatives(truncated, tiny_model_dir, tmp_path):
    changes = {"importance_sampling_clip_max": truncated, "delta": 1.3, "off_policy_mask_threshold": 0.1}
    trainer = tuned_trainer(tiny_model_dir, tmp_path, **changes)
    rows = with_old_logps(trainer, random_rows(9, seed=8), spread=0.5)
    for row, reported in ((rows[1], -92.0), (rows[2], -9999.0), (rows[3], 60.0)):
        row.logprobs[-1] = reported
    batch = batch_of(rows, [1.3, -0.7, 0.2, -1.9, 0.5, 2.0, -0.1, -1.0, -2.0])
    loss, gradient = step(trainer, batch)
    own = [logps(trainer, row) for row in rows]
    sent = token_factors(trainer._job, batch, [one.detach().numpy().astype(np.float64) for one in own])
    trainer.model.zero_grad()
    (-sum((torch.from_numpy(f).float() * o).sum() for f, o in zip(sent.factors, own, strict=True))).backward()
    assert_close(gradients(trainer), gradient)
    assert sent.loss == pytest.approx(loss, abs=1e-6)
    assert sent.masked_rows == trainer._step_metrics["masked_rows"] > 0
    assert sent.bounded_tokens == trainer._step_metrics["bounded_tokens"] == 3
    extreme = sent.extreme._replace(base=trainer._extreme.base)
    assert extreme == pytest.approx(trainer._extreme, abs=1e-4) and extreme[1:3] == (1, len(rows[1].mask) - 1)
    assert sent.logprob_gap == pytest.approx(trainer._step_metrics["logprob_gap"], abs=1e-5)


def rollouts_of(rewards: list[list[float]], rows: list[Row]) -> list[list[Rollout]]:
    """One row each."""
    remaining = iter(rows)
    return [[Rollout(task="s1", reward=reward, rows=[next(remaining)]) for reward in group] for group in rewards]


def test_constant_groups_leave_no_trace_in_the_gradient(trainer):
    rows = with_old_logps(trainer, random_rows(8, seed=5), spread=0.1)
    batch = training_batch(rollouts_of([[0.0, 1.0, 0.5, 0.5], [0.3] * 4], rows), "group")
    assert batch.metrics["informative_groups"] == 1
    assert batch.metrics["reward"] == pytest.approx(0.4)
    assert len(batch.rows) == 4
    advantages = group_advantages(np.array([[0.0, 1.0, 0.5, 0.5]]), "group")[0].tolist()
    expected, expected_gradient = reference(trainer, rows[:4], advantages)
    loss, gradient = step(trainer, batch)
    assert loss == pytest.approx(expected, abs=1e-6)
    assert_close(gradient, expected_gradient)
    # A step with constant groups alone has no measured gap.
    trainer._collect = lambda step, tasks: training_batch(rollouts_of([[0.3] * 4], rows), "group")
    assert trainer.training_step(trainer.model, [{"prompt": "s1"}] * 4) == 0
    assert "logprob_gap" not in trainer._step_metrics


def test_all_rows_of_a_rollout_are_trained_on_with_its_advantage(trainer):
    rows = with_old_logps(trainer, random_rows(3, seed=6), spread=0.1)
    unread = rows[1].model_copy(update={"mask": [0] * len(rows[1].mask)})  # read-only turns alone
    groups = [[Rollout(task="s1", reward=1.0, rows=[rows[0], rows[2]]), Rollout(task="s1", reward=0.0, rows=[unread])]]
    batch = training_batch(groups, "group")
    value = 0.5 / (0.5**0.5 + EPS)
    assert batch.advantages == pytest.approx([value, value])
    _, expected = reference(trainer, [rows[0], rows[2]], [value, value])
    _, gradient = step(trainer, batch)
    assert_close(gradient, expected)
