"""What a translation rests on, word by word: the source words that its attention lay on, and where it was decided.

A token's attention is told over all heads of all layers, each weight times the norm of what its key adds to the
residual stream (Kobayashi et al. 2020). It says where the model looked, not what made it write the token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..analysis.value_norm import output_projections, value_weighted
from ..interventions.apply import intervening
from ..interventions.changes import Change
from ..live.live_model import LiveModel
from ..text.words import word, words
from .ablation import force_changed
from .logit_lens import Lens, logit_lens


@dataclass(frozen=True)
class SourceShare:
    """A word of the source and its share of a row of attention, 0 to 1."""

    text: str
    share: float
    pieces: range
    """Its positions in the source."""


@dataclass(frozen=True, eq=False)
class WordFacts:
    """What there is to say of each of the T tokens of a translation of S pieces."""

    source_tokens: tuple[str, ...]
    attention: np.ndarray
    """(T, S) cross-attention by norm, the mean of all heads of all layers; a row sums to 1."""
    lens: Lens

    def source_shares(self, position: int) -> tuple[SourceShare, ...]:
        """Return the words of the source by their share of a token's attention, the largest first."""
        row = self.attention[position]
        shares = [
            SourceShare(word(self.source_tokens[group.start : group.stop]), float(row[group].sum()), group)
            for group in words(self.source_tokens)
        ]
        return tuple(sorted(shares, key=lambda one: -one.share))

    def decided(self, position: int) -> str | None:
        """Return the first place of the lens from which on the token written is the most probable one to the end.

        None where the model would have written another token.
        """
        others = np.flatnonzero(self.lens.ranks[:, position] > 1)
        first = int(others[-1]) + 1 if others.size else 0
        return self.lens.places[first] if first < len(self.lens.places) else None


def word_facts(
    translator: LiveModel, text: str, target_ids: Sequence[int], changes: Sequence[Change] = ()
) -> WordFacts:
    """Read a translation of `text` again, by its ids, with the changes made. Raises InputError, InterventionError."""
    found = force_changed(translator, text, target_ids, changes, tensors=("v",))
    cross = found.trace.cross
    assert cross is not None
    weighted = value_weighted(cross, output_projections(translator.model, "cross"))
    with intervening(translator.model, changes):
        lens = logit_lens(translator, found)
    return WordFacts(found.source_tokens, weighted.weights.mean((0, 1), dtype=np.float64), lens)
