"""Models as a :class:`~.subject.Subject`: any module that takes token ids, and the modules of torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..language.say import say, to_say
from .subject import SIDES, Subject


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

    The call is given the ids, padding where ``kept`` says so, and for another number of tokens one id for all. The
    embeddings are put in by a hook that lives only during the call, and only where this very tensor is embedded, so
    that an embedding shared by source and target serves both. Running it raises ValueError when the ids are not
    embedded there: nothing would be changed, and every test pass.
    """
    token = int(ids[keep][0])

    def run(embeddings: Tensor, kept: Tensor) -> Tensor:
        same_size = kept.shape[1] == ids.shape[1] and kept.shape[0] <= ids.shape[0]
        tokens = (
            torch.where(keep, ids, token)[: kept.shape[0]]
            if same_size
            else torch.full_like(kept, token, dtype=ids.dtype)
        )
        places, embedded = torch.where(kept, tokens, pad_id), False

        def replace(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor | None:
            nonlocal embedded
            same = bool(args) and args[0].shape == places.shape and args[0].data_ptr() == places.data_ptr()
            embedded = embedded or same
            return embeddings if same else None

        handle = embedding.register_forward_hook(replace, prepend=True)  # others see what takes part
        try:
            outputs = call(places, kept)
        finally:
            handle.remove()
        if not embedded:
            raise ValueError(
                say("The model does not call the module given as embedding with the token ids as they are.")
            )
        return outputs

    def run_ids(tokens: Tensor, kept: Tensor) -> Tensor:
        return call(torch.where(kept, tokens, pad_id), kept)

    return Subject(run, embedding(ids).detach(), keep, causal, ids=ids, run_ids=run_ids, **more)


def from_encoder(encoder: nn.Module, embeddings: Tensor, keep: Tensor) -> Subject:
    """An nn.TransformerEncoder (batch first): it has no positions, so the test position-free applies as it is."""

    def run(x: Tensor, kept: Tensor) -> Tensor:
        return _sized(encoder(x, src_key_padding_mask=~kept), x)

    def slow(x: Tensor, kept: Tensor) -> Tensor:
        with torch.enable_grad():
            return run(x.detach().requires_grad_(), kept).detach()

    ways = {to_say("without the fast path"): slow}
    return Subject(run, embeddings, keep, False, padding_sides=SIDES, others=ways, unpositioned=run, module=encoder)


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
        "decoder": Subject(decoder, target, target_keep, True, module=model),
        "cross": Subject(cross, source, keep, False, output_keep=target_keep, module=model),
    }
