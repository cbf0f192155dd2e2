"""A network that reads a text and writes another token by token, ours or anybody's, and what it is fed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, Protocol

import torch
from torch import Tensor, nn

from .config import BOS_ID, PAD_ID
from .hooks import OutputHook, Stream, hook_streams
from .layers import AddedPositions

Side = Literal["source", "target"]


class DecodingCache(Protocol):
    """What one decoding need not compute again at its next step."""

    def reorder(self, rows: Tensor, cross: Tensor | None = None) -> None:
        """Keep the given rows (B',) of the batch, of what came of the source the rows `cross`; None for all of them."""


class AutoregressiveModel(nn.Module):
    """A network with a source and a target, ids in and logits out.

    Of a decoder alone the source is the prompt and the target its continuation. Decoding, teacher forcing and the
    interventions need no more of a network than this.
    """

    generator: nn.Module
    """States (..., D) -> logits (..., V)."""

    is_decoder_alone = False
    """Whether source and target are one text, which the decoder reads at once."""

    @property
    @abstractmethod
    def start_id(self) -> int:
        """The id that a target begins with when it is fed in."""

    @property
    @abstractmethod
    def end_ids(self) -> Collection[int]:
        """The ids that end a target."""

    @property
    @abstractmethod
    def pad_id(self) -> int | None:
        """The id that fills a source up behind its end; None where there is none, so that no source is padded."""

    @abstractmethod
    def token_embedding(self, side: Side) -> nn.Module:
        """Return the module whose output is the embedding (B, T, D) of tokens, before positions are added to it.

        Both sides may share one. That of a decoder alone embeds the prompt and what follows it in one.
        """

    @abstractmethod
    def added_positions(self, side: Side) -> AddedPositions | None:
        """Return what is added for positions; None where nothing is. A decoder alone adds it to its target only."""

    @abstractmethod
    def room(self, source_tokens: int) -> int:
        """Return how many tokens a target of such a source can have at most."""

    def usual_limit(self, source_tokens: int) -> int:
        """Return the tokens after which a target is cut off unless more are asked for: generous for a translation."""
        return 2 * source_tokens + 20

    def rows_at_once(self, most: int, target_tokens: int) -> int:
        """Return how many rows of so many target tokens one pass of :meth:`decode` may have, `most` at most."""
        return most

    @abstractmethod
    def source_mask(self, source: Tensor) -> Tensor:
        """Return which tokens of source (B, S) are real: bool (B, 1, 1, S)."""

    @abstractmethod
    def new_cache(self) -> DecodingCache:
        """Return an empty cache for one decoding."""

    @abstractmethod
    def encode(self, source: Tensor, mask: Tensor | None = None) -> Tensor:
        """source (B, S) ids -> memory, whose first axis is B: what :meth:`decode` needs to know of the source.

        `mask` says which tokens are real, as :meth:`source_mask` does where none is given.
        """

    @abstractmethod
    def decode(
        self, target: Tensor, memory: Tensor, memory_mask: Tensor | None, *, cache: DecodingCache | None = None
    ) -> Tensor:
        """target (B, T) ids, begun by ``start_id`` -> states for the generator, row t after t tokens.

        With a cache, `target` holds only the tokens that are new. The memory may have a row for every W of the target.
        """

    @abstractmethod
    def predictions(self, source: Tensor, target: Tensor, *, sublayers: bool = False) -> Iterator[tuple[str, Tensor]]:
        """Yield the name of each place along the decoder and what it would predict there, (B, T, V) logits.

        The last place is the model's own prediction; `sublayers` asks for one after each sublayer, where that is known.
        """

    @abstractmethod
    def streams(self, side: Side) -> Mapping[str, Stream]:
        """Return the residual stream (B, T, D) of encoder or decoder behind its embedding and behind each layer.

        By name: "embedding", "layer 1", "layer 2", ... What follows the last works on each position alone. A decoder
        alone has one stream, of its target.
        """

    def predict_from_streams(
        self, source: Tensor, target: Tensor, streams: Mapping[str, Tensor]
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield what would be predicted, (B, T, V) logits, if each of these (B, T, D) stood behind the last layer."""
        last = [*self.streams("target").values()][-1]
        memory, mask = self.encode(source), self.source_mask(source)
        for name, stream in streams.items():  # one at a time: all of them at once are P x T x V numbers
            with hook_streams({last: _make_constant_hook(stream)}):
                logits = self.generator(self.decode(target, memory, mask))
            yield name, logits

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """source (B, S), target (B, T) ids, begun by ``start_id`` -> logits (B, T, V)."""
        return self.generator(self.decode(target, self.encode(source), self.source_mask(source)))


def _make_constant_hook(stream: Tensor) -> OutputHook:
    return lambda _: stream


def pad_ids(rows: Sequence[Sequence[int]], pad_id: int = PAD_ID) -> Tensor:
    """Return ragged ids as one tensor (B, longest) on the CPU, PAD after the end."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[pad_id] * (width - len(row))] for row in rows], device="cpu")


def make_decoder_inputs(target_ids: Sequence[int], start: int = BOS_ID) -> tuple[int, ...]:
    """Return the T ids that a decoder is fed to predict T ids: `start`, then all but the last."""
    return (start, *target_ids[:-1])


def shift_right(target: Tensor, start: int = BOS_ID) -> Tensor:
    """Return the decoder inputs of a batch (..., T): the outputs shifted right by one position (section 3.1)."""
    return torch.cat([torch.full_like(target[..., :1], start), target[..., :-1]], -1)
