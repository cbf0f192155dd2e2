"""What a word of a live model rests on: of ours by what is known of it, of others by what is found in a pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ...capture.attention import capture_attention
from ...live.live_model import LiveModel
from ...network.autoregressive import AutoregressiveModel
from ...network.hooks import record_streams
from ...network.transformer import Transformer
from ...trace import Kind
from ..blocks import SeenAttention, Stacks, seen_of
from ..methods import ATTENTION_X_GRADIENT, METHODS, OF_BLOCKS, Attribution, attribute
from ..recording import record_pass
from ..target import AttributionError, Target
from .blocks import foreign_blocks
from .reading import Reading

SUBLAYERS: Mapping[Kind, str] = {"decoder": "self-attention", "cross": "cross-attention"}
"""The attention of a decoder's layer in the order in which it runs."""


def methods_of(model: LiveModel) -> Mapping[str, str]:
    """Return the methods by name, each with what its score is: of our models those that are measured over sentences."""
    return METHODS if isinstance(model.model, Transformer) else METHODS | ATTENTION_X_GRADIENT


def see(model: AutoregressiveModel, source_ids: Sequence[int], input_ids: Sequence[int]) -> SeenAttention:
    """Return the attention of a pass over a source (S,) and what the decoder is fed (T,).

    Interventions open in this thread take part, also when the blocks are asked for.
    """
    if isinstance(model, Transformer):
        return seen_of(record_pass(model, source_ids, input_ids))
    reading = reading_of(model, source_ids, input_ids)
    with torch.no_grad(), capture_attention(model) as capture:
        reading.run()
    weights = {kind: torch.from_numpy(one.weights).double() for kind, one in capture.trace.maps.items()}
    found: list[Stacks] = []

    def stacks() -> Stacks:
        if not found:
            found.append(foreign_blocks(reading, 0))
        return found[0]

    return SeenAttention(weights, stacks)


def reading_of(model: AutoregressiveModel, source_ids: Sequence[int], input_ids: Sequence[int]) -> Reading:
    """Return that pass as one that can be made again with other embeddings."""
    device = next(model.parameters()).device
    source, inputs = (torch.tensor([list(ids)], device=device) for ids in (source_ids, input_ids))
    tables = model.token_embedding("source"), model.token_embedding("target")
    return Reading(model, lambda: model(source, inputs), tables, (source, inputs), (), (), ())


@torch.inference_mode(mode=False)
def decoder_streams(
    model: AutoregressiveModel, source_ids: Sequence[int], input_ids: Sequence[int]
) -> dict[str, Tensor]:
    """Return the decoder's residual stream (1, T, D) behind its embedding and behind each sublayer, by name.

    Raises AttributionError where a part of a block is not found.
    """
    reading = reading_of(model, source_ids, input_ids)
    with torch.no_grad(), record_streams(model.streams("target")) as layers:
        reading.run()
    _, blocks = foreign_blocks(reading, 0)
    embedding = layers["embedding"]
    behind: list[dict[str, Tensor]] = [{} for _ in range(len(layers) - 1)]
    for kind, name in SUBLAYERS.items():
        for own, block in zip(behind, (one for one in blocks if one.kind == kind), strict=True):
            own[name] = block.after[None].to(embedding)
    found = {"embedding": embedding}
    for number, own in enumerate(behind, start=1):
        names = own | {"feed-forward": layers[f"layer {number}"]}
        found |= {f"layer {number} {name}": stream for name, stream in names.items()}
    return found


def attributions(model: LiveModel, target: Target) -> tuple[dict[str, Attribution], str]:
    """Return the scores of every method that can be computed by its name, and why others cannot, "" where all can.

    Raises AttributionError where the probability of X is zero.
    """
    methods, refused = list(methods_of(model)), ""
    seen = see(model.model, target.source_ids, target.input_ids)
    try:
        seen.stacks()
    except AttributionError as error:
        methods, refused = [one for one in methods if one not in OF_BLOCKS], str(error)
    return {method: attribute(model, target, method, seen) for method in methods}, refused
