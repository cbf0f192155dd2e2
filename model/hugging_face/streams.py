"""Whether the residual stream of a folder's model is all that its layers hand on, tried before anybody sees it.

A lens reads the stream behind an earlier layer through what follows the last one, and a patch puts a stream of one
text into the run of another. Both are wrong for a model that hands on anything beside the stream.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..network.hooks import Stream, hook_streams, record_streams
from .networks import FolderNetwork

TOLERANCE = 1e-4
"""The largest difference of two outputs that are taken for the same, in units of their size."""


@torch.inference_mode()
def hands_on_streams_alone(network: FolderNetwork, source: Tensor, target: Tensor) -> bool:
    """Whether the run of one text becomes that of another, (1, N) ids both, once the other's stream is put into it.

    The streams behind the embedding and behind the last layer are tried, in encoder and decoder; of a decoder alone
    that behind the last layer.
    """
    sides: list[tuple[dict[str, Stream], Callable[[Tensor], Tensor], Tensor]] = []
    if network.model.config.is_encoder_decoder:
        sides.append((dict(network.streams("source")), network.encode, source))
    sides.append((dict(network.streams("target")), lambda ids: network(source, ids), target))
    for streams, run, ids in sides:
        if not streams:
            return False
        names = [*streams] if len(sides) == 2 else [*streams][-1:]
        if not all(_becomes(streams[name], run, ids) for name in dict.fromkeys((names[0], names[-1]))):
            return False
    return True


def _becomes(stream: Stream, run: Callable[[Tensor], Tensor], ids: Tensor) -> bool:
    other = ids.flip(1)
    with record_streams({"": stream}) as found:
        expected = run(other)
    with hook_streams({stream: lambda _: found[""]}):
        given = run(ids)
    return float((given - expected).abs().max()) <= TOLERANCE * float(expected.abs().max().clamp_min(1e-9))
