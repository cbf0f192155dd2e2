"""The families of ``bench/families`` again, by each kernel and padded: their weights, where those are diagnosed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from attenscope.trace import Kind
from bench.families.models import FAMILIES, Family, Kernel
from bench.families.run import LENGTHS, WIDTH, built, inputs_of
from bench.libraries.case import Case, Sizes, Subject

HEADS, TARGET = 4, WIDTH - 2


def _subject(family: Family, kernel: Kernel) -> Subject:
    model = built(family, kernel)
    inputs = inputs_of(model, "right")

    def told() -> Mapping[Kind, Sequence[Tensor]]:
        eager = type(model)(model.config_class(**family.configuration, attn_implementation="eager")).eval()
        eager.load_state_dict(model.state_dict())
        with torch.no_grad():
            found = eager(**inputs, output_attentions=True)
        names = {kind: f"{kind}_attentions" for kind in family.meant} | {"cross": "cross_attentions"}
        if len(family.meant) == 1:
            names = dict.fromkeys(family.meant, "attentions")
        # A learned sink is left out of what is returned.
        return {kind: _with_sink(found[names[kind]], family) for kind in family.meant if found.get(names[kind])}

    # Another kernel gives other numbers where a row has no key open, as of padding behind a window.
    return Subject(model, lambda: model(**inputs), told if kernel == "eager" else None)


def _with_sink(weights: Sequence[Tensor], family: Family) -> Sequence[Tensor]:
    if not _sinks(family):
        return weights
    return [torch.cat([one, 1 - one.sum(-1, keepdim=True)], -1) for one in weights]


def _sinks(family: Family) -> int:
    return int("sinks" in family.traits)


def _sizes(family: Family) -> dict[Kind, Sizes]:
    layers = family.configuration.get("num_hidden_layers", family.configuration.get("num_layers", 2))
    sizes: dict[Kind, Sizes] = {
        "encoder": (layers, HEADS, WIDTH, WIDTH),
        "decoder": (layers, HEADS, WIDTH, WIDTH + _sinks(family)),
    }
    if len(family.meant) > 1:
        sizes |= {"decoder": (layers, HEADS, TARGET, TARGET), "cross": (layers, HEADS, TARGET, WIDTH)}
    return {kind: sizes[kind] for kind in family.meant}


def cases() -> Iterator[Case]:
    """Yield a case for each family and kernel."""
    for family in FAMILIES:
        for kernel in family.kernels:
            name = f"{family.name}, {family.traits}, {kernel}"
            how = partial(_subject, family, kernel)
            yield Case("transformers", name, how, _sizes(family), samples=len(LENGTHS), modules=family.modules)
