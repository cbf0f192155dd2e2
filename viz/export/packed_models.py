"""Models as they stand in a file: packed by :mod:`viz.engine.package`, compressed, and what a page says of them."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from model.evaluation.eight_bits import read_all
from model.language.say import say

from ..engine.package import ENGINE, KERNEL, Form, PackageError, check_tokenizer, package
from ..figures.palette import Look, head_colour
from .scripts import scoped

if TYPE_CHECKING:
    from model.checkpoint.load import Checkpoint
    from model.live.live_model import LiveModel

HEAD_COLOURS = 8
INT8_BLEU = read_all()
"""By the hash of a released model's weights, what they lose in 8 bits."""
LITTLE_BLEU = 0.3
"""A loss below which 8 bits a weight are what a phone is given."""
BYTES: Mapping[Form, float] = {"half": 2.31, "int8": 1.27}
"""Of a file, for each parameter: compressed and in base64, fitted to the released models."""
BESIDE_WEIGHTS = 0.45e6
"""Bytes of code and tokenizer, fitted to the same."""


@dataclass(frozen=True)
class PackedModel:
    """One checkpoint as it stands in a file."""

    facts: dict[str, Any]
    """What the page reads of it."""
    data: bytes
    """The package, compressed."""


def packable(model: LiveModel) -> Checkpoint | None:
    """Return the checkpoint of a model that can stand in a file; None where it is none, or the engine cannot run it."""
    from model.translate import Translator  # only here: a notebook draws without torch

    if not isinstance(model, Translator):
        return None
    try:
        check_tokenizer(model.tokenizer.model)
    except PackageError:
        return None
    return model.checkpoint


def packed_model(checkpoint: Checkpoint, form: Form = "half") -> PackedModel:
    """Return a checkpoint as it stands in a file, with what the page says of it. PackageError."""
    card = checkpoint.card
    data = package(checkpoint, form)
    known = {"model": checkpoint.name, "hash": checkpoint.hash, "weights": weights_in_words(checkpoint.hash, form)}
    known |= {name: card[name] for name in ("data", "licence", "attribution") if card.get(name)}
    facts = {
        "name": checkpoint.name,
        "title": card.get("title", checkpoint.name),
        "facts": known,
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return PackedModel(facts, gzip.compress(data, 9, mtime=0))


def weights_in_words(weights_hash: str, form: Form) -> str:
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


def int8_loses_little(weights_hash: str) -> bool:
    """Whether 8 bits a weight were measured for these weights and cost less BLEU than :data:`LITTLE_BLEU`."""
    found = INT8_BLEU.get(weights_hash)
    return found is not None and found.half - found.int8 < LITTLE_BLEU


def estimated_size(parameters: int, form: Form) -> float:
    """About how many bytes a file with one model has, before it is made."""
    return BYTES[form] * parameters + BESIDE_WEIGHTS


def palette_of(look: Look) -> dict[str, Any]:
    """The colours of a theme, and of the pictures drawn in it."""
    heads = [head_colour(look.palette, head) for head in range(HEAD_COLOURS)]
    return asdict(look.palette) | {"stops": look.stops, "scale": look.scale, "heads": heads}


def engine_elements() -> str:
    """The HTML elements that a page's connection to its models makes the worker of."""
    worker, kernel = f"{scoped(ENGINE / 'worker.js')}(self);", _text(KERNEL.read_bytes())
    return f"{_element('worker', worker)}\n{_element('kernel', kernel)}"


def model_elements(models: Sequence[PackedModel]) -> str:
    """The HTML elements of the models' packages, ``model-0`` and so on; they stand last in a file."""
    return "\n".join(_element(f"model-{at}", _text(one.data)) for at, one in enumerate(models))


def model_facts(models: Sequence[PackedModel]) -> list[dict[str, Any]]:
    """What a page reads of the models whose packages stand in it."""
    return [one.facts | {"id": f"model-{at}"} for at, one in enumerate(models)]


def _element(name: str, text: str) -> str:
    return f'<script type="text/plain" id="{name}">{text}</script>'


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
