"""Models of transformers behind the project's decoding interface, and a test of their streams."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import LongTensor, Tensor, nn
from transformers import DynamicCache, EncoderDecoderCache, PreTrainedConfig, PreTrainedModel
from transformers.cache_utils import (
    DynamicLayer,
    DynamicSlidingWindowLayer,
    LinearAttentionAndFullAttentionLayer,
    LinearAttentionAndSlidingWindowAttentionLayer,
    LinearAttentionCacheLayerMixin,
)
from transformers.modeling_outputs import MoEModelOutput

from ..capture.attention import AttentionPoints
from ..network.abstract_model import AutoregressiveModel, DecodingCache, Side
from ..network.hooks import Stream, hook_streams, record_streams
from ..network.layers import AddedPositions
from ..trace import Kind

MAX_LOGITS = 2**26
"""Numbers that one pass returns at most where rows can be passed apart: 256 MB."""
CONTINUATION_TOKENS = 40
"""Tokens that are written after a prompt unless more are asked for: a text has no natural end there."""


@dataclass
class FolderCache:
    """Keys and values of one decoding, none of which is ever dropped, and its memory, a row for each hypothesis."""

    past: DynamicCache | EncoderDecoderCache
    memory: Tensor | None = field(default=None)

    def reorder(self, rows: Tensor, cross: Tensor | None = None) -> None:
        """Keep the given rows: here the source has as many as the target, so `cross` says nothing more."""
        self.past.reorder_cache(cast("LongTensor", rows))
        self.memory = None if self.memory is None else self.memory[rows]


def get_text_config(model: PreTrainedModel) -> PreTrainedConfig:
    """Return what the configuration says of text: of a model that reads pictures too, a part of it."""
    return model.config if model.config.is_encoder_decoder else model.config.get_text_config()


def make_cache(model: PreTrainedModel) -> DynamicCache:
    """Return an empty cache of a decoder, with states where its configuration has layers of linear attention or the
    like, that drops no key: a window is the mask's alone.
    """
    made = DynamicCache(config=model.config)
    if not find_recurrent_state_layers(made):
        return DynamicCache()
    for at, layer in enumerate(made.layers):
        if isinstance(layer, LinearAttentionAndSlidingWindowAttentionLayer):
            made.layers[at] = LinearAttentionAndFullAttentionLayer(layer.number_of_states)
        elif isinstance(layer, DynamicSlidingWindowLayer):
            made.layers[at] = DynamicLayer()
    return made


def find_recurrent_state_layers(cache: DynamicCache) -> list[int]:
    """Return the layers, from 0, that keep a state in place of keys and values, or beside them."""
    return [at for at, layer in enumerate(cache.layers) if isinstance(layer, LinearAttentionCacheLayerMixin)]


class FolderNetwork(AutoregressiveModel):
    """What models with two sides and decoders alone have in common."""

    def __init__(self, model: PreTrainedModel, start_id: int, end_ids: Collection[int], positions: int) -> None:
        super().__init__()
        self.model, self.generator = model, nn.Identity()
        self.positions, self._start, self._ends = positions, start_id, tuple(end_ids)
        self.added: Mapping[Side, AddedPositions] = {}
        """What either side has been seen to add for positions."""

    @property
    def start_id(self) -> int:
        return self._start

    @property
    def end_ids(self) -> tuple[int, ...]:
        return self._ends

    def rows_at_once(self, most: int, target_tokens: int) -> int:
        """So many that their logits, of all tokens, are :data:`MAX_LOGITS` numbers."""
        vocabulary = self.model.get_output_embeddings().weight.shape[0]
        return max(1, min(most, MAX_LOGITS // (target_tokens * vocabulary)))

    def token_embedding(self, side: Side) -> nn.Module:
        part = self.part(side).get_input_embeddings()
        assert isinstance(part, nn.Module)
        return part

    def part(self, side: Side) -> Any:
        """The part of the model that reads this side's ids."""
        if not self.model.config.is_encoder_decoder:
            return self.model
        return self.model.get_encoder() if side == "source" else self.model.get_decoder()

    def added_positions(self, side: Side) -> AddedPositions | None:
        return self.added.get(side)

    def streams(self, side: Side) -> Mapping[str, Stream]:
        layers = self.layers("encoder" if side == "source" else "decoder")
        behind = {f"layer {number}": Stream(layer) for number, layer in enumerate(layers, start=1)}
        return {"embedding": Stream(layers[0], before=True), **behind} if layers else {}

    def predictions(self, source: Tensor, target: Tensor, *, sublayers: bool = False) -> Iterator[tuple[str, Tensor]]:
        """After each layer: its stream takes the place of the last layer's, and the model itself does the rest."""
        with record_streams(self.streams("target")) as found:
            own = self(source, target)
        *before, last = found
        yield from self.predict_from_streams(source, target, {name: found[name] for name in before})
        yield last, own

    @abstractmethod
    def new_cache(self) -> FolderCache: ...

    def layers(self, kind: Kind) -> list[nn.Module]:
        """Return the layers of the stack whose self-attention is of this kind, also those without attention."""
        points = [path for path, one in self.named_modules() if isinstance(one, AttentionPoints) and one.kind == kind]
        return [*_find_layer_list(self, points[0])] if points else []

    def _memory(self, memory: Tensor, rows: int, cache: DecodingCache | None) -> Tensor:
        """The memory with a row for each row of the target, kept beside the keys and values."""
        if isinstance(cache, FolderCache) and cache.memory is not None:
            return cache.memory
        memory = memory if len(memory) == rows else memory.repeat_interleave(rows // len(memory), dim=0)
        if isinstance(cache, FolderCache):
            cache.memory = memory
        return memory


class EncoderDecoderNetwork(FolderNetwork):
    """Marian, T5, BART, M2M100 and their like. The memory is the encoder's output (B, S, D)."""

    @property
    def pad_id(self) -> int | None:
        pad = get_text_config(self.model).pad_token_id
        return pad if isinstance(pad, int) and pad not in self.end_ids else None

    def source_mask(self, source: Tensor) -> Tensor:
        """All but the padding behind the end: the same id inside a sentence was typed there."""
        real = torch.ones_like(source, dtype=torch.bool) if self.pad_id is None else source != self.pad_id
        return (real.flip(1).cumsum(1) > 0).flip(1)[:, None, None, :]

    def room(self, source_tokens: int) -> int:
        return self.positions - 1

    def new_cache(self) -> FolderCache:
        return FolderCache(EncoderDecoderCache(DynamicCache(), DynamicCache()))

    def encode(self, source: Tensor, mask: Tensor | None = None) -> Tensor:
        mask = self.source_mask(source) if mask is None else mask
        return self.model.get_encoder()(input_ids=source, attention_mask=mask[:, 0, 0].long())[0]

    def decode(
        self, target: Tensor, memory: Tensor, memory_mask: Tensor | None, *, cache: DecodingCache | None = None
    ) -> Tensor:
        """Logits (B, T, V): the head is part of the model, and its generator passes them on."""
        memory = self._memory(memory, len(target), cache)
        return self.model(
            decoder_input_ids=target,
            encoder_outputs=MoEModelOutput(memory),  # of models without experts too: it has one field more
            attention_mask=None if memory_mask is None else memory_mask[:, 0, 0].expand(len(target), -1).long(),
            past_key_values=cache.past if isinstance(cache, FolderCache) else None,
            use_cache=cache is not None,
        ).logits.float()


class DecoderNetwork(FolderNetwork):
    """GPT-2, Llama and their like. The memory is the prompt itself, as ids (B, S)."""

    is_decoder_alone = True

    @property
    def pad_id(self) -> None:
        return None

    def source_mask(self, source: Tensor) -> Tensor:
        return torch.ones_like(source, dtype=torch.bool)[:, None, None, :]

    def room(self, source_tokens: int) -> int:
        return self.positions - source_tokens

    def usual_limit(self, source_tokens: int) -> int:
        return CONTINUATION_TOKENS

    def new_cache(self) -> FolderCache:
        return FolderCache(make_cache(self.model))

    def encode(self, source: Tensor, mask: Tensor | None = None) -> Tensor:
        return source

    def decode(
        self, target: Tensor, memory: Tensor, memory_mask: Tensor | None, *, cache: DecodingCache | None = None
    ) -> Tensor:
        """Logits (B, T, V) after the prompt, whose last token stands for the start of the target."""
        begun = isinstance(cache, FolderCache) and cache.memory is not None
        prompt = self._memory(memory, len(target), cache)
        logits = self.model(
            input_ids=target if begun else torch.cat([prompt, target[:, 1:]], 1),
            past_key_values=cache.past if isinstance(cache, FolderCache) else None,
            use_cache=cache is not None,
        ).logits
        return logits[:, -target.shape[1] :].float()

    def read(self, ids: Tensor) -> None:
        """Run all layers over ids (1, N), and predict nothing: the logits of a long text would take gigabytes."""
        self.model.base_model(input_ids=ids, use_cache=False)

    def sites(self) -> list[AttentionPoints]:
        """Return the hook points of all layers that have attention, in their order."""
        found = [one for one in self.modules() if isinstance(one, AttentionPoints)]
        return sorted(found, key=lambda one: one.layer)


def _find_layer_list(network: nn.Module, path: str) -> nn.ModuleList:
    """The list of a stack's layers that an attention stands in: the outermost one on its path."""
    parts = path.split(".")
    for place, part in enumerate(parts):
        if part.isdecimal() and isinstance(found := network.get_submodule(".".join(parts[:place])), nn.ModuleList):
            return found
    raise LookupError(path)


# Whether the residual stream is all that layers hand on: tried when a folder is loaded.
#
# A lens reads the stream behind an earlier layer through what follows the last one, and a patch puts a stream of one
# text into the run of another. Both are wrong for a model that hands on anything beside the stream.


STREAM_TOLERANCE = 1e-4
"""The largest difference of two outputs that are taken for the same, in units of their size."""


@torch.inference_mode()
def can_patch_all_streams(network: FolderNetwork, source: Tensor, target: Tensor) -> bool:
    """Whether the run of one text becomes that of another, (1, N) ids both, once the other's stream is put into it.

    The streams behind the embedding and behind the last layer are tried, in encoder and decoder; of a decoder alone
    that behind the last layer.
    """
    sides: list[tuple[dict[str, Stream], Callable[[Tensor], Tensor], Tensor]] = []
    if network.model.config.is_encoder_decoder:
        sides.append((dict(network.streams("source")), network.encode, source))
    sides.append((dict(network.streams("target")), lambda ids: network(source, ids), target))
    for streams, run, ids in sides:
        if not streams:
            return False
        names = [*streams] if len(sides) == 2 else [*streams][-1:]
        if not all(_can_patch_stream(streams[name], run, ids) for name in dict.fromkeys((names[0], names[-1]))):
            return False
    return True


def _can_patch_stream(stream: Stream, run: Callable[[Tensor], Tensor], ids: Tensor) -> bool:
    other = ids.flip(1)
    with record_streams({"": stream}) as found:
        expected = run(other)
    with hook_streams({stream: lambda _: found[""]}):
        given = run(ids)
    return float((given - expected).abs().max()) <= STREAM_TOLERANCE * float(expected.abs().max().clamp_min(1e-9))
