"""Models as the mask tests see them: subjects from token ids, torch modules, Hugging Face and our networks."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ..capture.any_model.module_kinds import is_causal_language_model_class
from ..capture.attention import capture_attention
from ..language import say, to_say
from ..network.abstract_model import AutoregressiveModel, Side
from ..network.attention import force_attention_path
from ..network.hooks import hook_outputs
from ..trace import Kind

SequenceSide = Literal["left", "right"]
SEQUENCE_SIDES: tuple[SequenceSide, ...] = ("left", "right")
RunFunction = Callable[[Tensor, Tensor], Tensor]
"""(B, T, D) embeddings and (B, T) bool, True = a real token, to outputs (B, T, ...)."""


@dataclass(frozen=True, eq=False)
class Subject:
    """One sequence of embeddings in, one sequence of outputs out, and all that is meant by them."""

    run: RunFunction
    embeddings: Tensor
    """(B, T, D), at least two samples."""
    keep: Tensor
    """(B, T) bool, True = a real token; padded at the right where there is a cache, the first sample without."""
    causal: bool
    """Whether the model is meant to hide the future."""
    output_keep: Tensor | None = None
    """(B, T') bool where the outputs are of another sequence (cross-attention), else None."""
    layers: int | None = None
    """Attention layers between input and output, which bound what reaches an output; None takes any number."""
    allowed: Tensor | None = None
    """(T, T) bool, True = may attend in one layer, where it is neither full nor causal (a window)."""
    padding_sides: tuple[SequenceSide, ...] | None = None
    """Where padding may change nothing. None for the sides at which ``keep`` has some, else the right: padding at the
    left does change absolute positions, and the rows of a causal mask that it leaves without keys may be NaN."""
    others: Mapping[str, RunFunction] = field(default_factory=dict)
    """Other ways to the same outputs, by name, in English: with capture, another kernel."""
    cached: RunFunction | None = None
    """The same outputs, one position at a time with a key/value cache."""
    unpositioned: RunFunction | None = None
    """The model without its position encoding."""
    ids: Tensor | None = None
    """(B, T) token ids, where the model may read more from them than their embeddings."""
    run_ids: RunFunction | None = None
    """(B, T) ids and (B, T) bool, True = a real token, to the same outputs."""
    module: nn.Module | None = None
    """What runs, for :mod:`.first_module` to name the part of it that lets a forbidden input in."""
    ahead: int = 0
    """How many later tokens an output may depend on all the same: look-ahead, of all layers together."""

    @property
    def real_output_mask(self) -> Tensor:
        """(B, T') bool: outputs that count."""
        return self.keep if self.output_keep is None else self.output_keep

    @property
    def sides(self) -> tuple[SequenceSide, ...]:
        """The ends at which a sentence is padded to see whether the amount of padding matters."""
        return self.padding_sides or find_padded_sides(self.keep) or ("right",)


def find_padded_sides(keep: Tensor) -> tuple[SequenceSide, ...]:
    """Return the ends at which any sample of (B, T) has padding."""
    return tuple(side for side, end in zip(SEQUENCE_SIDES, (0, -1), strict=True) if not bool(keep[:, end].all()))


# Subjects from any module that takes token ids, and from the modules of torch.


def subject_from_ids(
    call: Callable[[Tensor, Tensor], Tensor],
    embedding: nn.Module,
    ids: Tensor,
    keep: Tensor,
    causal: bool,
    pad_id: int = 0,
    **more: Any,
) -> Subject:
    """Return a subject from ``call(ids, keep)`` and the module inside it that embeds the ids.

    ``call`` is given the ids, with padding where the mask is False; for another number of tokens, one id for all. The
    embeddings are put in by a hook that lives only during the call, and only where this very tensor is embedded, so
    that an embedding shared by source and target serves both. Running it raises ValueError when the ids are not
    embedded there: nothing would be changed, and every test pass.
    """
    token = int(ids[keep][0])

    def run_on_embeddings(embeddings: Tensor, kept: Tensor) -> Tensor:
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

    return Subject(run_on_embeddings, embedding(ids).detach(), keep, causal, ids=ids, run_ids=run_ids, **more)


def subject_from_encoder(encoder: nn.Module, embeddings: Tensor, keep: Tensor) -> Subject:
    """Return an nn.TransformerEncoder (batch first) as a subject.

    It has no positions, so the test position-free applies as it is.
    """

    def run_encoder(x: Tensor, kept: Tensor) -> Tensor:
        return _restore_padding_rows(encoder(x, src_key_padding_mask=~kept), x)

    def slow(x: Tensor, kept: Tensor) -> Tensor:
        with torch.enable_grad():
            return run_encoder(x.detach().requires_grad_(), kept).detach()

    ways = {to_say("without the fast path"): slow}
    return Subject(
        run_encoder,
        embeddings,
        keep,
        False,
        padding_sides=SEQUENCE_SIDES,
        others=ways,
        unpositioned=run_encoder,
        module=encoder,
    )


def _restore_padding_rows(outputs: Tensor, x: Tensor) -> Tensor:
    """The fast path drops columns that are padding in every sample; they come back as zeros."""
    missing = x.shape[1] - outputs.shape[1]
    return nn.functional.pad(outputs, (0, 0, 0, missing)) if missing else outputs


def subjects_from_transformer(
    model: nn.Transformer, source: Tensor, target: Tensor, keep: Tensor, target_keep: Tensor
) -> dict[str, Subject]:
    """Return encoder, decoder, and the way from source to decoder outputs of an nn.Transformer (batch first)."""
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
        "encoder": subject_from_encoder(model.encoder, source, keep),
        "decoder": Subject(decoder, target, target_keep, True, module=model),
        "cross": Subject(cross, source, keep, False, output_keep=target_keep, module=model),
    }


# Subjects from Hugging Face models; none of their libraries is imported.


_POSITION_PARAMETERS = re.compile(r"position|wpe|relative_attention_bias")
"""Names of parameters that hold positions."""


def subjects_from_hugging_face(
    model: Any, ids: Tensor, keep: Tensor, target_ids: Tensor | None = None, causal: bool = False
) -> dict[str, Subject]:
    """Return the parts of a Hugging Face model: ``model``, or ``encoder``, ``decoder`` and ``cross``.

    A decoder-only model is meant to be causal if ``causal`` says so, or its class: one that is for causal language
    modelling is, whatever its configuration says. One that takes positions is padded at both sides: they are given to
    it, counted from the first real token.
    """
    if getattr(model.config, "is_encoder_decoder", False):
        return _make_encoder_decoder_subjects(model, ids, keep, ids if target_ids is None else target_ids)
    generates = is_causal_language_model_class(type(model).__name__)
    cached = _make_cached_run(model) if generates and getattr(model.config, "use_cache", False) else None
    subject = Subject(
        _make_run_function(model),
        model.get_input_embeddings()(ids).detach(),
        keep,
        causal or generates,
        padding_sides=SEQUENCE_SIDES if has_position_argument(model) else None,
        others=_make_other_kernel_run(model),
        cached=cached,
        unpositioned=_make_run_function(_copy_without_positions(model)),
        module=model,
    )
    return {"model": subject}


def _make_run_function(model: Any) -> RunFunction:
    """Return a run from embeddings to logits or last hidden state.

    Positions are counted from the first real token where the model takes them.
    """
    positioned = has_position_argument(model)

    def run_model(embeddings: Tensor, keep: Tensor) -> Tensor:
        more = {"position_ids": (keep.long().cumsum(-1) - 1).clamp(min=0)} if positioned else {}
        return read_output_tensor(model(inputs_embeds=embeddings, attention_mask=keep.long(), **more))

    return run_model


def has_position_argument(model: Any) -> bool:
    return "position_ids" in inspect.signature(model.forward).parameters


def read_output_tensor(found: Any) -> Any:
    """Return the logits or the last hidden state; what has neither, as it is."""
    logits = getattr(found, "logits", None)
    return getattr(found, "last_hidden_state", found) if logits is None else logits


def _make_other_kernel_run(model: Any) -> dict[str, RunFunction]:
    """Return, by its name, a run of a copy by the other kernel, explicit or fused; empty where there is none."""
    other = copy.deepcopy(model)
    now = getattr(model.config, "_attn_implementation", None)
    try:
        other.set_attn_implementation("sdpa" if now == "eager" else "eager")
    except (ValueError, AttributeError):
        return {}
    return {to_say("by the other kernel"): _make_run_function(other)}


def _make_cached_run(model: Any) -> RunFunction:
    """Return a run of one position at a time; padding at the right is not fed, and its outputs are zero."""

    def run_position_by_position(embeddings: Tensor, keep: Tensor) -> Tensor:
        rows = []
        for row, kept in zip(embeddings, keep, strict=True):
            past, steps = None, []
            for t in range(int(kept.sum())):
                found = model(inputs_embeds=row[None, t : t + 1], past_key_values=past, use_cache=True)
                past = found.past_key_values
                steps.append(read_output_tensor(found)[0])
            rows.append(nn.functional.pad(torch.cat(steps), (0, 0, 0, len(kept) - len(steps))))
        return torch.stack(rows)

    return run_position_by_position


def _copy_without_positions(model: Any) -> Any:
    """Return a copy in which everything that holds positions is zero."""
    bare = copy.deepcopy(model)
    with torch.no_grad():
        for name, tensor in bare.named_parameters():
            if _POSITION_PARAMETERS.search(name):
                tensor.zero_()
    return bare


def _make_encoder_decoder_subjects(model: Any, ids: Tensor, keep: Tensor, target_ids: Tensor) -> dict[str, Subject]:
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
        return read_output_tensor(found)

    with torch.no_grad():
        memory = encode(source, keep)

    def decoder(y: Tensor, kept: Tensor) -> Tensor:
        return decode(memory[: y.shape[0]], keep[: y.shape[0]], y, kept)

    def cross(x: Tensor, kept: Tensor) -> Tensor:
        return decode(encode(x, kept), kept, target, target_keep)

    bare = _copy_without_positions(model.get_encoder())
    sides = SEQUENCE_SIDES if any("relative_attention_bias" in name for name, _ in model.named_parameters()) else None
    return {
        "encoder": Subject(
            encode, source, keep, False, padding_sides=sides, unpositioned=_make_run_function(bare), module=model
        ),
        "decoder": Subject(decoder, target, target_keep, True, padding_sides=sides, module=model),
        "cross": Subject(cross, source, keep, False, output_keep=target_keep, module=model),
    }


# Subjects from parts of our networks: encoder, decoder, or from source to logits.


BlockOpener = Callable[[], AbstractContextManager[None]]
"""Opens a block inside which the model runs: with another mask, for example."""


@dataclass(frozen=True, eq=False)
class PaddedIds:
    """Sentences of one side, padded at the right, the first of them without."""

    ids: Tensor
    """(B, T)"""
    keep: Tensor
    """(B, T) bool, True = a real token."""


def make_attention_kind_subject(
    network: AutoregressiveModel, kind: Kind, source: PaddedIds, target: PaddedIds, within: BlockOpener = nullcontext
) -> Subject:
    """Return the part of a network in which one kind of attention stands.

    What goes in are token embeddings, before positions; what comes out are the encoder's states, or the logits.
    Positions are counted from the left, so that padding there would change them. Every run happens inside the block
    that ``within`` opens. A decoder alone has "decoder" only: its source is the first token of its text, and its target
    the whole text.
    """
    parts = _NetworkParts(network, source, target, within)
    return {"encoder": parts.encoder, "decoder": parts.decoder, "cross": parts.cross}[kind]()


@dataclass(frozen=True, eq=False)
class _NetworkParts:
    network: AutoregressiveModel
    source: PaddedIds
    target: PaddedIds
    within: BlockOpener

    def encoder(self) -> Subject:
        bare = None if self.network.added_positions("source") is None else self._encode_without_positions
        return self._subject("source", self.source, self._encode, unpositioned=bare)

    def decoder(self) -> Subject:
        memory = self._memory()
        mask = self.network.source_mask(self.source.ids)

        def run_decoder(y: Tensor, keep: Tensor) -> Tensor:
            rows = y.shape[0]
            with self.within(), self._replace_embeddings("target", y):
                states = self.network.decode(self._make_padded_ids(keep), memory[:rows], mask[:rows])
            return self.network.generator(states)

        def run_with_cache(y: Tensor, keep: Tensor) -> Tensor:
            cache, steps, ids = self.network.new_cache(), [], self._make_padded_ids(keep)
            for t in range(y.shape[1]):
                with self.within(), self._replace_embeddings("target", y[:, t : t + 1]):
                    steps.append(self.network.decode(ids[:, t : t + 1], memory, mask, cache=cache))
            return self.network.generator(torch.cat(steps, 1))

        return self._subject("target", self.target, run_decoder, causal=True, cached=run_with_cache)

    def cross(self) -> Subject:
        def run_cross(x: Tensor, keep: Tensor) -> Tensor:
            memory = self._encode(x, keep)
            with self.within():
                return self.network.generator(self.network.decode(self.target.ids, memory, keep[:, None, None, :]))

        return self._subject("source", self.source, run_cross, output_keep=self.target.keep)

    def _encode(self, x: Tensor, keep: Tensor) -> Tensor:
        with self.within(), self._replace_embeddings("source", x):
            return self.network.encode(self._make_padded_ids(keep), keep[:, None, None, :])

    def _encode_without_positions(self, x: Tensor, keep: Tensor) -> Tensor:
        positions = self.network.added_positions("source")
        assert positions is not None
        with hook_outputs({positions.module: torch.zeros_like}):
            return self._encode(x, keep)

    def _memory(self) -> Tensor:
        with torch.no_grad(), self.within():
            return self.network.encode(self.source.ids)

    def _make_padded_ids(self, keep: Tensor) -> Tensor:
        """Return ids (B, T) that are padding where ``keep`` is False; elsewhere it does not matter which they are."""
        pad = self.network.pad_id or 0
        return torch.where(keep, int(pad == 0), pad)

    def _replace_embeddings(self, side: Side, x: Tensor) -> AbstractContextManager[None]:
        return hook_outputs({self.network.token_embedding(side): lambda _: x})

    def _embed_tokens(self, side: Side, ids: Tensor) -> Tensor:
        """Return the embeddings (B, T, D) of the tokens (B, T) of one side."""
        seen: list[Tensor] = []
        with torch.no_grad(), hook_outputs({self.network.token_embedding(side): seen.append}):
            memory = self.network.encode(ids if side == "source" else self.source.ids)
            if side == "target":
                self.network.decode(ids, memory, self.network.source_mask(self.source.ids))
        return seen[-1].detach()

    def _make_capture_and_fused_runs(self, run: RunFunction) -> dict[str, RunFunction]:
        """Return runs under capture, and by the fused kernel, which runs unobserved on a GPU."""

        @contextmanager
        def capture_block() -> Iterator[None]:
            with capture_attention(self.network):
                yield

        def run_in(block: BlockOpener, x: Tensor, keep: Tensor) -> Tensor:
            with block():
                return run(x, keep)

        fused: BlockOpener = lambda: force_attention_path("fused")  # noqa: E731
        return {
            to_say("with capture"): partial(run_in, capture_block),
            to_say("by the fused kernel"): partial(run_in, fused),
        }

    def _subject(
        self,
        side: Side,
        of: PaddedIds,
        run: RunFunction,
        *,
        causal: bool = False,
        output_keep: Tensor | None = None,
        cached: RunFunction | None = None,
        unpositioned: RunFunction | None = None,
    ) -> Subject:
        return Subject(
            run,
            self._embed_tokens(side, of.ids),
            of.keep,
            causal,
            output_keep,
            others=self._make_capture_and_fused_runs(run),
            cached=cached,
            unpositioned=unpositioned,
        )
