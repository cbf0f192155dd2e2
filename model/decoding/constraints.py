"""What a decoding must write, and what it may not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Constraints:
    """A beginning that is forced, and token sequences that may not be written."""

    prefix: tuple[int, ...] = ()
    """The first target tokens; they go before what is forbidden."""
    forbidden: tuple[tuple[int, ...], ...] = ()
    """Sequences of ids: the last token of one is forbidden wherever the others have just been written."""

    uncounted: int = 0
    """So many tokens of the prefix are what every target of the model begins with: a search counts none of them in its
    sums of log-probabilities, as Hugging Face's `forced_bos_token_id`."""

    def __bool__(self) -> bool:
        return bool(self.prefix or self.forbidden)

    def banned(self, written: Sequence[int]) -> list[int]:
        """The ids that may not follow `written`."""
        tail = tuple(written)
        return [ids[-1] for ids in self.forbidden if ids and tail[len(tail) - len(ids) + 1 :] == ids[:-1]]

    def with_those_of(self, more: Constraints) -> Constraints:
        """Return these constraints with others added; a beginning that the others have goes before the one here."""
        prefix, forbidden = more.prefix or self.prefix, (*self.forbidden, *more.forbidden)
        return Constraints(prefix, forbidden, self.uncounted if prefix[: len(self.prefix)] == self.prefix else 0)

    def apply(self, log_probs: Tensor, written: Sequence[int]) -> Tensor:
        """log_probs (V,) of the next token -> the same, -inf where a token may not be written, 0 where none counts."""
        if len(written) < len(self.prefix):
            token = self.prefix[len(written)]
            only = torch.full_like(log_probs, -torch.inf)
            only[token] = log_probs[token] if len(written) >= self.uncounted else 0.0
            return only
        banned = self.banned(written)
        if not banned:
            return log_probs
        return log_probs.index_fill(0, torch.tensor(banned, device=log_probs.device), -torch.inf)


FREE = Constraints()
"""Nothing is forced and nothing forbidden."""
