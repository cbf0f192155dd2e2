"""What an encoder reads in the place of a masked word, and what that rests on: words masked too, heads switched off."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..capture.attention import capture_attention
from ..decoding.greedy_and_sampling import Candidate
from ..interventions.any_model import intervene
from ..interventions.changes import HeadChange, ModelChange
from ..language import say
from ..runnable_model import LocalError, LocalModel
from ..text.words import group_tokens_into_words, join_word, mark_special_tokens
from ..trace import AttentionTrace, Head

CANDIDATE_COUNT = 8
ROWS_A_BATCH = 32
"""Texts in one forward pass."""


@dataclass(frozen=True, eq=False)
class MaskedWord:
    """A token of a text, masked and read from all others."""

    position: int
    """From 0."""
    token: str
    """The token that stands there; where the text itself has a mask there, the most probable one."""
    is_given: bool
    """Whether it stands in the text."""
    log_prob: float
    """Natural logarithm of its probability."""
    rank: int
    """From 1."""
    candidates: tuple[Candidate, ...]
    """The most probable tokens, the first the most."""
    words: tuple[str, ...]
    """(W,) the other words of the text."""
    without: np.ndarray
    """(W,) float64: the log-probability of the token with each of these words masked too."""

    @property
    def by_fall(self) -> list[tuple[str, float]]:
        """The other words and how far the log-probability falls where each is masked too, the largest change first."""
        falls = [(word, self.log_prob - float(value)) for word, value in zip(self.words, self.without, strict=True)]
        return sorted(falls, key=lambda one: -abs(one[1]))


@dataclass(frozen=True, eq=False, kw_only=True)
class MaskedWordModel(LocalModel):
    """An encoder with a head for masked words."""

    encode: Callable[[str], tuple[int, ...]]
    """The ids of a text. Raises LocalError for one that is too long."""
    token: Callable[[int], str]
    """An id as people read it."""
    mask_id: int

    def trace_with_changes(self, text: str, changes: Sequence[ModelChange]) -> AttentionTrace:
        """Return what the model attends to with some of its heads changed.

        A head that is off has the weights that it computes and does not pass on. Raises LocalError and
        InterventionError.
        """
        unchanged = self.trace(text)
        found = self._capture(text, changes, unchanged) if changes else unchanged
        maps: dict[str, Any] = {}
        for kind, one in found.maps.items():
            weights = one.weights.copy()
            off = [head for head in _list_head_changes(changes) if (head.kind, head.change) == (kind, "off")]
            for layer in sorted({head.layer for head in off}):
                # Its weights depend on the layers before it alone.
                before = [other for other in _list_head_changes(changes) if other.layer < layer]
                computed = self._capture(text, before, unchanged).maps[kind].weights[layer]
                heads = [head.head for head in off if head.layer == layer]
                weights[layer, heads] = computed[heads]
            maps[kind] = dataclasses.replace(one, weights=weights)
        return dataclasses.replace(found, **maps)

    @torch.no_grad()
    def _capture(self, text: str, changes: Sequence[ModelChange], unchanged: AttentionTrace) -> AttentionTrace:
        with intervene(self.model, changes, unchanged), capture_attention(self.model) as capture:
            capture.tokens = self.run(text)
        return mark_special_tokens(capture.sample(0), self.special_tokens)

    def find_mask_positions(self, text: str) -> tuple[int, ...]:
        """Return the positions at which the text itself has a mask. Raises LocalError."""
        return tuple(at for at, one in enumerate(self.encode(text)) if one == self.mask_id)

    @torch.no_grad()
    def predict_masked_word(self, text: str, position: int, changes: Sequence[ModelChange] = ()) -> MaskedWord:
        """Mask the token at a position, from 0, and read it from the others, with some heads changed.

        Raises LocalError for a position that the text has not or that stands for no text, InterventionError for changes
        that the model cannot have.
        """
        ids, tokens = self._encode_and_check_position(text, position)
        groups = [
            group
            for group in group_tokens_into_words(tokens, self.special_tokens)
            if position not in group and tokens[group.start] not in self.special_tokens
        ]
        with self._intervene(text, changes):
            by_text = self._compute_log_probs(ids, position, [(), *groups])
        own, given = by_text[0], ids[position] != self.mask_id
        asked = ids[position] if given else int(own.argmax())
        best = own.topk(min(CANDIDATE_COUNT, len(own)))
        return MaskedWord(
            position,
            self.token(asked),
            given,
            float(own[asked]),
            1 + int((own > own[asked]).sum()),
            tuple(
                Candidate(int(one), float(value), self.token(int(one)))
                for value, one in zip(best.values, best.indices, strict=True)
            ),
            tuple(join_word(tokens[group.start : group.stop]) for group in groups),
            by_text[1:, asked].numpy(),
        )

    @torch.no_grad()
    def measure_head_effects(
        self, text: str, position: int, changes: Sequence[ModelChange] = ()
    ) -> list[tuple[Head, float]]:
        """Return how far each head's being off moves the log-probability of the same token, the largest change first.

        Below 0, the head speaks for it. Heads that `changes` already changes are left out.
        """
        read = self.predict_masked_word(text, position, changes)
        ids, _ = self._encode_and_check_position(text, position)
        asked = ids[position] if read.is_given else read.candidates[0].token_id
        trace, touched = self.trace(text), {(one.kind, one.layer, one.head) for one in _list_head_changes(changes)}
        found: list[tuple[Head, float]] = []
        for kind, one in trace.maps.items():
            for layer, head in np.ndindex(one.layers, one.heads):
                if (kind, layer, head) in touched:
                    continue
                with intervene(self.model, [*changes, HeadChange(kind, layer, head)], trace):
                    value = float(self._compute_log_probs(ids, position, [()])[0, asked])
                found.append(((kind, layer, head), value - read.log_prob))
        return sorted(found, key=lambda one: -abs(one[1]))

    def _encode_and_check_position(self, text: str, position: int) -> tuple[tuple[int, ...], list[str]]:
        ids = self.encode(text)
        tokens = [self.token(one) for one in ids]
        if not 0 <= position < len(ids) or tokens[position] in self.special_tokens:
            raise LocalError(say("There is no word at this place of the text to be masked."))
        return ids, tokens

    @contextmanager
    def _intervene(self, text: str, changes: Sequence[ModelChange]) -> Iterator[None]:
        with intervene(self.model, changes, self.trace(text)) if changes else nullcontext():
            yield

    def _compute_log_probs(self, ids: Sequence[int], position: int, also: Sequence[Sequence[int]]) -> Tensor:
        """Log-probabilities (N, V) float64 at the position, masked, for N sets of others that are masked too."""
        device = next(self.model.parameters()).device
        texts = torch.tensor([list(ids)] * len(also), device=device)
        texts[:, position] = self.mask_id
        for row, positions in zip(texts, also, strict=True):
            row[list(positions)] = self.mask_id
        found = [self.model(input_ids=part).logits[:, position] for part in texts.split(ROWS_A_BATCH)]
        return torch.cat(found).double().log_softmax(-1).cpu()


def _list_head_changes(changes: Sequence[ModelChange]) -> list[HeadChange]:
    return [one for one in changes if isinstance(one, HeadChange)]
