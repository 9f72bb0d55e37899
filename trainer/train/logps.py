"""Log-probs of sampled tokens under the policy that is trained, with their gradient.

The head over the vocabulary is multiplied for tokens that carry loss alone, and the tokens that all rows begin with are
computed once. Invariant: a log-prob is what the model's plain forward of its row gives, up to round-off. Both are tried
on the model before its first step; where one does not hold, the trainer goes without it."""

from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from trainer.linear import LIMITS

LARGEST_LOGITS = 2**26
"""Numbers, 256 MiB: logits of more tokens are computed in parts."""


class SampledLogps:
    """Computes log-probs of one causal language model that may have a LoRA in its layers. `usable`: whether it computes
    what the model's own forward does. `shares`: whether the common beginning of rows is computed once; gradient
    checkpointing, which keeps no keys and values, excludes it."""

    def __init__(self, causal: Any, *, shares: bool = True, limit: float = LIMITS["float32"]) -> None:
        """`limit`: largest difference to the model's own log-probs that counts as the same, in nats."""
        self._limit = limit
        self._decoder, self._head, self.shares = causal.base_model, causal.get_output_embeddings(), shares
        self.usable = False
        if type(self._head) is torch.nn.Linear:
            self.shares = shares and self._holds(causal)
            self.usable = self.shares or self._holds(causal)

    def __call__(
        self, ids: torch.Tensor, *, wanted: torch.Tensor, temperature: float = 1.0
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """ids [rows, width], padded on the right; wanted [rows, width]: the tokens that are asked for, none of them
        first in its row. Returns [rows, width], elsewhere 0: log-probs at the temperature, and without gradient
        log-probs at 1 and the entropy at the temperature."""
        row, place = wanted.bool().nonzero(as_tuple=True)
        states = self._states(ids)[row, place - 1]
        tokens, most = ids[row, place, None], max(LARGEST_LOGITS // self._head.out_features, 1)
        parts = list(zip(states.split(most), tokens.split(most), strict=True))
        if len(parts) > 1:  # the backward pass computes the logits of a part again, so that one part's exist at a time
            scores = [checkpoint(self._score, *part, temperature, use_reentrant=False) for part in parts]
        else:
            scores = [self._score(*part, temperature) for part in parts]
        places = (row, place)
        found, plain, entropy = (torch.zeros(ids.shape, device=ids.device) for _ in range(3))
        logps, plain[places], entropy[places] = map(torch.cat, zip(*scores, strict=True))
        return found.index_put(places, logps), plain, entropy

    def _states(self, ids: torch.Tensor) -> torch.Tensor:
        """Returns the last hidden states [rows, width, d]."""
        # No mask: the padding stands behind a row and never reaches it.
        common = int((ids == ids[0]).all(0).int().cumprod(0).sum())
        common = min(common, ids.size(1) - 2)  # a single token would take another way through a convolution
        if not self.shares or len(ids) == 1 or common < 1:
            return self._decoder(input_ids=ids, use_cache=False).last_hidden_state
        prefix = self._decoder(input_ids=ids[:1, :common], use_cache=True)
        past = prefix.past_key_values
        past.reorder_cache(torch.zeros(len(ids), dtype=torch.long, device=ids.device))
        rest = self._decoder(input_ids=ids[:, common:], past_key_values=past, use_cache=True).last_hidden_state
        return torch.cat([prefix.last_hidden_state.expand(len(ids), -1, -1), rest], dim=1)

    def _score(
        self, states: torch.Tensor, tokens: torch.Tensor, temperature: float
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Returns log-probs at the temperature, log-probs at 1 and entropies of tokens [n, 1] after states [n, d]."""
        logits = self._head(states).float()
        logs = (logits if temperature == 1 else logits / temperature).log_softmax(-1)
        constant = logs.detach()
        at_one = constant if temperature == 1 else logits.detach().log_softmax(-1)
        entropies = -torch.linalg.vecdot(constant.exp(), constant)
        return logs.gather(1, tokens)[:, 0], at_one.gather(1, tokens)[:, 0], entropies

    @torch.no_grad()
    def _holds(self, causal: Any) -> bool:
        device = causal.get_input_embeddings().weight.device
        ids = torch.arange(26, device=device).view(2, 13) % causal.config.get_text_config().vocab_size
        ids[1, :6] = ids[0, :6]
        wanted = torch.ones_like(ids)
        wanted[:, 0] = 0
        training = causal.training
        causal.eval()
        try:
            plain = causal(input_ids=ids, use_cache=False).logits[:, :-1].float().log_softmax(-1)
            found, *_ = self(ids, wanted=wanted)
            difference = found[:, 1:] - plain.gather(-1, ids[:, 1:, None])[..., 0]
            return bool(difference.abs().max() <= self._limit)
        except Exception:  # a model whose forward takes none of this
            return False
        finally:
            causal.train(training)
