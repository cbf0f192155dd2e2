"""What a page may ask of a model that is run on it."""

from __future__ import annotations

from typing import Literal, get_args

Ability = Literal[
    "write",
    "translate",
    "change heads",
    "lens",
    "word facts",
    "value norms",
    "cache check",
    "attribution",
    "parts",
    "mask trial",
    "backends",
    "positions",
    "position pictures",
    "training",
    "atlas",
    "kept measures",
    "examples",
]
"""What it takes:

- ``write``: a text written token by token, given texts read, beam search;
- ``translate``: an encoder and cross-attention besides;
- ``change heads``: heads switched off, made uniform or copied, and the effect of each;
- ``lens``: the residual stream behind each layer, read as if it were the last, and put into another run;
- ``word facts``: the source words and the heads behind a word;
- ``value norms``: output projections;
- ``cache check``: a copy in float64, decoded in three ways;
- ``attribution``: what a word rests on, the page Why;
- ``parts``: of that, a logit and an attention score as sums over the parts of the residual stream;
- ``mask trial``: masks replaced, inputs poked;
- ``backends``: kernels of transformers, caches, paddings and packing compared;
- ``positions``: a positional table that is added to the token embeddings, to be read and changed;
- ``position pictures``: that table drawn and explained, and heads told by the places they look at;
- ``training``: history, snapshots, card and configuration;
- ``atlas``: measures of its heads over a corpus, made beforehand;
- ``kept measures``: what else is kept beside its weights of its heads: alignment, pruning, the course of training;
- ``examples``: the sentences and the tour that come with this project, which were chosen for its models.
"""
ABILITIES: tuple[Ability, ...] = get_args(Ability)
