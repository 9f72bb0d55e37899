"""Log-probs of sampled tokens, and their gradient, are those of a plain forward of each row: as a tree over a common
prompt, padded, and by reordered weights."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from trainer import products
from trainer.tests.conftest import filled
from trainer.train import logps
from trainer.train.logps import SampledLogps

ROWS = [(0, 5), (0, 9), (0, 1), (0, 7), (1, 6), (2, 3), (2, 30)]
"""Prompts by number, and lengths of completions."""


def tuned(folder: Path) -> Any:
    """A model with a LoRA that does something."""
    torch.manual_seed(3)
    config = LoraConfig(r=4, target_modules=["q_proj", "v_proj", "k_proj"], task_type="CAUSAL_LM")
    return filled(get_peft_model(AutoModelForCausalLM.from_pretrained(folder), config), 3, 0.2, part="lora_B")


def batch() -> dict[str, torch.Tensor]:
    """Arguments of SampledLogps for ROWS; every third token is not asked for."""
    generator = random.Random(5)
    prompts = [generator.choices(range(10, 60), k=k) for k in (12, 6, 20)]
    rows = [(prompts[number], generator.choices(range(10, 60), k=k)) for number, k in ROWS]
    width = max(len(prompt) + len(completion) for prompt, completion in rows)
    wanted = [
        [0] * len(p) + [int(n % 3 != 1) for n in range(len(c))] + [0] * (width - len(p) - len(c)) for p, c in rows
    ]
    return {
        "ids": torch.tensor([(p + c + [0] * width)[:width] for p, c in rows]),
        "lengths": torch.tensor([len(p) + len(c) for p, c in rows]),
        "prompts": torch.tensor([len(p) for p, _ in rows]),
        "wanted": torch.tensor(wanted),
    }


def gradients(model: Any, logps: torch.Tensor, wanted: torch.Tensor) -> list[torch.Tensor]:
    """Of a weighted sum, each token with a weight of its own."""
    model.zero_grad()
    weights = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(1))
    (logps * weights * wanted).sum().backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def plain(model: Any, given: dict[str, torch.Tensor], temperature: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probs and entropies, one row after the other."""
    rows = []
    for row, length in zip(given["ids"], given["lengths"], strict=True):
        logs = (model(input_ids=row[None, :length]).logits[0, :-1] / temperature).log_softmax(-1)
        both = torch.stack([logs.gather(1, row[1:length, None])[:, 0], -(logs.exp() * logs).sum(-1)])
        rows.append(torch.nn.functional.pad(both, (1, len(row) - int(length))))
    found, entropies = torch.stack(rows, dim=1) * given["wanted"]
    return found, entropies


@pytest.mark.parametrize("reordered", [False, True])
@pytest.mark.parametrize(("kind", "temperature"), [("llama", 1.0), ("lfm2", 1.0), ("llama", 0.7)])
def test_logps_and_gradient_are_those_of_rows_alone(kind, temperature, reordered, request, monkeypatch):
    monkeypatch.setattr(products, "SMALLEST_REORDERED", 0 if reordered else 10**9)
    model = tuned(request.getfixturevalue(f"tiny_{kind}_dir"))
    given = batch()
    expected, expected_entropies = plain(model, given, temperature)
    expected_gradients = gradients(model, expected, given["wanted"])
    sampled = SampledLogps(model.get_base_model())
    assert sampled.usable and sampled.shares == (kind == "llama")
    shared = [
        length for _, length in sampled._pieces(given["ids"], given["lengths"].tolist(), given["prompts"].tolist())
    ]
    assert sorted(shared) == ([0, 12, 20] if kind == "llama" else [0])
    found, at_one, entropies = sampled(**given, temperature=temperature)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(at_one, plain(model, given)[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(entropies, expected_entropies, rtol=1e-4, atol=1e-4)
    assert not at_one.requires_grad and not entropies.requires_grad
    for a, b in zip(gradients(model, found, given["wanted"]), expected_gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_logits_that_are_too_many_at_once_are_made_in_parts(tiny_llama_dir, temperature, monkeypatch):
    model = tuned(tiny_llama_dir)
    sampled, given = SampledLogps(model.get_base_model()), batch()
    whole, whole_at_one, whole_entropies = sampled(**given, temperature=temperature)
    expected = gradients(model, whole, given["wanted"])
    sizes, ahead = [], sampled._ahead
    monkeypatch.setattr(sampled, "_ahead", lambda states: sizes.append(len(states)) or ahead(states))
    monkeypatch.setattr(logps, "LARGEST_LOGITS", 5 * sampled._vocabulary)
    found, at_one, entropies = sampled(**given, temperature=temperature)
    assert max(sizes) == 5 and sum(sizes) == given["wanted"].sum()
    torch.testing.assert_close(found, whole, rtol=0, atol=1e-5)
    torch.testing.assert_close(at_one, whole_at_one, rtol=0, atol=1e-5)
    torch.testing.assert_close(entropies, whole_entropies, rtol=0, atol=1e-5)
    for a, b in zip(gradients(model, found, given["wanted"]), expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_a_model_that_does_more_than_a_head_is_left_to_trl(tiny_llama_dir):
    model = AutoModelForCausalLM.from_pretrained(tiny_llama_dir)
    plain_forward = model.forward

    def capped(*args: Any, **kwargs: Any) -> Any:
        output = plain_forward(*args, **kwargs)
        output.logits = output.logits.tanh()
        return output

    model.forward = capped
    assert not SampledLogps(model).usable
