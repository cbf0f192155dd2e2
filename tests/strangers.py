"""A model of this project as one that nobody here wrote: what it computes is known, and how it does is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from attenscope.network.abstract_model import AutoregressiveModel, DecodingCache, Side
from attenscope.network.hooks import Stream
from attenscope.network.transformer import Transformer
from attenscope.runnable_model import RunnableModel
from attenscope.translate import Translator


class Stranger(AutoregressiveModel):
    """A Transformer behind the interface that every network has, and no more."""

    def __init__(self, own: Transformer) -> None:
        super().__init__()
        self.own, self.generator = own, own.generator

    @property
    def start_id(self) -> int:
        return self.own.start_id

    @property
    def end_ids(self) -> tuple[int, ...]:
        return self.own.end_ids

    @property
    def pad_id(self) -> int:
        return self.own.pad_id

    def token_embedding(self, side: Side) -> Any:
        return (self.own.source_embedding if side == "source" else self.own.target_embedding).table

    def added_positions(self, side: Side) -> Any:
        return self.own.added_positions(side)

    def room(self, source_tokens: int) -> int:
        return self.own.room(source_tokens)

    def source_mask(self, source: Tensor) -> Tensor:
        return self.own.source_mask(source)

    def new_cache(self) -> DecodingCache:
        return self.own.new_cache()

    def encode(self, source: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.own.encode(source, mask)

    def decode(
        self, target: Tensor, memory: Tensor, memory_mask: Tensor | None, *, cache: DecodingCache | None = None
    ) -> Tensor:
        return self.own.decode(target, memory, memory_mask, cache=cache)

    def streams(self, side: Side) -> Mapping[str, Stream]:
        return self.own.streams(side)

    def predictions(self, source: Tensor, target: Tensor, *, sublayers: bool = False) -> Iterator[tuple[str, Tensor]]:
        return self.own.predictions(source, target)


def as_stranger(translator: Translator) -> RunnableModel:
    return RunnableModel(
        "stranger",
        Stranger(translator.model),
        translator.tokenizer,
        max_length=translator.max_length,
        card=translator.card,
        weights_hash=translator.weights_hash,
    )
