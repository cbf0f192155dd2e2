"""A checkpoint packed for the engine: one header and one body, read by weights.js and tokenizer.js."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sentencepiece import sentencepiece_model_pb2

from model.evaluation.eight_bits import quantised

from ..components.packing import pack

if TYPE_CHECKING:
    from model.checkpoint.load import Checkpoint

ENGINE = Path(__file__).parent
KERNEL = ENGINE / "kernel.wasm"
Form = Literal["half", "int8"]
BPE = 2
"""The model type of a SentencePiece file whose pieces are merged pair by pair."""
KNOWN_PIECES = {1, 2, 3, 6}
"""Normal, unknown, control and byte pieces, by their number in sentencepiece_model.proto."""


class PackageError(ValueError):
    """A checkpoint that the engine cannot run; the message says why."""


def package(checkpoint: Checkpoint, form: Form = "half", facts: Mapping[str, Any] | None = None) -> bytes:
    """Return a checkpoint's configuration, tokenizer and weights as bytes for the engine. PackageError.

    ``half``: every tensor in half precision. ``int8``: matrices as whole numbers from -127 to 127, with a scale for
    each row; vectors in half precision. `facts` go into the header beside those.
    """
    from model.checkpoint.load import unique_weights

    check_tokenizer(checkpoint.tokenizer.model)
    body = bytearray(checkpoint.tokenizer.model)
    tensors = []
    for name, tensor in unique_weights(checkpoint.model).items():
        values = tensor.cpu().numpy()
        own: Form = "int8" if form == "int8" and values.ndim == 2 else "half"
        data = int8(values) if own == "int8" else half(values)
        tensors.append({"name": name, "shape": values.shape, "form": own, "at": len(body), "length": len(data)})
        body += data
    header = {
        "config": dataclasses.asdict(checkpoint.model.config),
        "tokenizer": (0, len(checkpoint.tokenizer.model)),
        "tensors": tensors,
    }
    return pack(header | dict(facts or {}), bytes(body))


def half(values: np.ndarray) -> bytes:
    """Return the numbers in half precision: all their low bytes, then all their high ones, which compresses better."""
    return values.astype("<f2", order="C").view(np.uint8).reshape(-1, 2).T.tobytes()


def int8(values: np.ndarray) -> bytes:
    """Return a matrix (R, C) as R float32 scales, then its numbers divided by their row's scale, rounded to bytes."""
    scales, numbers = quantised(values)
    return scales.astype("<f4").tobytes() + numbers.tobytes()


@lru_cache(maxsize=16)  # Pages ask for it at every run, and a vocabulary takes milliseconds to read.
def check_tokenizer(model: bytes) -> None:
    """Raise PackageError for a SentencePiece model that the engine's tokenizer does not read as Python does."""
    found = sentencepiece_model_pb2.ModelProto.FromString(model)  # type: ignore[attr-defined]
    kinds = {piece.type for piece in found.pieces}
    spec = found.normalizer_spec
    if found.trainer_spec.model_type != BPE or not kinds <= KNOWN_PIECES:
        raise PackageError("its tokenizer is no byte-pair vocabulary, or has symbols of its own")
    if found.trainer_spec.treat_whitespace_as_suffix or not spec.escape_whitespaces:
        raise PackageError("its tokenizer writes spaces in another way")
