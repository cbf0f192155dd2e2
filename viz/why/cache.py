"""What the page Why computes once and all visitors share. The results are frozen; all raise AttributionError."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import streamlit as st

from attenscope.attribution import alti_and_leave_one_out, methods
from attenscope.attribution.alti_and_leave_one_out import SourceShares, WordsLeftOut
from attenscope.attribution.any_model import attribute_any_model, attribute_available_methods, run_attention_pass
from attenscope.attribution.logit import LogitParts, PassRecording, ScoreParts, split_logit, split_score
from attenscope.attribution.methods import Attribution, record_target_pass, require_nonzero_target_probability
from attenscope.attribution.target import AttributionError, Target, make_piece_target
from attenscope.checkpoint.load import CheckpointError, find_checkpoint_folder
from attenscope.evaluation.attribution import (
    AttributionScores,
    DeletionCurves,
    check_deletion_length,
    measure_deletion_curves,
    measure_local_model_deletion_curves,
    read_attribution_scores,
)
from attenscope.experiments.ablation import measure_head_effects_on_word
from attenscope.experiments.lens import DecoderLens, LogitLens, run_decoder_lens, run_logit_lens
from attenscope.experiments.patching import (
    Contrast,
    PatchMap,
    compare_at_first_difference,
    make_same_answer_control,
    patch_heads,
    patch_stream,
)
from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import parse_changes
from attenscope.language import current_language, say, to_say
from attenscope.network.abstract_model import make_decoder_inputs
from attenscope.runnable_model import RunnableModel, Translation
from attenscope.trace import Head
from attenscope.translate import Translator
from attenscope.viz.ui import cache
from attenscope.viz.ui.addresses.why import AttentionCell, PatchedPart
from attenscope.viz.ui.cache import queue_and_cache

ONE_STREAM_MESSAGE = to_say(
    "Prompt and continuation are one stream in a decoder alone, so none of it is the source's: Source words scores the "
    "pieces of both."
)


class ReadingKey(NamedTuple):
    """A sentence with its translation, as :func:`viz.ui.cache.compute_translation_with_changes` takes it."""

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


def load_explained_target(key: WordKey) -> Target:
    """The word that is explained."""
    model, result = cache.load_runnable_model(key.reading.model), cache.compute_translation_with_changes(*key.reading)
    return make_piece_target(model, result, key.position, key.length, key.against)


@st.cache_data(max_entries=256, show_spinner=False)
def compute_target_value(key: WordKey) -> float:
    """log p(X), or logit X - logit Y."""
    of = load_explained_target(key)
    with _run_with_changes(key.reading) as (model, _):
        found = methods.compute_target_value(model.model, of)
    require_nonzero_target_probability(of, found)
    return found


@queue_and_cache(256)
def compute_words_left_out(key: WordKey) -> WordsLeftOut:
    """What is left of the value without each word."""
    of = load_explained_target(key)
    compute_target_value(key)
    with _run_with_changes(key.reading) as (model, _):
        return alti_and_leave_one_out.compute_words_left_out(model.model, of)


def compute_attributions_by_method(key: WordKey) -> Mapping[str, Attribution]:
    """The scores of every method that can be computed, by its name."""
    return _attribute_word(key, current_language())[0]


def describe_refused_methods(key: WordKey) -> str:
    """Why other methods cannot be computed; "" where all can."""
    return _attribute_word(key, current_language())[1]


@queue_and_cache(128)
def has_attention_blocks(key: WordKey) -> bool:
    """Whether the parts of every attention block are found in the model, without which some methods are refused."""
    of = load_explained_target(key)
    with _run_with_changes(key.reading) as (model, _):
        seen = run_attention_pass(model.model, of.source_ids, of.input_ids)
        try:
            seen.stacks()
        except AttributionError:
            return False
        return True


@queue_and_cache(128, is_long=True)
def compute_deletion_curves(key: WordKey) -> DeletionCurves:
    """What is left of the value when pieces are taken away, by the order of every method."""
    of = load_explained_target(key)
    check_deletion_length(len(of.source_ids))
    found = compute_attributions_by_method(key)
    with _run_with_changes(key.reading) as (model, _):
        return measure_deletion_curves(model, of, found)


@queue_and_cache(128)
def compute_logit_parts(key: WordKey) -> LogitParts:
    """The logit, or the difference of two, split over heads and layers."""
    own, of = _require_translator(key.reading.model), load_explained_target(key)
    compute_target_value(key)
    with _run_with_changes(key.reading):
        return split_logit(own.model, of, record_target_pass(own.model, of))


@queue_and_cache(512)
def compute_head_effects(key: WordKey, heads: tuple[Head, ...]) -> np.ndarray:
    """How the value changes without each of some heads, in one forward pass: (heads, 1)."""
    of = load_explained_target(key)
    with _run_with_changes(key.reading) as (model, _):
        return measure_head_effects_on_word(model.model, of, heads)


@queue_and_cache(256)
def compute_score_parts(reading: ReadingKey, cell: AttentionCell) -> ScoreParts:
    """The score of one cell split over the parts of its query and its key."""
    own, recording = _require_translator(reading.model), _record_translation_pass(reading)
    with _run_with_changes(reading) as (_, result):
        return split_score(own, result, *cell, recording=recording)


@queue_and_cache(64)
def compute_source_shares(reading: ReadingKey) -> SourceShares:
    """How much of each piece comes from the source."""
    with _run_with_changes(reading) as (model, result):
        if model.model.is_decoder_alone:
            raise AttributionError(say(ONE_STREAM_MESSAGE))
        seen = run_attention_pass(
            model.model, result.source_ids, make_decoder_inputs(result.target_ids, model.model.start_id)
        )
        return alti_and_leave_one_out.compute_source_shares(model, result, seen)


@queue_and_cache(64)
def compute_sentence_pair_contrast(first: ReadingKey, second: ReadingKey) -> Contrast:
    """Two sentences, and the word at which their translations part."""
    other = cache.compute_translation_with_changes(*second)
    with _run_with_changes(first) as (model, result):
        return compare_at_first_difference(model, result, other)


@queue_and_cache(64, is_long=True)
def compute_patch_map(first: ReadingKey, second: ReadingKey, patched: PatchedPart) -> PatchMap:
    """Return the share of the difference that a patch at each place brings back."""
    pair = compute_sentence_pair_contrast(first, second)
    with _run_with_changes(first) as (model, _):
        _require_lens_ability(model)
        return _run_patching(model, pair, patched)


@queue_and_cache(64, is_long=True)
def compute_control_patch_map(
    first: ReadingKey, second: ReadingKey, control: ReadingKey, patched: PatchedPart
) -> PatchMap:
    """Return the patch map from the first sentence to one with the same answer, as a share of the pair's difference."""
    pair, answer = compute_sentence_pair_contrast(first, second), cache.compute_translation_with_changes(*control)
    with _run_with_changes(first) as (model, _):
        same = make_same_answer_control(model, pair, answer)
        return _run_patching(model, same, patched, pair.difference)


@queue_and_cache(64, is_long=True)
def compute_decoder_lens(reading: ReadingKey) -> DecoderLens:
    """The translation read from each layer of the encoder."""
    with _run_with_changes(reading) as (model, result):
        _require_lens_ability(model)
        return run_decoder_lens(model, result)


@queue_and_cache(64)
def compute_sublayer_lens(reading: ReadingKey, token_id: int | None = None) -> LogitLens:
    """What the decoder would write after each sublayer; ranks of the token written, or of `token_id`."""
    with _run_with_changes(reading) as (model, result):
        return run_logit_lens(model, result, sublayers=True, token_id=token_id)


@queue_and_cache(64)
def compute_layer_lens(reading: ReadingKey, token_id: int | None = None) -> LogitLens:
    """Return what the decoder would write after each layer; see :func:`compute_sublayer_lens`."""
    with _run_with_changes(reading) as (model, result):
        return run_logit_lens(model, result, token_id=token_id)


def compute_user_model_attributions_by_method(name: str, sentence: str, position: int) -> Mapping[str, Attribution]:
    """What can be computed of a model of the command line, by method, for the piece at a position, from 0."""
    return _attribute_user_model(name, sentence, position, current_language())[0]


def describe_missing_user_model_methods(name: str, sentence: str, position: int) -> str:
    """What cannot be computed there, and why."""
    return _attribute_user_model(name, sentence, position, current_language())[1]


@queue_and_cache(64, to_say("Taking pieces away …"), is_long=True)
def compute_user_model_deletion_curves(name: str, sentence: str, position: int) -> DeletionCurves:
    """What is left of that piece as source pieces are taken away, by the order of each method."""
    own = cache.find_encoder_only_model(name)
    assert own is not None
    found = compute_user_model_attributions_by_method(name, sentence, position)
    check_deletion_length(len(next(iter(found.values())).source))
    return measure_local_model_deletion_curves(own, sentence, position + 1, found)


@st.cache_data(ttl=10, show_spinner=False)
def load_attribution_scores(name: str) -> AttributionScores | None:
    """What was measured of a checkpoint as it is; None where nothing was. Raises AttributionScoresError."""
    try:
        found = read_attribution_scores(find_checkpoint_folder(name))
    except CheckpointError:  # a model of the command line has no folder
        return None
    return found if found and found.model_hash == cache.load_translator(name).checkpoint.hash else None


@queue_and_cache(64, is_long=True)
def _attribute_user_model(
    name: str, sentence: str, position: int, language: str
) -> tuple[Mapping[str, Attribution], str]:
    """Cached by `language` too, as the text of what is missing is in it."""
    own = cache.find_encoder_only_model(name)
    assert own is not None
    found, missing = attribute_any_model(own, sentence, position + 1, "all")
    return {one.method: one for one in found}, missing


@queue_and_cache(128, is_long=True)
def _attribute_word(key: WordKey, language: str) -> tuple[Mapping[str, Attribution], str]:
    """Cached by `language` too, as the text of the refusals is in it."""
    of = load_explained_target(key)
    with _run_with_changes(key.reading) as (model, _):
        return attribute_available_methods(model, of)


@queue_and_cache(4)
def _record_translation_pass(reading: ReadingKey) -> PassRecording:
    with _run_with_changes(reading) as (model, result):
        return alti_and_leave_one_out.record_translation(model, result)


def _require_translator(name: str) -> Translator:
    """A model of which the parts of the residual stream are known."""
    found = cache.load_runnable_model(name)
    if not found.can("parts"):
        raise AttributionError(found.cannot("parts"))
    return cache.load_translator(name)


def _require_lens_ability(model: RunnableModel) -> None:
    if not model.can("lens"):
        raise AttributionError(model.cannot("lens"))


def _run_patching(
    model: RunnableModel, pair: Contrast, patched: PatchedPart, difference: float | None = None
) -> PatchMap:
    if patched == "encoder stream":
        return patch_stream(model, pair, "encoder", difference)
    if patched == "decoder stream":
        return patch_stream(model, pair, "decoder", difference)
    if patched == "encoder heads":
        return patch_heads(model, pair, "encoder", difference)
    return patch_heads(model, pair, "decoder" if patched == "decoder heads" else "cross", difference)


@contextmanager
def _run_with_changes(reading: ReadingKey) -> Iterator[tuple[RunnableModel, Translation]]:
    """The model with the changes made, and the translation that is read.

    No cached function is called inside the block: the changed model would compute what the cache lacks.
    """
    model, result = cache.load_runnable_model(reading.model), cache.compute_translation_with_changes(*reading)
    with apply_changes(model.model, parse_changes(reading.changes)):
        yield model, result
