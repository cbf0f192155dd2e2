"""Why nothing was captured of a model, in sentences: what it is, what ran, and what can be done."""

from __future__ import annotations

import re
from collections.abc import Collection

import torch
from torch import nn

from ...language.say import listed, say, to_say
from .observed import SHOWN, path_in_words

WITHOUT_WEIGHTS = re.compile(
    r"Performer|FastAttention|LinearAttention|Mamba(?!Out)|RWKV|Rwkv|FNet|Hyena|RetNet|Retention|DeltaNet|xLSTM"
)
"""Classes of layers that stand where attention would and compute no weights of queries over keys."""


_OVER_FEATURES = re.compile("XCA|CrossCovariance|ChannelAtt")
"""Classes whose attention is between features: where there are as many features as tokens, shapes do not tell."""


def is_over_features(module: nn.Module) -> bool:
    """Whether a module computes attention between features, by the name of its class."""
    return bool(_OVER_FEATURES.search(type(module).__name__))


def nothing_in_words(model: nn.Module, ran: bool, other_softmaxes: Collection[str]) -> str:
    """Return why no attention was seen at all; `ran` says whether anything of the model ran in this thread."""
    name = type(model).__name__
    if program := _program(model):
        return say(program, model=name)
    if not ran:
        return say(
            "Nothing was captured: nothing of this {model} ran inside the block, in its thread. Run the model there; "
            "what runs in another thread or process is not seen.",
            model=name,
        )
    found = (WITHOUT_WEIGHTS.search(type(module).__name__) for module in model.modules())
    if without := sorted({match[0] for match in found if match}):
        return say(
            "Nothing was captured: this {model} ran, but layers of {classes} have no attention weights.",
            model=name,
            classes=listed(without[:SHOWN]),
        )
    if other_softmaxes:
        return say(
            "Nothing was captured: no attention was found in this {model}. A softmax ran in {modules}: if that is "
            "attention, name it: capture_attention(model, modules=[...]).",
            model=name,
            modules=listed(map(path_in_words, sorted(other_softmaxes)[:SHOWN])),
        )
    return say(
        "Nothing was captured: this {model} ran, but called no softmax and no attention of torch. If a module returns "
        "attention weights, name it: capture_attention(model, modules=[...]).",
        model=name,
    )


def _program(model: nn.Module) -> str:
    """What is to be said of a model that runs past Python; empty for any other."""
    for module in model.modules():
        if isinstance(module, torch.jit.ScriptModule):
            return to_say(
                "Nothing was captured: this {model} is scripted or traced by torch.jit, which runs past what can be "
                "observed. Capture the model that it was made of."
            )
        if isinstance(module, torch.fx.GraphModule):
            return to_say(
                "Nothing was captured: this {model} is an exported program or a traced graph, whose calls belong to "
                "no module. Capture the model that it was made of."
            )
    return ""
