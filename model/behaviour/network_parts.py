"""A part of a network that writes as the behaviour tests see it: encoder, decoder, or from source to logits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from ..capture.attention import capture_attention
from ..language.say import to_say
from ..network.attention import attention_path
from ..network.autoregressive import AutoregressiveModel, Side
from ..network.hooks import hook_outputs
from ..trace import Kind
from .subject import Run, Subject

Block = Callable[[], AbstractContextManager[None]]
"""Opens a block inside which the model runs: with another mask, for example."""


@dataclass(frozen=True, eq=False)
class Padded:
    """Sentences of one side, padded at the right, the first of them without."""

    ids: Tensor
    """(B, T)"""
    keep: Tensor
    """(B, T) bool, True = a real token."""


def part_of(
    network: AutoregressiveModel, kind: Kind, source: Padded, target: Padded, within: Block = nullcontext
) -> Subject:
    """Return the part of a network in which one kind of attention stands.

    What goes in are token embeddings, before positions; what comes out are the encoder's states, or the logits.
    Positions are counted from the left, so that padding there would change them. Every run happens inside the block
    that `within` opens. A decoder alone has "decoder" only: its source is the first token of its text, and its target
    the whole text.
    """
    parts = _Parts(network, source, target, within)
    return {"encoder": parts.encoder, "decoder": parts.decoder, "cross": parts.cross}[kind]()


@dataclass(frozen=True, eq=False)
class _Parts:
    network: AutoregressiveModel
    source: Padded
    target: Padded
    within: Block

    def encoder(self) -> Subject:
        bare = None if self.network.added_positions("source") is None else self._unpositioned
        return self._subject("source", self.source, self._encode, unpositioned=bare)

    def decoder(self) -> Subject:
        memory = self._memory()
        mask = self.network.source_mask(self.source.ids)

        def run(y: Tensor, keep: Tensor) -> Tensor:
            rows = y.shape[0]
            with self.within(), self._embedded_as("target", y):
                states = self.network.decode(self._ids(keep), memory[:rows], mask[:rows])
            return self.network.generator(states)

        def cached(y: Tensor, keep: Tensor) -> Tensor:
            cache, steps, ids = self.network.new_cache(), [], self._ids(keep)
            for t in range(y.shape[1]):
                with self.within(), self._embedded_as("target", y[:, t : t + 1]):
                    steps.append(self.network.decode(ids[:, t : t + 1], memory, mask, cache=cache))
            return self.network.generator(torch.cat(steps, 1))

        return self._subject("target", self.target, run, causal=True, cached=cached)

    def cross(self) -> Subject:
        def run(x: Tensor, keep: Tensor) -> Tensor:
            memory = self._encode(x, keep)
            with self.within():
                return self.network.generator(self.network.decode(self.target.ids, memory, keep[:, None, None, :]))

        return self._subject("source", self.source, run, output_keep=self.target.keep)

    def _encode(self, x: Tensor, keep: Tensor) -> Tensor:
        with self.within(), self._embedded_as("source", x):
            return self.network.encode(self._ids(keep), keep[:, None, None, :])

    def _unpositioned(self, x: Tensor, keep: Tensor) -> Tensor:
        positions = self.network.added_positions("source")
        assert positions is not None
        with hook_outputs({positions.module: torch.zeros_like}):
            return self._encode(x, keep)

    def _memory(self) -> Tensor:
        with torch.no_grad(), self.within():
            return self.network.encode(self.source.ids)

    def _ids(self, keep: Tensor) -> Tensor:
        """Ids (B, T) that are padding where nothing is kept; which they are elsewhere is not read."""
        pad = self.network.pad_id or 0
        return torch.where(keep, int(pad == 0), pad)

    def _embedded_as(self, side: Side, x: Tensor) -> AbstractContextManager[None]:
        return hook_outputs({self.network.token_embedding(side): lambda _: x})

    def _embeddings(self, side: Side, ids: Tensor) -> Tensor:
        """What the tokens (B, T) of one side are embedded as, (B, T, D)."""
        seen: list[Tensor] = []
        with torch.no_grad(), hook_outputs({self.network.token_embedding(side): seen.append}):
            memory = self.network.encode(ids if side == "source" else self.source.ids)
            if side == "target":
                self.network.decode(ids, memory, self.network.source_mask(self.source.ids))
        return seen[-1].detach()

    def _ways(self, run: Run) -> dict[str, Run]:
        """Under capture, and by the kernel that runs unobserved on a GPU."""

        @contextmanager
        def captured() -> Iterator[None]:
            with capture_attention(self.network):
                yield

        def run_in(block: Block, x: Tensor, keep: Tensor) -> Tensor:
            with block():
                return run(x, keep)

        fused: Block = lambda: attention_path("fused")  # noqa: E731
        return {
            to_say("with capture"): partial(run_in, captured),
            to_say("by the fused kernel"): partial(run_in, fused),
        }

    def _subject(
        self,
        side: Side,
        of: Padded,
        run: Run,
        *,
        causal: bool = False,
        output_keep: Tensor | None = None,
        cached: Run | None = None,
        unpositioned: Run | None = None,
    ) -> Subject:
        return Subject(
            run,
            self._embeddings(side, of.ids),
            of.keep,
            causal,
            output_keep,
            others=self._ways(run),
            cached=cached,
            unpositioned=unpositioned,
        )
