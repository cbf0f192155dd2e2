"""Hugging Face models as a :class:`~.subject.Subject`; imports no library of theirs."""

from __future__ import annotations

import copy
import inspect
import re
from typing import Any

import torch
from torch import Tensor, nn

from ..capture.foreign.kinds import is_language_model
from ..language.say import to_say
from .subject import SIDES, Run, Subject

_POSITIONS = re.compile(r"position|wpe|relative_attention_bias")
"""Names of parameters that hold positions."""


def from_hugging_face(
    model: Any, ids: Tensor, keep: Tensor, target_ids: Tensor | None = None, causal: bool = False
) -> dict[str, Subject]:
    """The parts of a Hugging Face model: ``model``, or ``encoder``, ``decoder`` and ``cross``.

    A decoder-only model is meant to be causal if ``causal`` says so, or its class: one that is for causal language
    modelling is, whatever its configuration says. One that takes positions is padded at both sides: they are given to
    it, counted from the first real token.
    """
    if getattr(model.config, "is_encoder_decoder", False):
        return _encoder_decoder(model, ids, keep, ids if target_ids is None else target_ids)
    generates = is_language_model(type(model).__name__)
    cached = _cached(model) if generates and getattr(model.config, "use_cache", False) else None
    subject = Subject(
        _runner(model),
        model.get_input_embeddings()(ids).detach(),
        keep,
        causal or generates,
        padding_sides=SIDES if takes_positions(model) else None,
        others=_kernels(model),
        cached=cached,
        unpositioned=_runner(_without_positions(model)),
        module=model,
    )
    return {"model": subject}


def _runner(model: Any) -> Run:
    """Embeddings in, logits or last hidden state out; positions counted from the first real token where possible."""
    positioned = takes_positions(model)

    def run(embeddings: Tensor, keep: Tensor) -> Tensor:
        more = {"position_ids": (keep.long().cumsum(-1) - 1).clamp(min=0)} if positioned else {}
        return output_of(model(inputs_embeds=embeddings, attention_mask=keep.long(), **more))

    return run


def takes_positions(model: Any) -> bool:
    return "position_ids" in inspect.signature(model.forward).parameters


def output_of(found: Any) -> Any:
    """The logits or the last hidden state; what has neither, as it is."""
    logits = getattr(found, "logits", None)
    return getattr(found, "last_hidden_state", found) if logits is None else logits


def _kernels(model: Any) -> dict[str, Run]:
    """The explicit kernel beside the fused one, on a copy."""
    other = copy.deepcopy(model)
    now = getattr(model.config, "_attn_implementation", None)
    try:
        other.set_attn_implementation("sdpa" if now == "eager" else "eager")
    except (ValueError, AttributeError):
        return {}
    return {to_say("by the other kernel"): _runner(other)}


def _cached(model: Any) -> Run:
    """One position at a time; padding at the right is not fed, and its outputs are zero."""

    def run(embeddings: Tensor, keep: Tensor) -> Tensor:
        rows = []
        for row, kept in zip(embeddings, keep, strict=True):
            past, steps = None, []
            for t in range(int(kept.sum())):
                found = model(inputs_embeds=row[None, t : t + 1], past_key_values=past, use_cache=True)
                past = found.past_key_values
                steps.append(output_of(found)[0])
            rows.append(nn.functional.pad(torch.cat(steps), (0, 0, 0, len(kept) - len(steps))))
        return torch.stack(rows)

    return run


def _without_positions(model: Any) -> Any:
    """A copy in which everything that holds positions is zero."""
    bare = copy.deepcopy(model)
    with torch.no_grad():
        for name, tensor in bare.named_parameters():
            if _POSITIONS.search(name):
                tensor.zero_()
    return bare


def _encoder_decoder(model: Any, ids: Tensor, keep: Tensor, target_ids: Tensor) -> dict[str, Subject]:
    embed = model.get_input_embeddings()
    source, target = embed(ids).detach(), embed(target_ids).detach()
    target_keep = torch.ones_like(target_ids, dtype=torch.bool)

    def encode(x: Tensor, kept: Tensor) -> Tensor:
        return model.get_encoder()(inputs_embeds=x, attention_mask=kept.long()).last_hidden_state

    def decode(memory: Tensor, kept: Tensor, y: Tensor, target_kept: Tensor) -> Tensor:
        found = model(
            encoder_outputs=(memory,),
            attention_mask=kept.long(),
            decoder_inputs_embeds=y,
            decoder_attention_mask=target_kept.long(),
            use_cache=False,
        )
        return output_of(found)

    with torch.no_grad():
        memory = encode(source, keep)

    def decoder(y: Tensor, kept: Tensor) -> Tensor:
        return decode(memory[: y.shape[0]], keep[: y.shape[0]], y, kept)

    def cross(x: Tensor, kept: Tensor) -> Tensor:
        return decode(encode(x, kept), kept, target, target_keep)

    bare = _without_positions(model.get_encoder())
    sides = SIDES if any("relative_attention_bias" in name for name, _ in model.named_parameters()) else None
    return {
        "encoder": Subject(encode, source, keep, False, padding_sides=sides, unpositioned=_runner(bare), module=model),
        "decoder": Subject(decoder, target, target_keep, True, padding_sides=sides, module=model),
        "cross": Subject(cross, source, keep, False, output_keep=target_keep, module=model),
    }
