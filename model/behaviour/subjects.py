"""Models as :class:`~.behaviour.Subject`: any module that takes token ids, nn.Transformer, and Hugging Face models."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .checks import SIDES, Run, Subject

_POSITIONS = re.compile(r"position|wpe|relative_attention_bias")
"""Names of parameters and buffers that hold positions."""


def from_ids(
    call: Callable[[Tensor, Tensor], Tensor],
    embedding: nn.Module,
    ids: Tensor,
    keep: Tensor,
    causal: bool,
    pad_id: int = 0,
    **more: Any,
) -> Subject:
    """A subject from ``call(ids, keep)`` and the module inside it that embeds the ids.

    The call is given ids that only say what is padding. The embeddings are put in by a hook that lives only during the
    call, and only where this very tensor is embedded, so that an embedding shared by source and target serves both.
    Running it raises ValueError when the ids are not embedded there: nothing would be changed, and every test pass.
    """
    token = int(ids[keep][0])

    def run(embeddings: Tensor, kept: Tensor) -> Tensor:
        places, embedded = torch.where(kept, token, pad_id), False

        def replace(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor | None:
            nonlocal embedded
            same = bool(args) and args[0].shape == places.shape and args[0].data_ptr() == places.data_ptr()
            embedded = embedded or same
            return embeddings if same else None

        handle = embedding.register_forward_hook(replace)
        try:
            outputs = call(places, kept)
        finally:
            handle.remove()
        if not embedded:
            raise ValueError("The model does not call the module given as embedding with the token ids as they are.")
        return outputs

    return Subject(run, embedding(ids).detach(), keep, causal, **more)


def from_encoder(encoder: nn.Module, embeddings: Tensor, keep: Tensor) -> Subject:
    """An nn.TransformerEncoder (batch first): it has no positions, so B8 applies as it is."""

    def run(x: Tensor, kept: Tensor) -> Tensor:
        return _sized(encoder(x, src_key_padding_mask=~kept), x)

    def slow(x: Tensor, kept: Tensor) -> Tensor:
        with torch.enable_grad():
            return run(x.detach().requires_grad_(), kept).detach()

    ways = {"without the fast path": slow}
    return Subject(run, embeddings, keep, False, padding_sides=SIDES, others=ways, unpositioned=run)


def _sized(outputs: Tensor, x: Tensor) -> Tensor:
    """The fast path drops columns that are padding in every sample; they come back as zeros."""
    missing = x.shape[1] - outputs.shape[1]
    return nn.functional.pad(outputs, (0, 0, 0, missing)) if missing else outputs


def from_transformer(
    model: nn.Transformer, source: Tensor, target: Tensor, keep: Tensor, target_keep: Tensor
) -> dict[str, Subject]:
    """The encoder, the decoder, and the way from source to decoder outputs of an nn.Transformer (batch first)."""
    causal = nn.Transformer.generate_square_subsequent_mask

    def decode(x: Tensor, y: Tensor, kept: Tensor, target_kept: Tensor) -> Tensor:
        masks = {"src_key_padding_mask": ~kept, "memory_key_padding_mask": ~kept}
        future = causal(y.shape[1], device=y.device).isinf()
        return model(x, y, tgt_mask=future, tgt_key_padding_mask=~target_kept, **masks)

    def decoder(y: Tensor, kept: Tensor) -> Tensor:
        rows = slice(0, y.shape[0])
        return decode(source[rows], y, keep[rows], kept)

    def cross(x: Tensor, kept: Tensor) -> Tensor:
        return decode(x, target, kept, target_keep)

    return {
        "encoder": from_encoder(model.encoder, source, keep),
        "decoder": Subject(decoder, target, target_keep, True),
        "cross": Subject(cross, source, keep, False, output_keep=target_keep),
    }


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
    name = type(model).__name__
    generates = "CausalLM" in name or "LMHead" in name or name.startswith("GPT")
    cached = _cached(model) if generates and getattr(model.config, "use_cache", False) else None
    subject = Subject(
        _runner(model),
        model.get_input_embeddings()(ids).detach(),
        keep,
        causal or generates,
        padding_sides=SIDES if _takes_positions(model) else None,
        others=_kernels(model),
        cached=cached,
        unpositioned=_runner(_without_positions(model)),
    )
    return {"model": subject}


def _runner(model: Any) -> Run:
    """Embeddings in, logits or last hidden state out; positions counted from the first real token where possible."""
    positioned = _takes_positions(model)

    def run(embeddings: Tensor, keep: Tensor) -> Tensor:
        more = {"position_ids": (keep.long().cumsum(-1) - 1).clamp(min=0)} if positioned else {}
        return _output(model(inputs_embeds=embeddings, attention_mask=keep.long(), **more))

    return run


def _takes_positions(model: Any) -> bool:
    return "position_ids" in inspect.signature(model.forward).parameters


def _output(found: Any) -> Any:
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
    return {"by the other kernel": _runner(other)}


def _cached(model: Any) -> Run:
    """One position at a time; padding at the right is not fed, and its outputs are zero."""

    def run(embeddings: Tensor, keep: Tensor) -> Tensor:
        rows = []
        for row, kept in zip(embeddings, keep, strict=True):
            past, steps = None, []
            for t in range(int(kept.sum())):
                found = model(inputs_embeds=row[None, t : t + 1], past_key_values=past, use_cache=True)
                past = found.past_key_values
                steps.append(_output(found)[0])
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
        return _output(found)

    with torch.no_grad():
        memory = encode(source, keep)

    def decoder(y: Tensor, kept: Tensor) -> Tensor:
        return decode(memory[: y.shape[0]], keep[: y.shape[0]], y, kept)

    def cross(x: Tensor, kept: Tensor) -> Tensor:
        return decode(encode(x, kept), kept, target, target_keep)

    bare = _without_positions(model.get_encoder())
    sides = SIDES if any("relative_attention_bias" in name for name, _ in model.named_parameters()) else None
    return {
        "encoder": Subject(encode, source, keep, False, padding_sides=sides, unpositioned=_runner(bare)),
        "decoder": Subject(decoder, target, target_keep, True, padding_sides=sides),
        "cross": Subject(cross, source, keep, False, output_keep=target_keep),
    }
