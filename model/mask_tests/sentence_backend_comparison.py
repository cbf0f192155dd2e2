"""The comparison of kernels and caches that pages run: a sentence and its first half, padded."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..language import say
from ..runnable_model import InputError, RunnableModel
from .backends import WAYS, BackendComparison, compare_backends

PROCESS_WIDE_WAYS = ("sdpa efficient", "sdpa flash")
"""Kernels that torch can choose only for a whole process, in which others compute as well."""
PAGE_WAYS = tuple(name for name in WAYS if name not in PROCESS_WIDE_WAYS)


def compare_text_backends(model: RunnableModel, text: str) -> BackendComparison:
    """Compare the ways of a Hugging Face folder's model on a text and on its first half, with their masks.

    As it is, it runs by F.scaled_dot_product_attention where it has that, else by its own softmax. Nothing of the model
    itself is changed. Raises InputError for a text of fewer than two tokens, or that cannot be read.
    """
    network: Any = copy.deepcopy(model.model.get_submodule("model"))
    try:
        network.set_attn_implementation("sdpa")
    except (ValueError, ImportError):
        network.set_attn_implementation("eager")
    ids = model.encode(text).ids
    given = _make_full_and_half_batch(ids, "input_ids", "attention_mask", network.device)
    if network.config.is_encoder_decoder:
        written = model.translate(text, capture=False).target_ids
        target = (model.model.start_id, *written)[: max(2, len(written))]  # what was predicted last is not fed
        given |= _make_full_and_half_batch(target, "decoder_input_ids", "decoder_attention_mask", network.device)
    return compare_backends(network, given, ways=PAGE_WAYS, masks=True)


def _make_full_and_half_batch(ids: Sequence[int], name: str, mask: str, device: torch.device) -> dict[str, Tensor]:
    """Return the ids and their first half, (2, T), padded at the right with the first of them."""
    if len(ids) < 2:
        raise InputError(say("Two tokens are needed to compare ways to compute: please type more."))
    half = max(2, len(ids) // 2)
    keep = torch.arange(len(ids), device=device) < torch.tensor([[len(ids)], [half]], device=device)
    both = torch.tensor([ids, ids], device=device).where(keep, ids[0])
    return {name: both, mask: keep.long()}
