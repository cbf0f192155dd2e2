"""What the page Why computes once and all visitors share. The results are frozen; all raise AttributionError."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import streamlit as st

from model.attribution import logit_parts as logits
from model.attribution import score_parts as scores
from model.attribution import source_shares as sources
from model.attribution.foreign import foreign_attributions
from model.attribution.foreign.live import attributions as attributions_of
from model.attribution.foreign.live import see
from model.attribution.logit_parts import LogitParts
from model.attribution.methods import Attribution, check_value, record_target, target_value
from model.attribution.recording import Recording
from model.attribution.score_parts import ScoreParts
from model.attribution.source_shares import SourceShares
from model.attribution.target import AttributionError, Target, target_pieces
from model.checkpoint.files import CheckpointError, folder_of
from model.evaluation import deletion_curves as deletions
from model.evaluation.attribution_scores import AttributionScores, read_attribution_scores
from model.evaluation.deletion_curves import DeletionCurves
from model.experiments import activation_patching as patching
from model.experiments import decoder_lens as encoder_side
from model.experiments.activation_patching import Contrast, PatchMap
from model.experiments.decoder_lens import DecoderLens
from model.experiments.head_effects import word_effects
from model.experiments.logit_lens import Lens, logit_lens
from model.interventions.apply import intervening
from model.interventions.changes import parse
from model.language.current import current_language
from model.language.say import to_say
from model.live.live_model import LiveModel
from model.live.translation import Translation
from model.network.autoregressive import decoder_inputs
from model.trace import Head
from model.translate import Translator

from ..computed import computed
from ..ui import cache as shared
from ..ui.addresses.why import Cell, Patched


class ReadingKey(NamedTuple):
    """A sentence with its translation, in the order in which :func:`viz.ui.cache.reading` takes it."""

    model: str
    sentence: str
    given: str = ""
    """The translation that was typed; "" for the model's own."""
    changes: str = ""


class WordKey(NamedTuple):
    """A word of a translation, and what it is compared with."""

    reading: ReadingKey
    position: int
    """Of its first piece, from 0."""
    length: int
    """Its pieces."""
    against: int | None = None
    """The id of the piece Y."""


def target(key: WordKey) -> Target:
    """The word that is explained."""
    model, result = shared.live(key.reading.model), shared.reading(*key.reading)
    return target_pieces(model, result, key.position, key.length, key.against)


@st.cache_data(max_entries=256, show_spinner=False)
def value(key: WordKey) -> float:
    """log p(X), or logit X - logit Y."""
    of = target(key)
    with _run(key.reading) as (model, _):
        found = target_value(model.model, of)
    check_value(of, found)
    return found


def attributions(key: WordKey) -> Mapping[str, Attribution]:
    """The scores of every method that can be computed, by its name."""
    return _attributions(key, current_language())[0]


def refused(key: WordKey) -> str:
    """Why other methods cannot be computed; "" where all can."""
    return _attributions(key, current_language())[1]


@computed(128, is_long=True)
def deletion_curves(key: WordKey) -> DeletionCurves:
    """What is left of the value when pieces are taken away, by the order of every method."""
    of, found = target(key), attributions(key)
    with _run(key.reading) as (model, _):
        return deletions.deletion_curves(model, of, found)


@computed(128)
def logit_parts(key: WordKey) -> LogitParts:
    """The logit, or the difference of two, split over heads and layers."""
    own, of = _ours(key.reading.model), target(key)
    value(key)
    with _run(key.reading):
        return logits.logit_parts(own.model, of, record_target(own.model, of))


@computed(512)
def effects_of(key: WordKey, heads: tuple[Head, ...]) -> np.ndarray:
    """How the value changes without each of some heads, in one forward pass: (heads, 1)."""
    of = target(key)
    with _run(key.reading) as (model, _):
        return word_effects(model.model, of, heads)


@computed(256)
def score_parts(reading: ReadingKey, cell: Cell) -> ScoreParts:
    """The score of one cell split over the parts of its query and its key."""
    own, recording = _ours(reading.model), _recording(reading)
    with _run(reading) as (_, result):
        return scores.score_parts(own, result, *cell, recording=recording)


@computed(64)
def source_shares(reading: ReadingKey) -> SourceShares:
    """How much of each piece comes from the source."""
    with _run(reading) as (model, result):
        seen = see(model.model, result.source_ids, decoder_inputs(result.target_ids, model.model.start_id))
        return sources.source_shares(model, result, seen)


@computed(64)
def contrast(first: ReadingKey, second: ReadingKey) -> Contrast:
    """Two sentences, and the word at which their translations part."""
    other = shared.reading(*second)
    with _run(first) as (model, result):
        return patching.contrast(model, result, other)


@computed(64, is_long=True)
def patch_map(first: ReadingKey, second: ReadingKey, patched: Patched) -> PatchMap:
    """What comes back of the difference for a patch at each place."""
    pair = contrast(first, second)
    with _run(first) as (model, _):
        _check_streams(model)
        return _patched(model, pair, patched)


@computed(64, is_long=True)
def control_map(first: ReadingKey, second: ReadingKey, control: ReadingKey, patched: Patched) -> PatchMap:
    """The same between the first sentence and one with the same answer, as a share of the pair's difference."""
    pair, answer = contrast(first, second), shared.reading(*control)
    with _run(first) as (model, _):
        same = patching.control(model, pair, answer)
        return _patched(model, same, patched, pair.difference)


@computed(64, is_long=True)
def decoder_lens(reading: ReadingKey) -> DecoderLens:
    """The translation read from each layer of the encoder."""
    with _run(reading) as (model, result):
        _check_streams(model)
        return encoder_side.decoder_lens(model, result)


@computed(64)
def sublayer_lens(reading: ReadingKey, token_id: int | None = None) -> Lens:
    """What the decoder would write after each sublayer; ranks of the token written, or of `token_id`."""
    with _run(reading) as (model, result):
        return logit_lens(model, result, sublayers=True, token_id=token_id)


@computed(64)
def layer_lens(reading: ReadingKey, token_id: int | None = None) -> Lens:
    """The same after each layer alone."""
    with _run(reading) as (model, result):
        return logit_lens(model, result, token_id=token_id)


def user_attributions(name: str, sentence: str, position: int) -> Mapping[str, Attribution]:
    """What can be computed of a model of the command line, by method, for the piece at a position, from 0."""
    return _user_attributions(name, sentence, position, current_language())[0]


def not_computed(name: str, sentence: str, position: int) -> str:
    """What cannot be computed there, and why."""
    return _user_attributions(name, sentence, position, current_language())[1]


@computed(64, to_say("Taking pieces away …"), is_long=True)
def user_deletion_curves(name: str, sentence: str, position: int) -> DeletionCurves:
    """What is left of that piece as source pieces are taken away, by the order of each method."""
    own = shared.reader(name)
    assert own is not None
    return deletions.foreign_deletion_curves(own, sentence, position + 1, user_attributions(name, sentence, position))


@st.cache_data(ttl=10, show_spinner=False)
def measured(name: str) -> AttributionScores | None:
    """What was measured of a checkpoint as it is; None where nothing was. Raises AttributionScoresError."""
    try:
        found = read_attribution_scores(folder_of(name))
    except CheckpointError:  # a model of the command line has no folder
        return None
    return found if found and found.model_hash == shared.translator(name).checkpoint.hash else None


@computed(64, is_long=True)
def _user_attributions(name: str, sentence: str, position: int, language: str) -> tuple[Mapping[str, Attribution], str]:
    """What is missing is said in the language of whoever reads it."""
    own = shared.reader(name)
    assert own is not None
    found, missing = foreign_attributions(own, sentence, position + 1, "all")
    return {one.method: one for one in found}, missing


@computed(128, is_long=True)
def _attributions(key: WordKey, language: str) -> tuple[Mapping[str, Attribution], str]:
    """What is refused is said in the language of whoever reads it."""
    of = target(key)
    with _run(key.reading) as (model, _):
        return attributions_of(model, of)


@computed(4)
def _recording(reading: ReadingKey) -> Recording:
    with _run(reading) as (model, result):
        return sources.record_translation(model, result)


def _ours(name: str) -> Translator:
    """A model of which the parts of the residual stream are known."""
    found = shared.live(name)
    if not found.can("parts"):
        raise AttributionError(found.cannot("parts"))
    return shared.translator(name)


def _check_streams(model: LiveModel) -> None:
    if not model.can("lens"):
        raise AttributionError(model.cannot("lens"))


def _patched(model: LiveModel, pair: Contrast, patched: Patched, difference: float | None = None) -> PatchMap:
    if patched == "encoder stream":
        return patching.patch_stream(model, pair, "encoder", difference)
    if patched == "decoder stream":
        return patching.patch_stream(model, pair, "decoder", difference)
    if patched == "encoder heads":
        return patching.patch_heads(model, pair, "encoder", difference)
    return patching.patch_heads(model, pair, "decoder" if patched == "decoder heads" else "cross", difference)


@contextmanager
def _run(reading: ReadingKey) -> Iterator[tuple[LiveModel, Translation]]:
    """The model with the changes made, and the translation that is read.

    Nothing is taken from a cache within: what is missing there would be computed by the changed model.
    """
    model, result = shared.live(reading.model), shared.reading(*reading)
    with intervening(model.model, parse(reading.changes)):
        yield model, result
