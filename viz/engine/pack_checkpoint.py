"""Pack a checkpoint for the engine, which weights.js and tokenizer.js read, and say what a page needs to run it."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
from sentencepiece import sentencepiece_model_pb2

from attenscope.checkpoint.load import Checkpoint, unique_weights
from attenscope.evaluation.quality import quantise_rows, read_all_int8_quality
from attenscope.language import say
from attenscope.network.config import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from attenscope.runnable_model import LocalError, RunnableModel
from attenscope.viz.figures.figure_style import Look, head_colour
from attenscope.viz.web.component_scripts import build_messages_statement, pack_arrays, read_standalone_script

if TYPE_CHECKING:
    from torch import Tensor

ENGINE_FOLDER = Path(__file__).parent
KERNEL_FILE = ENGINE_FOLDER / "kernel.wasm"
WeightForm = Literal["half", "int8"]
UNIGRAM_MODEL_TYPE, BPE_MODEL_TYPE = 1, 2
"""Model types of a SentencePiece file: the most probable pieces, and pieces that are merged pair by pair."""
KNOWN_PIECE_TYPES = {1, 2, 3, 6}
"""Normal, unknown, control and byte pieces, by their number in sentencepiece_model.proto."""


class PackageError(ValueError):
    """A checkpoint that the engine cannot run; the message says why."""


@dataclass(frozen=True, eq=False)
class EngineModel:
    """A model as the engine runs it, whatever it was made from."""

    name: str
    hash: str
    """Says which weights they are."""
    card: Mapping[str, Any]
    config: Mapping[str, Any]
    """The fields of a TransformerConfig that the engine reads, with ``activation``, ``ids`` of special tokens and the
    sequences that are ``forbidden``."""
    weights: Mapping[str, Tensor]
    """By the names of :class:`attenscope.network.transformer.Transformer`."""
    sentence_pieces: bytes
    """The SentencePiece model that cuts a source."""
    vocabulary: Mapping[str, Any] | None = None
    """What marian_tokenizer.js needs beside it; None where the ids are those of the SentencePiece model."""

    @property
    def parameter_count(self) -> int:
        return sum(one.numel() for one in self.weights.values())


def describe_checkpoint(checkpoint: Checkpoint) -> EngineModel:
    """Return a checkpoint as the engine runs it. Raises PackageError."""
    check_tokenizer(checkpoint.tokenizer.model)
    ids = {"pad": PAD_ID, "unknown": UNK_ID, "start": BOS_ID, "end": [EOS_ID]}
    own = {"activation": "relu", "ids": ids, "forbidden": []}
    return EngineModel(
        checkpoint.name,
        checkpoint.hash,
        checkpoint.card,
        dataclasses.asdict(checkpoint.model.config) | own,
        unique_weights(checkpoint.model),
        checkpoint.tokenizer.model,
    )


def pack_checkpoint(
    checkpoint: Checkpoint | EngineModel, form: WeightForm = "half", facts: Mapping[str, Any] | None = None
) -> bytes:
    """Return a model's configuration, tokenizer and weights as bytes for the engine. Raises PackageError.

    ``half``: every tensor in half precision. ``int8``: matrices as whole numbers from -127 to 127, with a scale for
    each row; vectors in half precision. `facts` go into the header beside configuration, tokenizer and tensors.
    """
    model = checkpoint if isinstance(checkpoint, EngineModel) else describe_checkpoint(checkpoint)
    body = bytearray(model.sentence_pieces)
    tensors = []
    for name, tensor in model.weights.items():
        values = tensor.cpu().numpy()
        own: WeightForm = "int8" if form == "int8" and values.ndim == 2 else "half"
        data = encode_int8(values) if own == "int8" else encode_half(values)
        tensors.append({"name": name, "shape": values.shape, "form": own, "at": len(body), "length": len(data)})
        body += data
    header: dict[str, Any] = {
        "config": dict(model.config),
        "tokenizer": (0, len(model.sentence_pieces)),
        "tensors": tensors,
    }
    if model.vocabulary is not None:
        header["vocabulary"] = dict(model.vocabulary)
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
    if check_sentence_pieces(model) != BPE_MODEL_TYPE:
        raise PackageError(say("its tokenizer is no byte-pair vocabulary"))


def check_sentence_pieces(model: bytes) -> int:
    """Return the model type of a SentencePiece file. Raises PackageError for what no tokenizer of the engine knows."""
    found = sentencepiece_model_pb2.ModelProto.FromString(model)  # type: ignore[attr-defined]
    if not {piece.type for piece in found.pieces} <= KNOWN_PIECE_TYPES:
        raise PackageError(say("its tokenizer has symbols of its own"))
    if found.trainer_spec.treat_whitespace_as_suffix or not found.normalizer_spec.escape_whitespaces:
        raise PackageError(say("its tokenizer writes spaces in another way"))
    return int(found.trainer_spec.model_type)


# The package in a page: compressed, with what the page says of its model.


HEAD_COLOUR_COUNT = 8
INT8_BLEU = read_all_int8_quality()
"""Hash of a released model's weights -> its BLEU in half precision and in 8 bits."""
SMALL_BLEU_LOSS = 0.3
"""Loss of BLEU below which a phone gets 8 bits a weight."""
BYTES_PER_PARAMETER: Mapping[WeightForm, float] = {"half": 2.31, "int8": 1.27}
"""Bytes of a file for each parameter, compressed and in base64; fitted to the released models."""
FIXED_FILE_BYTES = 0.45e6
"""Bytes of code and tokenizer; fitted to the released models."""


@dataclass(frozen=True)
class PackedModel:
    """One checkpoint as it stands in a file."""

    facts: dict[str, Any]
    """What the page reads of it."""
    data: bytes
    """The package, compressed."""


_described_folders: WeakKeyDictionary[RunnableModel, EngineModel] = WeakKeyDictionary()
"""Pages ask at every run, and the pieces of a vocabulary take a while to list."""


def find_packable_model(model: RunnableModel) -> EngineModel | None:
    """Return a model as it can stand in a file; None where the engine cannot run it."""
    try:
        return describe_model(model)
    except PackageError:
        return None


def describe_model(model: RunnableModel) -> EngineModel:
    """Return a checkpoint or a folder's model as the engine runs it. Raises PackageError with the reason."""
    from attenscope.translate import Translator  # only here: a notebook draws without torch

    if isinstance(model, Translator):
        return describe_checkpoint(model.checkpoint)
    if model.folder is None:
        raise PackageError(say("it is neither a checkpoint nor a folder"))
    if model not in _described_folders:
        _described_folders[model] = _describe_marian(model)
    return _described_folders[model]


def _describe_marian(model: RunnableModel) -> EngineModel:
    from attenscope.hugging_face.marian import take_marian_apart  # only here: it needs transformers

    try:
        parts = take_marian_apart(model)
    except LocalError as error:
        raise PackageError(str(error)) from error
    kind = check_sentence_pieces(parts.sentence_pieces)
    if kind not in (UNIGRAM_MODEL_TYPE, BPE_MODEL_TYPE):
        raise PackageError(say("its tokenizer cuts words in a way that the engine does not know"))
    vocabulary = {**parts.vocabulary, "merges": kind == BPE_MODEL_TYPE}
    return EngineModel(
        model.name, model.weights_hash, model.card, parts.config, parts.weights, parts.sentence_pieces, vocabulary
    )


def pack_model(checkpoint: Checkpoint | EngineModel, form: WeightForm = "half") -> PackedModel:
    """Return a model as it stands in a file, with what the page says of it. PackageError."""
    card = checkpoint.card
    data = pack_checkpoint(checkpoint, form)
    known = {"model": checkpoint.name, "hash": checkpoint.hash, "weights": describe_weights(checkpoint.hash, form)}
    known |= {name: card[name] for name in ("data", "licence", "attribution") if card.get(name)}
    facts = {
        "name": checkpoint.name,
        "title": card.get("title", checkpoint.name),
        "facts": known,
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return PackedModel(facts, gzip.compress(data, 9, mtime=0))


def describe_weights(weights_hash: str, form: WeightForm) -> str:
    """How a file holds the weights, and what is lost by it where that was measured."""
    if form == "half":
        return say("half precision")
    found = INT8_BLEU.get(weights_hash)
    if not found:
        return say("8 bits a weight; what is lost by it was not measured")
    return say(
        "8 bits a weight; BLEU {int8:.2f}, in half precision {half:.2f}, on {sentences:,} sentences of {source}",
        **asdict(found),
    )


def is_int8_loss_small(weights_hash: str) -> bool:
    """Whether 8 bits a weight were measured for these weights and cost less BLEU than :data:`SMALL_BLEU_LOSS`."""
    found = INT8_BLEU.get(weights_hash)
    return found is not None and found.half - found.int8 < SMALL_BLEU_LOSS


def estimate_file_size(parameters: int, form: WeightForm) -> float:
    """About how many bytes a file with one model has, before it is made."""
    return BYTES_PER_PARAMETER[form] * parameters + FIXED_FILE_BYTES


def encode_palette(look: Look) -> dict[str, Any]:
    """The colours of a theme, and of the pictures drawn in it."""
    heads = [head_colour(look.palette, head) for head in range(HEAD_COLOUR_COUNT)]
    return asdict(look.palette) | {"stops": look.stops, "scale": look.scale, "heads": heads}


def build_engine_elements() -> str:
    """Return the HTML elements from which a page makes the worker that runs its models."""
    worker = f"{build_messages_statement(['worker'])}{read_standalone_script('worker')}(self);"
    kernel = _encode_base64(KERNEL_FILE.read_bytes())
    return f"{_build_text_element('worker', worker)}\n{_build_text_element('kernel', kernel)}"


def build_model_elements(models: Sequence[PackedModel]) -> str:
    """The HTML elements of the models' packages, ``model-0`` and so on; they stand last in a file."""
    return "\n".join(_build_text_element(f"model-{at}", _encode_base64(one.data)) for at, one in enumerate(models))


def collect_model_facts(models: Sequence[PackedModel]) -> list[dict[str, Any]]:
    """What a page reads of the models whose packages stand in it."""
    return [one.facts | {"id": f"model-{at}"} for at, one in enumerate(models)]


def _build_text_element(name: str, text: str) -> str:
    return f'<script type="text/plain" id="{name}">{text}</script>'


def _encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
