"""This project's Transformer as the behaviour tests see it: encoder, decoder, and the way from source to logits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from ..capture.attention import capture_attention
from ..network.attention import attention_path
from ..network.config import PAD_ID
from ..network.layers import DecoderCache
from ..network.masks import causal_mask
from ..network.transformer import Embedding, Transformer
from ..trace import Kind
from .subject import Run, Subject

Block = Callable[[], AbstractContextManager[None]]
"""Opens a block inside which the model runs: with another mask, for example."""


def from_own_model(
    model: Transformer, source: Tensor, target: Tensor, within: Block = nullcontext, parts: tuple[Kind, ...] = ()
) -> dict[Kind, Subject]:
    """Return the parts of a model of this project that are named, or all, by kind.

    source (B, S) and target (B, T) are ids, PAD at the right, the first of each without. What goes in are token
    embeddings, before the position encoding; what comes out are the encoder's states, or the logits. Positions are
    absolute, so that padding at the left would change them. Every run happens inside the block that `within` opens.
    """
    made = {"encoder": _encoder, "decoder": _decoder, "cross": _cross}
    kinds: tuple[Kind, ...] = parts or ("encoder", "decoder", "cross")
    return {kind: made[kind](model, source, target, within) for kind in kinds}


def _embedded(side: Embedding, ids: Tensor) -> Tensor:
    return (side.table(ids) * side.scale).detach()


def _placed(side: Embedding, x: Tensor, keep: Tensor, offset: int = 0) -> Tensor:
    """Token embeddings (B, T, D) with their positions added."""
    return side.stream(side.tokens(x) + side.encoding(side.positional_encoding(keep, offset)))


def _columns(keep: Tensor) -> Tensor:
    return keep[:, None, None, :]


def _ways(run: Run, model: Transformer) -> dict[str, Run]:
    """Under capture, and by the kernel that runs unobserved on a GPU."""

    @contextmanager
    def captured() -> Iterator[None]:
        with capture_attention(model):
            yield

    def run_in(block: Block) -> Run:
        def other(x: Tensor, keep: Tensor) -> Tensor:
            with block():
                return run(x, keep)

        return other

    return {"with capture": run_in(captured), "by the fused kernel": run_in(lambda: attention_path("fused"))}


def _subject(model: Transformer, side: Embedding, ids: Tensor, run: Run, causal: bool = False, **more: Any) -> Subject:
    """ids (B, T) as embeddings; ``more`` is what else the tests are to know."""
    return Subject(run, _embedded(side, ids), ids != PAD_ID, causal, others=_ways(run, model), **more)


def _encoder(model: Transformer, source: Tensor, target: Tensor, within: Block) -> Subject:
    side = model.source_embedding

    def run(x: Tensor, keep: Tensor) -> Tensor:
        with within():
            return model.encoder(_placed(side, x, keep), _columns(keep))

    def unpositioned(x: Tensor, keep: Tensor) -> Tensor:
        with within():
            return model.encoder(x, _columns(keep))

    return _subject(model, side, source, run, unpositioned=unpositioned)


def _decoder(model: Transformer, source: Tensor, target: Tensor, within: Block) -> Subject:
    side, keep_source = model.target_embedding, source != PAD_ID
    with torch.no_grad(), within():
        memory = model.encode(source)

    def run(y: Tensor, keep: Tensor) -> Tensor:
        rows = y.shape[0]
        mask = causal_mask(y.shape[1], device=y.device) & _columns(keep)
        with within():
            states = model.decoder(_placed(side, y, keep), memory[:rows], mask, _columns(keep_source[:rows]), None)
        return model.generator(states)

    def cached(y: Tensor, keep: Tensor) -> Tensor:
        cache, steps = DecoderCache(model.config.decoder_layers), []
        for t in range(y.shape[1]):
            one = _placed(side, y[:, t : t + 1], keep[:, t : t + 1], t)
            with within():
                steps.append(model.decoder(one, memory, None, _columns(keep_source), cache))
        return model.generator(torch.cat(steps, 1))

    return _subject(model, side, target, run, causal=True, cached=cached)


def _cross(model: Transformer, source: Tensor, target: Tensor, within: Block) -> Subject:
    side = model.source_embedding

    def run(x: Tensor, keep: Tensor) -> Tensor:
        with within():
            memory = model.encoder(_placed(side, x, keep), _columns(keep))
            return model.generator(model.decode(target, memory, _columns(keep)))

    return _subject(model, side, source, run, output_keep=target != PAD_ID)
