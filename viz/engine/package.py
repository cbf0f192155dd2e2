"""Pack a checkpoint for the engine: one header and one body, which weights.js and tokenizer.js read."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sentencepiece import sentencepiece_model_pb2

from attenscope.evaluation.eight_bits import quantise_rows
from attenscope.viz.web.bundle import pack_arrays

if TYPE_CHECKING:
    from attenscope.checkpoint.load import Checkpoint

ENGINE_FOLDER = Path(__file__).parent
KERNEL_FILE = ENGINE_FOLDER / "kernel.wasm"
WeightForm = Literal["half", "int8"]
BPE_MODEL_TYPE = 2
"""The model type of a SentencePiece file whose pieces are merged pair by pair."""
KNOWN_PIECE_TYPES = {1, 2, 3, 6}
"""Normal, unknown, control and byte pieces, by their number in sentencepiece_model.proto."""


class PackageError(ValueError):
    """A checkpoint that the engine cannot run; the message says why."""


def pack_checkpoint(checkpoint: Checkpoint, form: WeightForm = "half", facts: Mapping[str, Any] | None = None) -> bytes:
    """Return a checkpoint's configuration, tokenizer and weights as bytes for the engine. Raises PackageError.

    ``half``: every tensor in half precision. ``int8``: matrices as whole numbers from -127 to 127, with a scale for
    each row; vectors in half precision. `facts` go into the header beside configuration, tokenizer and tensors.
    """
    from attenscope.checkpoint.load import unique_weights

    check_tokenizer(checkpoint.tokenizer.model)
    body = bytearray(checkpoint.tokenizer.model)
    tensors = []
    for name, tensor in unique_weights(checkpoint.model).items():
        values = tensor.cpu().numpy()
        own: WeightForm = "int8" if form == "int8" and values.ndim == 2 else "half"
        data = encode_int8(values) if own == "int8" else encode_half(values)
        tensors.append({"name": name, "shape": values.shape, "form": own, "at": len(body), "length": len(data)})
        body += data
    header = {
        "config": dataclasses.asdict(checkpoint.model.config),
        "tokenizer": (0, len(checkpoint.tokenizer.model)),
        "tensors": tensors,
    }
    return pack_arrays(header | dict(facts or {}), bytes(body))


def encode_half(values: np.ndarray) -> bytes:
    """Return the numbers in half precision: all their low bytes, then all their high ones, which compresses better."""
    return values.astype("<f2", order="C").view(np.uint8).reshape(-1, 2).T.tobytes()


def encode_int8(values: np.ndarray) -> bytes:
    """Return a matrix (R, C) as R float32 scales, then its numbers divided by their row's scale, rounded to bytes."""
    scales, numbers = quantise_rows(values)
    return scales.astype("<f4").tobytes() + numbers.tobytes()


@lru_cache(maxsize=16)  # Pages ask for it at every run, and a vocabulary takes milliseconds to read.
def check_tokenizer(model: bytes) -> None:
    """Raise PackageError for a SentencePiece model that the engine's tokenizer does not read as Python does."""
    found = sentencepiece_model_pb2.ModelProto.FromString(model)  # type: ignore[attr-defined]
    kinds = {piece.type for piece in found.pieces}
    spec = found.normalizer_spec
    if found.trainer_spec.model_type != BPE_MODEL_TYPE or not kinds <= KNOWN_PIECE_TYPES:
        raise PackageError("its tokenizer is no byte-pair vocabulary, or has symbols of its own")
    if found.trainer_spec.treat_whitespace_as_suffix or not spec.escape_whitespaces:
        raise PackageError("its tokenizer writes spaces in another way")
