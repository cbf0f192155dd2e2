"""The parameters of a model by part, and the tensors of its state dict."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..language.say import to_say
from ..network.transformer import Transformer
from .load import unique_weights

PARTS = {
    "source_embedding": to_say("embeddings"),
    "target_embedding": to_say("embeddings"),
    "encoder": to_say("encoder"),
    "decoder": to_say("decoder"),
    "generator": to_say("generator"),
}


@dataclass(frozen=True)
class StateTensor:
    """One entry of the state dict."""

    name: str
    shape: tuple[int, ...]
    part: str
    shared_with: str = ""
    """The earlier name of the same tensor, or nothing."""

    @property
    def parameters(self) -> int:
        return math.prod(self.shape)


def state_tensors(model: Transformer) -> tuple[StateTensor, ...]:
    """Return every entry of ``model.state_dict()``, in its order; tied ones name the entry that they are."""
    first: dict[int, str] = {}
    found = []
    for name, tensor in model.state_dict(keep_vars=True).items():
        earlier = first.setdefault(id(tensor), name)
        part = PARTS.get(name.partition(".")[0], "other")
        found.append(StateTensor(name, tuple(tensor.shape), part, "" if earlier == name else earlier))
    return tuple(found)


def parameters_by_part(model: Transformer) -> dict[str, int]:
    """Return the trained numbers of embeddings, encoder, decoder and generator, each counted where it stands first.

    A matrix that is shared counts once: an output projection tied to the embedding leaves the generator 0.
    """
    counts = dict.fromkeys(PARTS.values(), 0)
    for name, tensor in unique_weights(model).items():
        counts[PARTS[name.partition(".")[0]]] += tensor.numel()
    return counts
