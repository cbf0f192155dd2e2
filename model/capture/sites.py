"""Where a model of this project has attention, by its hook points."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from torch import nn

from ..trace import Kind
from .foreign.kinds import kind_of
from .points import AttentionPoints


@dataclass(frozen=True)
class AttentionSite:
    """One attention module of a model, and what it is by its path."""

    path: str
    module: nn.Module
    kind: Kind
    layer: int


def attention_sites(model: nn.Module) -> list[AttentionSite]:
    """Return the modules whose ``weights`` is a hook point, in the model's order.

    Kind and layer are read off the path, unless the module says them.
    """
    sites = []
    for point, module in model.named_modules():
        path, _, name = point.rpartition(".")
        if name == "weights" and isinstance(module, nn.Identity):
            numbers = re.findall(r"\.(\d+)\.", path)
            layer = int(numbers[-1]) if numbers else 0
            found = model.get_submodule(path)
            if isinstance(found, AttentionPoints):
                sites.append(AttentionSite(path, found, found.kind, found.layer))
            else:
                sites.append(AttentionSite(path, found, kind_of(path), layer))
    crossed = {_layer_path(site) for site in sites if site.kind == "cross"}
    # A decoder by itself has no path that says so, but its layers have cross-attention too.
    return [
        replace(one, kind="decoder") if one.kind == "encoder" and _layer_path(one) in crossed else one for one in sites
    ]


def _layer_path(site: AttentionSite) -> str:
    return site.path.rpartition(".")[0]
