"""Break the model on purpose: heads turned off or replaced, masks edited, inside one block and for one thread.

    with apply_changes(model, parse_changes("cross.2.3:off, encoder.1.1:uniform")):
        translator.translate(text)

What runs is the model itself through :func:`attenscope.network.hooks.hook_outputs`: nothing is left behind. Open the
block before a capture, and the capture sees the changed attention.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ..capture.attention import AttentionSite, find_attention_sites
from ..language import say
from ..network.hooks import OutputHook, hook_outputs
from ..torch_internals import is_compiled
from ..trace import Kind
from .changes import (
    HeadChange,
    InterventionError,
    MaskChange,
    ModelChange,
    duplicate_head_change_text,
    too_few_heads_text,
    too_few_layers_text,
)

LayerPlace = tuple[Kind, int]
SitesByPlace = dict[LayerPlace, AttentionSite]
MaskEdit = Callable[[Tensor, int], Tensor]
"""(B or 1, 1 or H, Q, K) bool, not to be changed, and the position of its first query -> the mask to use instead."""


@contextmanager
def apply_changes(model: nn.Module, changes: Sequence[ModelChange]) -> Iterator[None]:
    """Make the changes to whatever this thread runs inside the block; cached decoding included.

    Raises InterventionError for a layer or head the model does not have, for two changes to one head, and for a
    compiled model.
    """
    if not changes:
        yield
        return
    if is_compiled(model):
        raise InterventionError(
            say("A compiled model runs past its hooks: change the model that torch.compile was given.")
        )
    sites = {(site.kind, site.layer): site for site in find_attention_sites(model)}
    heads, masks = _group_changes_by_site(sites, changes)
    functions: dict[nn.Module, OutputHook] = {}
    for place, of_heads in heads.items():
        functions |= _make_head_hooks(sites[place], of_heads)
    for place, of_masks in masks.items():
        functions |= _make_mask_hooks(sites, sites[place], of_masks)
    with hook_outputs(functions):
        yield


@contextmanager
def edit_masks(model: nn.Module, kind: Kind, edit: MaskEdit, scores: OutputHook | None = None) -> Iterator[None]:
    """Pass the masks of all layers of one kind through `edit`, in whatever this thread runs inside the block.

    `scores` may change what comes of the scores after the mask, (B, H, Q, K), just before the softmax.
    """
    sites = {(site.kind, site.layer): site for site in find_attention_sites(model)}
    functions: dict[nn.Module, OutputHook] = {}
    for site in sites.values():
        if site.kind == kind:
            functions |= _make_mask_edit_hooks(sites, site, edit)
            functions |= {site.module.get_submodule("masked_scores"): scores} if scores else {}
    with hook_outputs(functions):
        yield


def _group_changes_by_site(
    sites: SitesByPlace, changes: Sequence[ModelChange]
) -> tuple[dict[LayerPlace, list[HeadChange]], dict[LayerPlace, list[MaskChange]]]:
    heads: dict[LayerPlace, list[HeadChange]] = defaultdict(list)
    masks: dict[LayerPlace, list[MaskChange]] = defaultdict(list)
    for change in changes:
        layers = sorted(layer for kind, layer in sites if kind == change.kind)
        if not layers or not (change.layer is None or change.layer in layers):
            raise InterventionError(too_few_layers_text(change, len(layers)))
        if isinstance(change, MaskChange):
            for layer in layers if change.layer is None else [change.layer]:
                masks[change.kind, layer].append(change)
            continue
        place = (change.kind, change.layer)
        have = _get_head_count(sites[place])
        if not all(0 <= head < have for head in (change.head, change.source or 0)):
            raise InterventionError(too_few_heads_text(change, have))
        if any(other.head == change.head for other in heads[place]):
            raise InterventionError(duplicate_head_change_text(change))
        heads[place].append(change)
    return heads, masks


def _get_head_count(site: AttentionSite) -> int:
    heads = site.module.heads
    assert isinstance(heads, int)
    return heads


def _make_head_hooks(site: AttentionSite, changes: Sequence[HeadChange]) -> dict[nn.Module, OutputHook]:
    """At most three hooks: on the masked scores (uniform), on the weights (copy), on the context (off)."""
    off = [change.head for change in changes if change.change == "off"]
    uniform = [change.head for change in changes if change.change == "uniform"]
    copied = {change.head: change.source for change in changes if change.source is not None}

    def silence(context: Tensor) -> Tensor:
        return context.index_fill(1, torch.tensor(off, device=context.device), 0.0)

    def level(scores: Tensor) -> Tensor:
        levelled = scores.clone()
        levelled[:, uniform] = levelled[:, uniform].masked_fill(levelled[:, uniform] != -math.inf, 0.0)
        return levelled

    def copy(weights: Tensor) -> Tensor:
        replaced = weights.clone()
        replaced[:, list(copied)] = weights[:, list(copied.values())]
        return replaced

    wanted = {"context": (off, silence), "masked_scores": (uniform, level), "weights": (copied, copy)}
    return {site.module.get_submodule(point): hook for point, (used, hook) in wanted.items() if used}


def _make_mask_hooks(
    sites: SitesByPlace, site: AttentionSite, changes: Sequence[MaskChange]
) -> dict[nn.Module, OutputHook]:
    def edit(mask: Tensor, first: int) -> Tensor:
        edited = mask.clone()
        for change in changes:
            rows, keys = (
                _get_position_slice(change.query, first, mask.shape[-2]),
                _get_position_slice(change.key, 0, mask.shape[-1]),
            )
            edited[..., rows, keys] = change.allowed
        return edited

    return _make_mask_edit_hooks(sites, site, edit)


def _make_mask_edit_hooks(sites: SitesByPlace, site: AttentionSite, edit: MaskEdit) -> dict[nn.Module, OutputHook]:
    """Edit the mask at its own hook point. The rows that run now are read off the tensors on their way there."""
    now = {"queries": 1, "first": 0}

    def count_queries(q: Tensor) -> None:
        now["queries"] = q.shape[2]

    def place_queries(scores: Tensor) -> None:
        now["first"] = scores.shape[3] - scores.shape[2]

    def edit_mask(mask: Tensor) -> Tensor:
        queries, keys = now["queries"], mask.shape[-1]
        first = now["first"] if site.kind == "cross" else keys - queries
        return edit(mask.expand(*mask.shape[:-2], queries, keys), first)

    hooks: dict[nn.Module, OutputHook] = {
        site.module.get_submodule("q"): count_queries,
        site.module.get_submodule("mask"): edit_mask,
    }
    if site.kind == "cross":
        # The keys of a cross-attention do not say how far the decoder is; its self-attention, just before it, does.
        hooks[sites["decoder", site.layer].module.get_submodule("scores")] = place_queries
    return hooks


def _get_position_slice(place: int | None, first: int, count: int) -> slice:
    """Where a position lies in what runs now: everything for None, nothing if it is not there."""
    if place is None:
        return slice(None)
    return slice(place - first, place - first + 1) if first <= place < first + count else slice(0, 0)
