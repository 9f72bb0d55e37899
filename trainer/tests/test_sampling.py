"""Sampled tokens follow the distribution that was asked for."""

from collections import Counter

import numpy as np
import torch

from trainer.serve.sampling import sample, uniforms


def test_samples_follow_the_distribution():
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0, 0.5]])
    count = 20_000
    rows = logits.expand(count, -1)
    uniform = uniforms(np.arange(count, dtype=np.uint64), np.zeros(count, dtype=np.uint64))
    assert len(set(uniform)) == count

    def frequencies(temperature: float, top_p: float) -> np.ndarray:
        ones = np.ones(count)
        tokens, logprobs = sample(rows, temperature=temperature * ones, top_p=top_p * ones, uniform=uniform)
        policy = logits[0].log_softmax(-1)
        np.testing.assert_allclose(logprobs, policy[tokens].numpy(), atol=1e-6)
        return np.array([Counter(tokens)[i] / count for i in range(5)])

    np.testing.assert_allclose(frequencies(1.0, 1.0), logits[0].softmax(-1), atol=0.015)
    np.testing.assert_allclose(frequencies(0.5, 1.0), (logits[0] / 0.5).softmax(-1), atol=0.015)
    nucleus = logits[0].softmax(-1)  # .55 .20 .07 .03 .12: two tokens reach .7
    nucleus[[2, 3, 4]] = 0
    np.testing.assert_allclose(frequencies(1.0, 0.7), nucleus / nucleus.sum(), atol=0.015)
    assert frequencies(1.0, 0.01).tolist() == [1, 0, 0, 0, 0]
