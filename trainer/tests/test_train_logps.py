"""Log-probs of sampled tokens, and their gradient, are those of a plain forward of each row."""

import random
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from trainer.tests.conftest import filled, save_tiny_model
from trainer.train import logps
from trainer.train.logps import SampledLogps

LENGTHS = [(12, 5), (12, 9), (12, 1), (6, 6), (20, 30)]
"""Lengths of prompts and completions."""


def gradients(model: Any, found: torch.Tensor, wanted: torch.Tensor) -> list[torch.Tensor]:
    """Returns the gradients of a weighted sum, each token with a weight of its own."""
    model.zero_grad()
    weights = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(1))
    (found * weights * wanted).sum().backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize(
    ("kind", "common", "temperature", "largest_logits"),
    [
        ("llama", 0, 1.0, 2**26),
        ("lfm2", 0, 1.0, 2**26),
        ("llama", 6, 0.7, 1000),
        ("lfm2", 6, 1.0, 2**26),
        ("qwen2", 6, 1.0, 2**26),
        ("qwen3", 6, 1.0, 2**26),
    ],
)
def test_logps_and_gradient_are_those_of_rows_alone(kind, common, temperature, largest_logits, tmp_path, monkeypatch):
    monkeypatch.setattr(logps, "LARGEST_LOGITS", largest_logits)
    torch.manual_seed(3)
    config = LoraConfig(r=4, target_modules=["q_proj", "v_proj", "k_proj"], task_type="CAUSAL_LM")
    base = AutoModelForCausalLM.from_pretrained(save_tiny_model(tmp_path, kind))
    model = filled(get_peft_model(base, config), 3, 0.2, part="lora_B")
    generator, width = random.Random(5), 50
    ids, wanted = torch.zeros(2, len(LENGTHS), width, dtype=torch.long)
    for row, (prompt, completion) in enumerate(LENGTHS):
        length = prompt + completion
        ids[row, :length] = torch.tensor(generator.choices(range(10, 60), k=length))
        wanted[row, prompt:length] = torch.tensor([n % 3 != 1 for n in range(completion)])  # others carry no loss
    ids[:, :common] = ids[0, :common]

    def plain(temperature: float) -> torch.Tensor:
        """Log-probs and entropies, one row after the other."""
        rows = []
        for row, length in zip(ids, map(sum, LENGTHS), strict=True):
            logs = (model(input_ids=row[None, :length]).logits[0, :-1] / temperature).log_softmax(-1)
            both = torch.stack([logs.gather(1, row[1:length, None])[:, 0], -(logs.exp() * logs).sum(-1)])
            rows.append(torch.nn.functional.pad(both, (1, width - length)))
        return torch.stack(rows, dim=1) * wanted

    expected, expected_entropies = plain(temperature)
    expected_gradients = gradients(model, expected, wanted)
    sampled = SampledLogps(model.get_base_model())
    assert sampled.usable and sampled.shares
    found, at_one, entropies = sampled(ids, wanted=wanted, temperature=temperature)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(at_one, plain(1.0)[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(entropies, expected_entropies, rtol=1e-4, atol=1e-4)
    assert not at_one.requires_grad and not entropies.requires_grad
    for a, b in zip(gradients(model, found, wanted), expected_gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


def test_a_model_that_does_more_than_a_head_is_left_to_trl(tiny_llama_dir):
    model = AutoModelForCausalLM.from_pretrained(tiny_llama_dir)
    plain_forward = model.forward

    def capped(*args: Any, **kwargs: Any) -> Any:
        output = plain_forward(*args, **kwargs)
        output.logits = output.logits.tanh()
        return output

    model.forward = capped
    assert not SampledLogps(model).usable
