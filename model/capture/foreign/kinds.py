"""Whether an attention is the encoder's, the decoder's or between the two: by its module's path, else by its mask."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...trace import Kind

CROSS = re.compile(r"cross|multihead_attn|enc(oder)?_attn|enc(oder)?_?dec|src_attn|context_attn|attn2", re.IGNORECASE)
DECODER = re.compile(r"decoder|(^|\.)dec(_|\.|$)", re.IGNORECASE)
ENCODER = re.compile(r"encoder|(^|\.)enc(_|\.|$)", re.IGNORECASE)


@dataclass(frozen=True)
class Facts:
    """The evidence that decides the kind of a path."""

    path: str
    is_cross: bool
    """Queries and keys were made of different tensors."""
    causal: bool | None
    """No query may attend to a later key, in every call that could show it; None where none could."""


def kind_of(path: str) -> Kind:
    """Return the kind of an attention of this project: ``encoder.layers.0.self_attention`` -> encoder, and so on."""
    if CROSS.search(path):
        return "cross"
    return "decoder" if "decoder" in path else "encoder"


def kinds(facts: Sequence[Facts], model: str) -> Mapping[str, Kind]:
    """Return the kind of every path; `model` is the name of the model's class.

    What a path says, encoder or decoder, holds when the model has both. Where there is one stack alone, it is a
    decoder if its mask is causal, or if the model is a language model by its name and so ought to be. A mask that could
    be either is a decoder's in a layer that has cross-attention too, else an encoder's.
    """
    crossed = {_layer(one.path) for one in facts if _crosses(one)}
    alone = not any(_crosses(one) or DECODER.search(one.path) for one in facts)
    return {one.path: _kind(one, alone, _layer(one.path) in crossed, model) for one in facts}


def _kind(one: Facts, alone: bool, crossed: bool, model: str) -> Kind:
    if _crosses(one):
        return "cross"
    if DECODER.search(one.path):
        return "decoder"
    if alone or not ENCODER.search(one.path):
        causal = crossed if one.causal is None else one.causal
        return "decoder" if causal or is_language_model(model) else "encoder"
    return "encoder"


def _layer(path: str) -> str:
    return path.rpartition(".")[0]


def _crosses(one: Facts) -> bool:
    return bool(CROSS.search(one.path)) or (one.is_cross and "self" not in one.path)


def is_language_model(name: str) -> bool:
    """Whether a class of this name generates text from left to right, so that its one stack is a decoder."""
    return "CausalLM" in name or "LMHead" in name or name.startswith("GPT")


def is_one_number(allowed: Tensor) -> bool:
    """Whether a mask is a single number that was broadcast."""
    return not any(allowed.stride())


def is_causal(allowed: Tensor) -> bool | None:
    """Whether booleans (B, H, Q, K) block every later key; None where that cannot be told, as of one query.

    A key that no query may attend to is padding and tells nothing: a causal mask blocks later keys that other queries
    see, and lets queries see earlier ones. The last query stands beside the last key: with more keys than queries, the
    earlier ones are those of a cache.
    """
    queries, keys = allowed.shape[-2:]
    if keys < queries:
        return None
    if is_one_number(allowed):
        return False if queries > 1 and bool(allowed.flatten()[0]) else None
    later = torch.ones(queries, keys, dtype=torch.bool, device=allowed.device).triu(keys - queries + 1)
    if bool((allowed & later).any()):
        return False
    earlier = torch.ones_like(later).tril(keys - queries - 1)
    seen = allowed.any(-2, keepdim=True)
    return True if bool((seen & later).any()) and bool((allowed & earlier).any()) else None
