"""A translator of synthetic attention, so that pages and figures are tested without a trained model."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from attenscope.decoding.greedy_and_sampling import Candidate, DecodingStep, ObserverCheck
from attenscope.runnable_model import InputError, Translation
from attenscope.trace import AttentionMap, AttentionTrace, Kind

LAYERS, HEADS = 3, 4


def attention(
    kind: Kind, queries: tuple[str, ...], keys: tuple[str, ...], predicted: tuple[str, ...] = (), seed: int = 0
) -> AttentionMap:
    """A map whose heads follow a diagonal of random width; causal if it is the decoder's."""
    random = np.random.default_rng(seed)
    rows, columns = len(queries), len(keys)
    mask = np.tri(rows, columns, dtype=bool) if kind == "decoder" else np.ones((rows, columns), dtype=bool)
    distance = np.abs(np.arange(columns)[None, :] - np.arange(rows)[:, None] * columns / rows)
    scores = random.normal(size=(LAYERS, HEADS, rows, columns)) - distance * random.uniform(
        0.2, 3, (LAYERS, HEADS, 1, 1)
    )
    weights = np.where(mask, np.exp(scores), 0)
    weights = (weights / weights.sum(-1, keepdims=True)).astype(np.float32)
    return AttentionMap(kind, weights, queries, keys, mask, predicted)


def foreign_trace(**more: Any) -> AttentionTrace:
    """A trace of a model of somebody else, whose tokens bear the signs of two tokenizers; `more` are fields of it."""
    source, fed = ("▁a", "b", "Ġc", "</s>"), ("<s>", "x", "y")
    maps: dict[str, Any] = {"encoder": attention("encoder", source, source), "decoder": attention("decoder", fed, fed)}
    return AttentionTrace(**maps, cross=attention("cross", fed, source), source="a bc", model="Theirs", **more)


def fill_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no file have room for what is written into it."""

    def write_bytes(path: Path, _data: bytes) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", write_bytes)


class FakeTranslator:
    """Speaks the interface of attenscope.runnable_model.RunnableModel; "translates" by capitalising every word."""

    name = "fake-en-de"
    device = SimpleNamespace(type="cpu")
    card: ClassVar[dict[str, Any]] = {"source_language": "en", "target_language": "de"}
    notes, writes, folder = (), "translation", None

    def can(self, ability: str) -> bool:
        return True

    def encode_long_text(self, text: str) -> None:
        return None

    def translate(self, text: str) -> Translation:
        words = text.split()
        if not words:
            raise InputError("There is nothing to translate yet: please type a sentence.")
        if len(words) > 300:
            raise InputError(
                "This text has 2,000 tokens. This model reads 512 tokens at most; please shorten the text."
            )
        source = (*(f" {word}" for word in words), "</s>")
        predicted = (*(f" {word.upper()}" for word in words), "</s>")
        fed = ("<s>", *predicted[:-1])
        trace = AttentionTrace(
            encoder=attention("encoder", source, source, seed=1),
            decoder=attention("decoder", fed, fed, predicted, seed=2),
            cross=attention("cross", fed, source, predicted, seed=3),
            source=text,
        )
        unknown = tuple(word for word in words if not word.isascii())
        steps = tuple(_step(position, token, len(words)) for position, token in enumerate(predicted))
        ids = tuple(range(len(source)))
        return Translation(text, text.upper(), steps, ids, source, unknown, 0.038, trace)

    def check_observer(self, translation: Translation) -> ObserverCheck:
        return ObserverCheck("explicit", 0.0, 0.0, 10)


def _step(position: int, token: str, last: int) -> DecodingStep:
    probability = 0.95 if position % 3 else 0.4
    found = Candidate(position, math.log(probability), token), Candidate(99, math.log(0.05), " other")
    return DecodingStep(position, position, found[0].log_prob, found, token, "eos" if position == last else None)
