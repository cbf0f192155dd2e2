"""Why nothing was captured of a model, in sentences: what it is, what ran, and what can be done."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

import torch
from torch import nn

WITHOUT_WEIGHTS = re.compile(
    r"Performer|FastAttention|LinearAttention|Mamba(?!Out)|RWKV|Rwkv|FNet|Hyena|RetNet|Retention|DeltaNet|xLSTM"
)
"""Classes of layers that stand where attention would and compute no weights of queries over keys."""


_OVER_FEATURES = re.compile("XCA|CrossCovariance|ChannelAtt")
"""Classes whose attention is between features: where there are as many features as tokens, shapes do not tell."""
NO_PRODUCT = "of one projection alone, as in linear attention: no product of queries and keys"


def is_over_features(module: nn.Module) -> bool:
    """Whether a module computes attention between features, by the name of its class."""
    return bool(_OVER_FEATURES.search(type(module).__name__))


def not_laid_out(refused: Mapping[str, str]) -> str:
    """Return which softmaxes were left out, and the axes that were seen there."""
    some = _listed(f"{path or 'the model itself'} ({reason})" for path, reason in sorted(refused.items()))
    return f"Not recorded, because it cannot be laid out as samples, heads, queries and keys: softmax of {some}."


def not_understood(refused: Mapping[str, str]) -> str:
    """Return which kernels of packed sequences were left out, and the argument whose effect is not known."""
    some = _listed(f"{reason}, in {path or 'the model itself'}" for path, reason in sorted(refused.items()))
    return f"Not recorded, because its effect on the weights is not known: {some}."


def nothing_in_words(model: nn.Module, ran: bool, other_softmaxes: Collection[str]) -> str:
    """Return why no attention was seen at all; `ran` says whether anything of the model ran in this thread."""
    name = type(model).__name__
    if program := _program(model):
        return f"Nothing was captured: this {name} is {program}. Capture the model that it was made of."
    if not ran:
        return (
            f"Nothing was captured: nothing of this {name} ran inside the block, in its thread. Run the model there; "
            "what runs in another thread or process is not seen."
        )
    found = (WITHOUT_WEIGHTS.search(type(module).__name__) for module in model.modules())
    if without := sorted({match[0] for match in found if match}):
        return f"Nothing was captured: this {name} ran, but layers of {_listed(without)} have no attention weights."
    if other_softmaxes:
        some = _listed(path or "the model itself" for path in sorted(other_softmaxes))
        return (
            f"Nothing was captured: no attention was found in this {name}. A softmax ran in {some}: if that is "
            "attention, name it: capture_attention(model, modules=[...])."
        )
    return (
        f"Nothing was captured: this {name} ran, but called no softmax and no attention of torch. If a module returns "
        "attention weights, name it: capture_attention(model, modules=[...])."
    )


def _program(model: nn.Module) -> str:
    """What a model that runs past Python is; empty for any other."""
    for module in model.modules():
        if isinstance(module, torch.jit.ScriptModule):
            return "scripted or traced by torch.jit, which runs past what can be observed"
        if isinstance(module, torch.fx.GraphModule):
            return "an exported program or a traced graph, whose calls belong to no module"
    return ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join([*names][:8])
