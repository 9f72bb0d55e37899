"""Log-probs of sampled tokens under the policy that is trained, with their gradient.

Invariant: each is what the model's plain forward of its row alone gives, up to round-off; that is tried on the model
before its first step, and where it does not hold the trainer takes TRL's way.

Cheaper than a padded forward with the whole head: rollouts of a group have their prompt in common, which is computed
once where the layers allow it; the head over the vocabulary is multiplied for tokens that carry loss alone; and the
gradient of a log-prob is written over its logits, which are not kept."""

from collections.abc import Iterator
from typing import Any

import torch

from trainer.products import Product, can_reorder, frozen_product, product

TREE_TOKENS = 1024
"""Tokens of rows that share a prompt in one sequence, or twice the prompt: its attention grows with their square."""

WORTHWHILE = 0.8
"""Rows are put into a tree if it has at most this part of their padded tokens."""

LARGEST_REORDERED = 400_000_000
"""Parameters of which reordered copies are kept, two of each."""

LARGEST_LOGITS = 2**28
"""Numbers; 1 GiB. A piece that has more gets them in parts."""

PROBE_LIMIT = 2e-4


class SampledLogps:
    """Of one causal language model that may have a LoRA in its layers. `usable`: whether it computes what the model's
    own forward does; `shares`: whether it computes a prompt once for all its rows."""

    def __init__(self, causal: Any) -> None:
        self._decoder, head = causal.base_model, causal.get_output_embeddings()
        config = causal.config.get_text_config()
        kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
        self.shares = kinds == {"full_attention"} and not getattr(config, "sliding_window", None)
        self.usable = type(head) is torch.nn.Linear and head.bias is None and head.weight.dtype == torch.float32
        if self.usable:
            weight = head.weight.detach()
            self._vocabulary = len(weight)
            self._ahead, self._back = product(weight), product(weight.t())
            _reorder_frozen(self._decoder)
            self.usable = self._holds(causal)

    def __call__(
        self,
        ids: torch.Tensor,
        *,
        lengths: torch.Tensor,
        prompts: torch.Tensor,
        wanted: torch.Tensor,
        temperature: float = 1.0,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """ids [rows, width], padded on the right; how long rows and their prompts are; wanted [rows, width]: the tokens
        that are asked for, none of them first in its row. Returns [rows, width], elsewhere 0: log-probs at the
        temperature, and without gradient log-probs at 1 and the entropy at the temperature (0 where no gradient is
        recorded)."""
        found, plain, entropy = (torch.zeros(ids.shape, device=ids.device) for _ in range(3))
        for members, shared in self._pieces(ids, lengths.tolist(), prompts.tolist()):
            width = int(lengths[members].max())
            part, on = ids[members, :width], wanted[members, :width].bool()
            row, place = on.nonzero(as_tuple=True)
            if shared:
                states, at = self._tree(part, lengths[members], shared)
                states = states[at[row, place - 1]]
            else:
                # No mask: what follows a row never reaches it.
                states = self._decoder(input_ids=part, use_cache=False).last_hidden_state[row, place - 1]
            most = max(LARGEST_LOGITS // self._vocabulary, 1)
            logps, at_one, entropies = _OfTokens.apply(
                states, part[row, place], self._ahead, self._back, temperature, most
            )
            found = found.index_put((members[row], place), logps)
            plain[members[row], place] = at_one
            entropy[members[row], place] = entropies
        return found, plain, entropy

    def _pieces(self, ids: torch.Tensor, lengths: list[int], prompts: list[int]) -> Iterator[tuple[torch.Tensor, int]]:
        """Rows that are computed together and the length of what they share; 0: nothing, they are padded."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for index, (row, prompt) in enumerate(zip(ids.tolist(), prompts, strict=True)):
            groups.setdefault(tuple(row[:prompt]) if self.shares else (), []).append(index)
        padded: list[int] = []
        for prompt, members in groups.items():
            for tree in _trees(members, [lengths[i] - len(prompt) for i in members], len(prompt)):
                tokens = len(prompt) + sum(lengths[i] - len(prompt) for i in tree)
                if prompt and tokens <= WORTHWHILE * len(tree) * max(lengths[i] for i in tree):
                    yield torch.tensor(tree, device=ids.device), len(prompt)
                else:
                    padded += tree
        for piece in _alike(padded, lengths) if self.shares else [padded]:
            yield torch.tensor(piece, device=ids.device), 0

    def _tree(self, ids: torch.Tensor, lengths: torch.Tensor, shared: int) -> tuple[torch.Tensor, torch.Tensor]:
        """States of rows that begin with the same `shared` tokens, as one sequence, and where each token's is."""
        place = torch.arange(ids.shape[1], device=ids.device)
        own = (place >= shared) & (place < lengths[:, None])
        branch, where = own.nonzero(as_tuple=True)
        of = torch.cat([torch.full((shared,), -1, device=ids.device), branch])  # -1: the trunk, seen by all
        at = place.expand(ids.shape).clone()
        at[own] = torch.arange(shared, len(of), device=ids.device)
        seen = (of == -1) | (of[:, None] == of)
        states = self._decoder(
            input_ids=torch.cat([ids[0, :shared], ids[own]])[None],
            position_ids=torch.cat([place[:shared], where])[None],
            attention_mask=(seen & torch.ones_like(seen).tril())[None, None],
            use_cache=False,
        ).last_hidden_state[0]
        return states, at

    @torch.no_grad()
    def _holds(self, causal: Any) -> bool:
        device = causal.get_input_embeddings().weight.device
        ids = torch.arange(26, device=device).view(2, 13) % causal.config.get_text_config().vocab_size
        ids[1, :6] = ids[0, :6]
        lengths = torch.tensor([13, 10], device=device)
        wanted = (torch.arange(13, device=device) < lengths[:, None]).expand(2, 13).clone()
        wanted[:, 0] = False
        training = causal.training
        causal.eval()
        try:
            logits = causal(input_ids=ids, use_cache=False).logits[:, :-1].float()
            plain = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
            for prompts in ([6, 6], [5, 6]):  # as a tree, and padded
                found, *_ = self(ids, lengths=lengths, prompts=torch.tensor(prompts), wanted=wanted)
                if not ((found[:, 1:] - plain) * wanted[:, 1:]).abs().max() <= PROBE_LIMIT:
                    return False
            return True
        except Exception:  # a model whose forward takes none of this
            return False
        finally:
            causal.train(training)


def _trees(members: list[int], branches: list[int], shared: int) -> Iterator[list[int]]:
    """The members in turn, in as few trees as hold them."""
    tree, tokens = [], shared
    for member, branch in zip(members, branches, strict=True):
        if tree and tokens + branch > max(TREE_TOKENS, 2 * shared):
            yield tree
            tree, tokens = [], shared
        tree.append(member)
        tokens += branch
    yield tree


def _alike(members: list[int], lengths: list[int]) -> Iterator[list[int]]:
    """The members in pieces of like length."""
    piece: list[int] = []
    for member in sorted(members, key=lambda i: -lengths[i]):
        if piece and lengths[member] < WORTHWHILE * lengths[piece[0]]:
            yield piece
            piece = []
        piece.append(member)
    if piece:
        yield piece


def _reorder_frozen(decoder: torch.nn.Module) -> None:
    """Lets the layers that are not trained multiply by reordered weights."""
    frozen = [
        linear
        for linear in decoder.modules()
        if type(linear) is torch.nn.Linear and not linear.weight.requires_grad and can_reorder(linear.weight)
    ]
    if sum(linear.weight.numel() for linear in frozen) > LARGEST_REORDERED:
        return
    for linear in frozen:
        linear.forward = frozen_product(linear.weight, linear.bias)


class _OfTokens(torch.autograd.Function):
    """Log-probs of tokens from the states before them, by a head that is not trained: at a temperature, and at 1; and
    the entropy at the temperature. Only `most` tokens have logits at once: a log-prob's gradient is found with it, and
    is of the size of the states."""

    @staticmethod
    def forward(
        ctx: Any,
        states: torch.Tensor,
        tokens: torch.Tensor,
        ahead: Product,
        back: Product,
        temperature: float,
        most: int,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        found, plain, slopes = [], [], []
        for part, its in zip(states.split(most), tokens.split(most), strict=True):
            logits = ahead(part)
            plain.append(_log_probs(logits, logits.logsumexp(-1), its))
            if temperature != 1:
                logits.div_(temperature)
            total = logits.logsumexp(-1)
            found.append(_log_probs(logits, total, its))
            if ctx.needs_input_grad[0]:
                logits.sub_(total[:, None]).exp_().neg_()
                logits.scatter_add_(1, its[:, None], torch.ones_like(total)[:, None])
                slopes.append(back(logits).div_(temperature))
        logps, at_one = torch.cat(found), torch.cat(plain)
        entropies = torch.zeros_like(logps)
        if slopes:
            ctx.save_for_backward(slope := torch.cat(slopes))
            # States times slope is the token's logit less the mean logit under the policy.
            entropies = (states * slope).sum(-1) - logps
        ctx.mark_non_differentiable(at_one, entropies)
        return logps, at_one, entropies

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, *_: Any) -> tuple[torch.Tensor, None, None, None, None, None]:
        (slopes,) = ctx.saved_tensors
        return slopes * gradient[:, None], None, None, None, None, None


def _log_probs(logits: torch.Tensor, total: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return logits.gather(1, tokens[:, None])[:, 0] - total
