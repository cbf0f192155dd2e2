"""The models of this project: text in, translation and trace out, for the pages, the command line and scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Self

import torch

from .checkpoint.load import Checkpoint, load_checkpoint
from .checkpoint.load import list_checkpoints as available
from .decoding.beam import BeamStop, beam_search_batch
from .decoding.greedy_and_sampling import decode_batch_greedily
from .devices import choose_device
from .language import say, to_say
from .network.abstract_model import pad_ids
from .network.transformer import Transformer
from .runnable_model import TEACHER_FORCING, Ability, InputError, RunnableModel, Translation
from .text.tokenizer import Tokenizer

__all__ = ["TEACHER_FORCING", "InputError", "Translation", "Translator", "available"]

BATCH_TOKENS = 4000  # padded source tokens translated at once


class Translator(RunnableModel):
    """A loaded checkpoint that translates. It can do all that the pages offer but compare kernels of other models."""

    model: Transformer
    tokenizer: Tokenizer
    lacks: Mapping[Ability, str] = MappingProxyType(
        {
            "backends": to_say(
                "Kernels and caches are compared of models of Hugging Face: start the app with --models and a "
                "directory of their folders, or with --model hf:FOLDER, and choose one here."
            )
        }
    )

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.config = checkpoint.model.config
        super().__init__(
            checkpoint.name,
            checkpoint.model,
            checkpoint.tokenizer,
            max_length=self.config.max_length,
            card=checkpoint.card,
            weights_hash=checkpoint.hash,
        )

    @classmethod
    def load(cls, name: str | Path, device: str | torch.device | None = None) -> Self:
        """Load by name below checkpoints/ or by folder; on the GPU when there is one and no device is given."""
        return cls(load_checkpoint(name, device or choose_device()))

    def translate_batch(self, texts: Sequence[str], beam: int = 1, stop: BeamStop = "early") -> list[str]:
        """Translate many sentences, in the order given; `stop` is that of a search with more than one beam.

        Raises InputError naming the line that cannot be translated.
        """
        return [found[0] for found in self.hypotheses_batch(texts, beam, stop)]

    def hypotheses_batch(self, texts: Sequence[str], beam: int, stop: BeamStop = "early") -> list[list[str]]:
        """Return all finished hypotheses of each sentence, best first; otherwise as :meth:`translate_batch`."""
        ids = []
        for number, text in enumerate(texts, start=1):
            try:
                ids.append(self.encode(text).ids)
            except InputError as error:
                raise InputError(say("Line {number}: {problem}", number=number, problem=error)) from error
        found: list[list[str]] = [[] for _ in texts]
        for rows in _group_by_length([len(one) for one in ids]):
            source = pad_ids([ids[row] for row in rows]).to(self.device)
            if beam == 1:
                written = [[one] for one in decode_batch_greedily(self.model, source)]
            else:
                written = beam_search_batch(self.model, source, beam, stop=stop)
            for row, hypotheses in zip(rows, written, strict=True):
                found[row] = [self.tokenizer.decode(target) for target in hypotheses]
        return found


def _group_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Row numbers in batches of like length, at most BATCH_TOKENS padded tokens each."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[row] > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
