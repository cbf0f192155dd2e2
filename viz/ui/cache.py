"""Computations that run once and are shared by all visitors, in turns, and on the CPU where the GPU is full.

What one page alone asks for stands in its own cache.py; no other file calls st.cache_*.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np
import streamlit as st

from attenscope.analysis import flow
from attenscope.capture.pooled import PooledAttention
from attenscope.checkpoint.card import CheckpointSummary, summarise_checkpoint
from attenscope.checkpoint.load import (
    CheckpointError,
    find_checkpoint_folder,
    list_checkpoints,
    parse_config,
    read_checkpoint_config,
)
from attenscope.decoding.greedy_and_sampling import ObserverCheck
from attenscope.devices import OutOfMemory, choose_device, limit_to_one_thread, switch_process_to_cpu
from attenscope.evaluation.in_domain_detection import Familiarity, FamiliarityError, read_familiarity
from attenscope.experiments import ablation
from attenscope.experiments.ablation import (
    Comparison,
    WordFacts,
    compare_with_changes,
    read_word_facts,
    teacher_force_with_changes,
)
from attenscope.experiments.lens import LogitLens, run_logit_lens
from attenscope.hugging_face.masked_words import MaskedWord, MaskedWordModel
from attenscope.hugging_face.media import MediaModel
from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import parse_changes
from attenscope.language import current_language, say, to_say
from attenscope.network.config import TransformerConfig
from attenscope.runnable_model import TEMPLATE_MARK, LocalError, LocalModel, RunnableModel, Translation
from attenscope.text.patches import Patches
from attenscope.trace import TENSOR_NAMES, AttentionMap, AttentionTrace, Head, Kind
from attenscope.translate import Translator
from attenscope.untrusted_trace import OpenedTrace, OpenError, open_trace
from attenscope.user_model import MODELS_OPTION, list_named_folders, load_user_model, read_option
from attenscope.viz.fair_queue import COMPUTE_QUEUE, BusyError
from attenscope.viz.streamlit_internals import create_connection_probe, create_run_probe
from attenscope.word_alignment.measure import ALIGNMENT_FILE, AlignmentRates, read_alignment_rates

# How a result is computed once for all visitors: in turns, and on the CPU where the GPU is full.


LEFT_TEXT = to_say("This was not read to its end, since something else was asked for.")
P = ParamSpec("P")
R = TypeVar("R")


class CachedFunction(Generic[P, R]):
    """A function whose results are cached for all visitors, with a spinner in the language of whoever waits."""

    def __init__(self, work: Callable[P, R], entries: int | None, spinner: bool | str) -> None:
        @cache
        def call_in_language(language: str) -> Any:
            """Return the cache, the same one in every language; only the text of the spinner differs."""
            text = say(spinner) if isinstance(spinner, str) else spinner
            return st.cache_resource(max_entries=entries, show_spinner=text)(work)

        self._in_language = call_in_language

    def clear(self) -> None:
        """Forget all results."""
        self._in_language(current_language()).clear()

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        found: R = self._in_language(current_language())(*arguments, **named)
        return found


class QueuedFunction(CachedFunction[P, R]):
    """A cached function whose results are computed in turns."""

    def __init__(self, work: Callable[P, R], entries: int, spinner: bool | str, is_long: bool) -> None:
        super().__init__(work, entries, spinner)
        self._is_long = is_long

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        before = COMPUTE_QUEUE.count_before(COMPUTE_QUEUE.ticket(self._is_long))
        try:
            # Another thread may be computing this result: no thread keeps its turn while it waits for that.
            with (
                COMPUTE_QUEUE.release_turn_temporarily(),
                st.spinner(say("{count} before you …", count=before)) if before else nullcontext(),
            ):
                return super().__call__(*arguments, **named)
        except BusyError as error:
            st.warning(str(error))
            st.stop()


def cache_for_all_visitors(
    spinner: str, entries: int | None = None
) -> Callable[[Callable[P, R]], CachedFunction[P, R]]:
    """Return a decorator that caches for all visitors, without turns; `spinner` is a message for :func:`say`."""
    return lambda work: CachedFunction(work, entries, spinner)


def queue_and_cache(
    entries: int, spinner: bool | str = False, *, is_long: bool = False
) -> Callable[[Callable[P, R]], QueuedFunction[P, R]]:
    """Return a decorator of functions that compute with a model: once for all visitors, who share the frozen result.

    Computations take turns, `is_long` ones last; a visitor whose turn does not come reads a sentence that says so.
    Where the GPU has no memory left, this and everything after it runs on the CPU. `spinner` is a message for
    :func:`say`.
    """

    def decorate(work: Callable[P, R]) -> QueuedFunction[P, R]:
        @wraps(work)
        def call_in_turn(*arguments: P.args, **named: P.kwargs) -> R:
            with COMPUTE_QUEUE.turn(COMPUTE_QUEUE.ticket(is_long), is_wanted=create_connection_probe()):
                try:
                    return work(*arguments, **named)
                except OutOfMemory:
                    switch_process_to_cpu()
                return work(*arguments, **named)

        return QueuedFunction(call_in_turn, entries, spinner, is_long)

    return decorate


# What more than one page asks for.


@st.cache_data(ttl=10, show_spinner=False)
def list_checkpoint_names() -> list[str]:
    """Names of the checkpoints that can be chosen."""
    return list(list_checkpoints())


@st.cache_data(ttl=10, show_spinner=False)
def load_model_configs() -> dict[str, TransformerConfig | None]:
    """The configuration of each model that can be chosen, by name, without loading its weights.

    None for a model of the command line, which need not be of this project. A checkpoint that cannot be read is left
    out.
    """
    known: dict[str, TransformerConfig | None] = dict.fromkeys(_list_command_line_models())
    for name in list_checkpoint_names():
        with suppress(CheckpointError):
            folder = find_checkpoint_folder(name)
            known[name] = parse_config(folder, read_checkpoint_config(folder))
    return known


@st.cache_data(ttl=10, show_spinner=False)
def load_model_summaries() -> list[CheckpointSummary]:
    """Summaries of the checkpoints that can be chosen; one that cannot be read is left out."""
    found = []
    for name in list_checkpoint_names():
        with suppress(ValueError):
            found.append(summarise_checkpoint(find_checkpoint_folder(name)))
    return found


@st.cache_data(ttl=10, show_spinner=False)
def load_source_languages() -> dict[str, str]:
    """The code of the language that each model reads, by name, "" where its card says none; loads no weights."""
    own = load_single_command_line_model()
    first = {own.name: str(own.card.get("source_language", ""))} if isinstance(own, RunnableModel) else {}
    return first | {name: _read_source_language(name) for name in list_checkpoint_names() if name not in first}


def _read_source_language(name: str) -> str:
    try:
        return str(read_checkpoint_config(find_checkpoint_folder(name))["card"].get("source_language", ""))
    except CheckpointError:  # a folder that cannot be read spoils no other model's page
        return ""


@cache_for_all_visitors(to_say("Loading the model …"))
def _load_model_from_spec(spec: str, device: str) -> RunnableModel | LocalModel:
    """Run the factory of `spec` once for each `device`. Raises LocalError."""
    return load_user_model(spec)


@st.cache_resource(show_spinner=False)
def _load_model_or_error(spec: str, device: str, language: str) -> RunnableModel | LocalModel | LocalError:
    """Load the model; a failure is cached too, in each language that it is said in."""
    try:
        return _load_model_from_spec(spec, device)
    except LocalError as error:
        return error


def load_single_command_line_model() -> RunnableModel | LocalModel | LocalError | None:
    """The model that the command line names, or why there is none."""
    spec = read_option(sys.argv[1:])
    return None if spec is None else _load_model_or_error(spec, str(choose_device()), current_language())


def _list_command_line_specs() -> tuple[dict[str, str], str]:
    """The specs of the models in the directory that the command line names, by name, and the error or ""."""
    return (
        ({}, "")
        if read_option(sys.argv[1:], MODELS_OPTION) is None
        else _find_command_line_model_folders(current_language())
    )


@st.cache_data(ttl=10, show_spinner=False)
def _find_command_line_model_folders(language: str) -> tuple[dict[str, str], str]:
    try:
        return list_named_folders(sys.argv[1:]), ""
    except LocalError as error:
        return {}, str(error)


def list_command_line_errors() -> list[str]:
    """Sentences that say why models of the command line could not be loaded."""
    own = load_single_command_line_model()
    return [*([str(own)] if isinstance(own, LocalError) else []), *filter(None, _list_command_line_specs()[1:])]


def load_command_line_model(name: str) -> RunnableModel | LocalModel | LocalError | None:
    """A model of the command line, loaded at the first call, or the error that prevents it; None for other names.

    The name may end with that of a prompt template (:meth:`RunnableModel.with_prompt_template`).
    """
    base, _, template = name.partition(TEMPLATE_MARK)
    found = _find_command_line_model(base)
    if not template or not isinstance(found, RunnableModel):
        return None if template and isinstance(found, LocalModel) else found
    try:
        return found.with_prompt_template(template)
    except LocalError as error:
        return error


def _find_command_line_model(name: str) -> RunnableModel | LocalModel | LocalError | None:
    own = load_single_command_line_model()
    if isinstance(own, RunnableModel | LocalModel) and own.name == name:
        return own
    spec = _list_command_line_specs()[0].get(name)
    return None if spec is None else _load_model_or_error(spec, str(choose_device()), current_language())


def find_encoder_only_model(name: str) -> LocalModel | None:
    """A model of the command line that only reads; None for one that writes."""
    found = load_command_line_model(name)
    return found if isinstance(found, LocalModel) else None


def list_models() -> list[str]:
    """Names of all models that can be chosen, those of the command line first."""
    return list(dict.fromkeys([*_list_command_line_models(), *list_checkpoint_names()]))


def _list_command_line_models() -> list[str]:
    own = load_single_command_line_model()
    first = [own.name] if isinstance(own, RunnableModel | LocalModel) else []
    return [*first, *_list_command_line_specs()[0]]


@queue_and_cache(64)
def compute_encoder_only_trace(name: str, sentence: str, changes: str = "") -> OpenedTrace:
    """The trace of a sentence through a model of the command line that only reads; frozen.

    Raises LocalError, and InterventionError for changes that the model cannot have.
    """
    own = find_encoder_only_model(name)
    assert own is not None
    try:
        if changes and isinstance(own, MaskedWordModel):
            return open_trace(name, own.trace_with_changes(sentence, parse_changes(changes)))
        return open_trace(name, own.trace(sentence))
    except OpenError as error:
        raise LocalError(str(error)) from error


@dataclass(frozen=True, eq=False)
class OpenedMedium:
    """What a model attended to while it read a sound or a picture; frozen."""

    opened: OpenedTrace
    patches: Patches | None


def compute_media_reading(name: str, file: str, data: bytes | None = None) -> OpenedMedium:
    """The reading of a file of the model's folder, or of one of this name that holds `data`. Raises LocalError."""
    return _read_medium(name, file, data, current_language())


@queue_and_cache(16)
def _read_medium(name: str, file: str, data: bytes | None, language: str) -> OpenedMedium:
    """Cached by `language` too, as the names of columns are in it."""
    own = find_encoder_only_model(name)
    assert isinstance(own, MediaModel)
    reading = own.read(file, data)
    try:
        return OpenedMedium(open_trace(name, reading.trace), reading.patches)
    except OpenError as error:
        raise LocalError(str(error)) from error


@queue_and_cache(4, to_say("Reading a long text …"), is_long=True)
def compute_pooled_attention(name: str, text: str) -> PooledAttention:
    """The attention over a long text in pooled maps, and the last row as it is; frozen."""
    model, ids = _encode_long_text(name, text)
    return model.read_long_text(ids, (len(ids) - 1,), on_rows=_create_pause())


@queue_and_cache(16, to_say("Reading a row …"), is_long=True)
def compute_attention_row(name: str, text: str, row: int) -> PooledAttention:
    """One row, from 0, of the attention of all layers and heads over a long text; frozen."""
    model, ids = _encode_long_text(name, text)
    return model.read_long_text(ids, (row,), pooled=False, on_rows=_create_pause())


def _create_pause() -> Callable[[], None]:
    """Return what a long computation calls now and then: others go first, and it ends once nobody waits for it."""
    is_wanted = create_run_probe()

    def pause() -> None:
        COMPUTE_QUEUE.yield_to_earlier_tickets()
        if not is_wanted():
            raise BusyError(say(LEFT_TEXT))

    return pause


def _encode_long_text(name: str, text: str) -> tuple[RunnableModel, tuple[int, ...]]:
    model = load_runnable_model(name)
    encoded = model.encode_long_text(text)
    assert encoded is not None
    return model, encoded.ids


def load_masked_word_model(name: str) -> MaskedWordModel:
    """A model of the command line that reads masked words."""
    own = find_encoder_only_model(name)
    assert isinstance(own, MaskedWordModel)
    return own


@queue_and_cache(128)
def compute_masked_word(name: str, sentence: str, position: int, changes: str = "") -> MaskedWord:
    """What an encoder reads in the place of a masked word, with changes made; frozen.

    Raises LocalError and InterventionError.
    """
    return load_masked_word_model(name).predict_masked_word(sentence, position, parse_changes(changes))


@queue_and_cache(64, to_say("Switching heads off …"), is_long=True)
def compute_masked_word_head_effects(
    name: str, sentence: str, position: int, changes: str = ""
) -> list[tuple[Head, float]]:
    """How far each head's being off moves the log-probability of that word, the largest change first."""
    return load_masked_word_model(name).measure_head_effects(sentence, position, parse_changes(changes))


def load_runnable_model(name: str) -> RunnableModel:
    """The one copy of a model that all visitors share. Raises CheckpointError."""
    return _load_model_on_device(name, str(choose_device()))


@cache_for_all_visitors(to_say("Loading the model …"))
def _load_model_on_device(name: str, device: str) -> RunnableModel:
    limit_to_one_thread()
    own = load_command_line_model(name)
    loaded = own if isinstance(own, RunnableModel) else Translator.load(name, device)
    # Streamlit collects garbage after every rerun; walking all that torch has loaded would be most of a rerun.
    gc.collect()
    gc.freeze()
    return loaded


def load_translator(name: str) -> Translator:
    """A model of this project, for what needs its internals. Raises CheckpointError for any other model."""
    found = load_runnable_model(name)
    if not isinstance(found, Translator):
        raise CheckpointError(f"{name} is no model of this project, and this needs one.")
    return found


@queue_and_cache(128)
def compute_translation(name: str, sentence: str) -> Translation:
    """A sentence translated by a model; frozen, so visitors share it. Raises InputError."""
    return load_runnable_model(name).translate(sentence)


@queue_and_cache(128)
def compute_observer_check(name: str, sentence: str) -> ObserverCheck:
    """Whether observing changed a model's translation of a sentence, which is made once more for it; frozen."""
    return load_runnable_model(name).check_observer(compute_translation(name, sentence))


@queue_and_cache(64)
def compute_teacher_forced(name: str, sentence: str, target: str) -> Translation:
    """A given translation read by teacher forcing; frozen. Raises InputError."""
    return load_runnable_model(name).force(sentence, target)


@queue_and_cache(64, is_long=True)
def compute_intervention_comparison(name: str, sentence: str, changes: str, target: str = "") -> Comparison:
    """A sentence translated again by the model with changes made, as format_changes writes them; frozen.

    With `target`, that given translation is read again. Raises InterventionError.
    """
    return compare_with_changes(
        load_runnable_model(name), compute_translation_with_changes(name, sentence, target), parse_changes(changes)
    )


def compute_translation_with_changes(name: str, sentence: str, target: str = "", changes: str = "") -> Translation:
    """A sentence with the model's own translation or a given one, by the model as it is or with changes made."""
    if changes:
        return compute_intervention_comparison(name, sentence, changes, target).after
    return compute_teacher_forced(name, sentence, target) if target else compute_translation(name, sentence)


@queue_and_cache(16)
def compute_full_trace(name: str, sentence: str, target: str = "", changes: str = "") -> AttentionTrace:
    """The trace of a reading with queries, keys, values and scores, by one teacher-forced pass; frozen."""
    ids = compute_translation_with_changes(name, sentence, target, changes).target_ids
    return teacher_force_with_changes(
        load_runnable_model(name), sentence, ids, parse_changes(changes), tensors=TENSOR_NAMES
    ).trace


@queue_and_cache(64)
def compute_logit_lens(name: str, sentence: str, target: str = "", changes: str = "") -> LogitLens:
    """What the decoder would have written after each layer; frozen."""
    model, found = load_runnable_model(name), compute_translation_with_changes(name, sentence, target, changes)
    with apply_changes(model.model, parse_changes(changes)):
        return run_logit_lens(model, found)


@queue_and_cache(64)
def compute_word_facts(name: str, text: str, target_ids: tuple[int, ...], changes: str = "") -> WordFacts:
    """What a translation rests on, word by word; frozen. Raises InterventionError."""
    return read_word_facts(load_runnable_model(name), text, target_ids, parse_changes(changes))


@st.cache_resource(max_entries=512, show_spinner=False)
def plan_ablation_batches(name: str, source_length: int, target_length: int) -> tuple[tuple[Head, ...], ...]:
    """The heads that are switched off in each forward pass of :func:`compute_ablation_batch`."""
    return ablation.plan_ablation_batches(load_runnable_model(name).model, source_length, target_length)


@queue_and_cache(512)
def compute_ablation_batch(
    name: str, source_ids: tuple[int, ...], target_ids: tuple[int, ...], part: int, changes: str
) -> np.ndarray:
    """What each head of one batch of :func:`plan_ablation_batches` changes when it is off: (heads, T).

    Raises InterventionError.
    """
    model, heads = load_runnable_model(name).model, plan_ablation_batches(name, len(source_ids), len(target_ids))[part]
    with apply_changes(model, parse_changes(changes)):
        return ablation.measure_head_effects_in_batch(model, source_ids, target_ids, heads)


@cache_for_all_visitors(to_say("Computing the attention flow …"), 64)
def compute_attention_flow(
    run: tuple[str, ...], kind: Kind, layer: int, weighted: bool, _trace: AttentionTrace
) -> AttentionMap:
    """The attention flow through a layer of a run's trace. Raises TraceError.

    `run` and `weighted`, whether its weights are multiplied by value norms, identify `_trace`, which is not hashed.
    """
    return flow.compute_attention_flow(_trace, kind, layer)


@st.cache_data(ttl=10, show_spinner=False)
def load_in_domain_score(name: str) -> Familiarity | None:
    """How probable a checkpoint finds text of its own kind; None where this was not measured for these weights."""
    try:
        return read_familiarity(find_checkpoint_folder(name), name, load_translator(name).checkpoint.hash)
    except (CheckpointError, FamiliarityError):  # A model of the command line has no folder.
        return None


def load_alignment_rates(name: str, model_hash: str) -> AlignmentRates:
    """The alignment error rates of a model; shared. Raises AlignmentError, or CheckpointError for no folder."""
    folder = find_checkpoint_folder(name)
    file = folder / ALIGNMENT_FILE
    return _read_alignment_rates(folder, name, model_hash, file.stat().st_mtime_ns if file.is_file() else 0)


@st.cache_resource(max_entries=16, show_spinner=False)
def _read_alignment_rates(folder: Path, name: str, model_hash: str, written: int) -> AlignmentRates:
    """Cached also by `written`, the time of the file, which changes when it is measured anew."""
    return read_alignment_rates(folder, name, model_hash)
