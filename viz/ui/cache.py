"""What is computed once and shared. Only this module and the caches of Why and Heads call st.cache_*."""

from __future__ import annotations

import gc
import sys
from contextlib import suppress

import numpy as np
import streamlit as st

from model.analysis.attention_flow import attention_flow as flow_through
from model.behaviour.backends.compare import Comparison as BackendComparison
from model.behaviour.backends.live import compare_live
from model.behaviour.outcomes import Outcome
from model.checkpoint.bleu_scores import CARD, Score, read_scores
from model.checkpoint.files import CheckpointError, config_of, folder_of, read_facts
from model.checkpoint.history import HistoryRow, read_history
from model.checkpoint.preset_comparison import PresetModel, read_preset_model
from model.checkpoint.snapshots import snapshot_steps as kept_steps
from model.checkpoint.summary import Summary, summary
from model.decoding.observer_check import ObserverCheck
from model.devices import chosen_device, one_thread_each
from model.evaluation.familiarity import Familiarity, FamiliarityError, read_familiarity
from model.experiments import head_effects
from model.experiments.ablation import Comparison, compare, force_changed
from model.experiments.cache_agreement import Agreement, agreement_of
from model.experiments.input_perturbation import Perturbation, perturb, run_checks
from model.experiments.logit_lens import Lens, logit_lens
from model.experiments.mask_trial import MaskTrial, TrialResult, run_trial
from model.experiments.training_timeline import Moment, Stop, timeline
from model.experiments.training_timeline import stops as training_stops
from model.experiments.word_facts import WordFacts
from model.experiments.word_facts import word_facts as facts_of
from model.interventions.apply import intervening
from model.interventions.changes import parse
from model.language.current import current_language, speaking
from model.language.say import to_say
from model.live.live_model import LiveModel
from model.network.config import TransformerConfig
from model.positions.experiments import ExperimentResult, PositionExperiment, log_prob_curve, run_experiment
from model.positions.forms import FORMS, FormError, form_error, form_values
from model.positions.geometry import Uniqueness, similarity
from model.positions.geometry import uniqueness as closest
from model.positions.head_scores import PositionalHeads, positional_heads
from model.positions.table import formula_table
from model.trace import TENSORS, AttentionMap, AttentionTrace, Head, Kind
from model.translate import Translation, Translator, available
from model.untrusted_trace import OpenedTrace, OpenError, open_trace
from model.user_model import DIRECTORY, LocalError, LocalModel, named_folders, option
from model.user_model import load as load_local

from ..computed import cached, computed


@st.cache_data(ttl=10, show_spinner=False)
def checkpoints() -> list[str]:
    """Names of the checkpoints that can be chosen."""
    return list(available())


@st.cache_data(ttl=10, show_spinner=False)
def configurations() -> dict[str, TransformerConfig | None]:
    """What each model that can be chosen is like, by name; no checkpoint is loaded for it.

    None for one of the command line, which need not be of this project.
    """
    folders = {name: folder_of(name) for name in checkpoints()}
    known = {name: config_of(folder, read_facts(folder)) for name, folder in folders.items()}
    return {name: known.get(name) for name in models()}


@st.cache_data(ttl=10, show_spinner=False)
def summaries() -> list[Summary]:
    """What a list says of the checkpoints that can be chosen; one that cannot be read is left out."""
    found = []
    for name in checkpoints():
        with suppress(ValueError):
            found.append(summary(folder_of(name)))
    return found


@st.cache_data(ttl=10, show_spinner=False)
def source_languages() -> dict[str, str]:
    """The code of the language that each model reads, by name, "" where its card says none; no checkpoint is loaded."""
    own = local()
    first = {own.name: str(own.card.get("source_language", ""))} if isinstance(own, LiveModel) else {}
    return first | {name: _source_language(name) for name in checkpoints() if name not in first}


def _source_language(name: str) -> str:
    try:
        return str(read_facts(folder_of(name))["card"].get("source_language", ""))
    except CheckpointError:  # a folder that cannot be read spoils no other model's page
        return ""


@cached(to_say("Loading the model …"))
def _named(spec: str, device: str) -> LiveModel | LocalModel:
    """The factory runs once, and again where another `device` is chosen from then on. Raises LocalError."""
    return load_local(spec)


@st.cache_resource(show_spinner=False)
def _local(spec: str, device: str, language: str) -> LiveModel | LocalModel | LocalError:
    """A failure is kept too, in each language that it is said in."""
    try:
        return _named(spec, device)
    except LocalError as error:
        return error


def local() -> LiveModel | LocalModel | LocalError | None:
    """The model that the command line names, or why there is none."""
    spec = option(sys.argv[1:])
    return None if spec is None else _local(spec, str(chosen_device()), current_language())


def _offered() -> tuple[dict[str, str], str]:
    """What loads each model of the directory that the command line names, by name, or why there is none, said."""
    return ({}, "") if option(sys.argv[1:], DIRECTORY) is None else _folders(current_language())


@st.cache_data(ttl=10, show_spinner=False)
def _folders(language: str) -> tuple[dict[str, str], str]:
    try:
        return named_folders(sys.argv[1:]), ""
    except LocalError as error:
        return {}, str(error)


def command_line_problems() -> list[str]:
    """Why what the command line names cannot be had, in sentences."""
    own = local()
    return [*([str(own)] if isinstance(own, LocalError) else []), *filter(None, _offered()[1:])]


def brought(name: str) -> LiveModel | LocalModel | LocalError | None:
    """A model that the command line names, loaded when it is first asked for, or why it cannot be; None for others."""
    own = local()
    if isinstance(own, LiveModel | LocalModel) and own.name == name:
        return own
    spec = _offered()[0].get(name)
    return None if spec is None else _local(spec, str(chosen_device()), current_language())


def reader(name: str) -> LocalModel | None:
    """A model of the command line that only reads; None for one that writes."""
    found = brought(name)
    return found if isinstance(found, LocalModel) else None


def models() -> list[str]:
    """Names of all that can be chosen, those of the command line first."""
    own = local()
    first = [own.name] if isinstance(own, LiveModel | LocalModel) else []
    return list(dict.fromkeys([*first, *_offered()[0], *checkpoints()]))


@computed(64)
def local_trace(name: str, sentence: str) -> OpenedTrace:
    """A sentence through a model of the command line that only reads; frozen. Raises LocalError."""
    own = reader(name)
    assert own is not None
    try:
        return open_trace(name, own.trace(sentence))
    except OpenError as error:
        raise LocalError(str(error)) from error


def live(name: str) -> LiveModel:
    """The one copy of a model that all visitors share. Raises CheckpointError."""
    return _loaded(name, str(chosen_device()))


@cached(to_say("Loading the model …"))
def _loaded(name: str, device: str) -> LiveModel:
    one_thread_each()
    own = brought(name)
    loaded = own if isinstance(own, LiveModel) else Translator.load(name, device)
    # Streamlit collects garbage after every rerun; walking all that torch has loaded would be most of a rerun.
    gc.collect()
    gc.freeze()
    return loaded


def translator(name: str) -> Translator:
    """The same of a model of this project: for what needs to know its inside, and others cannot do."""
    found = live(name)
    if not isinstance(found, Translator):
        raise CheckpointError(f"{name} is no model of this project, and this needs one.")
    return found


@computed(128)
def translation(name: str, sentence: str) -> tuple[Translation, ObserverCheck]:
    """A sentence through a checkpoint, and whether looking changed it. Both are frozen, so visitors share them."""
    model = live(name)
    translated = model.translate(sentence)
    return translated, model.check_observer(translated)


@computed(128, is_long=True)
def agreement(name: str, source_ids: tuple[int, ...], target_ids: tuple[int, ...], changes: str = "") -> Agreement:
    """Whether cached, full and teacher-forced attention of a translation agree; frozen, so visitors share it.

    `changes` as changes.text_of writes them are made to the model. Raises InterventionError.
    """
    return agreement_of(translator(name), source_ids, target_ids, parse(changes))


@st.cache_data(max_entries=16, show_spinner=False)
def position_values(form: str, positions: int, d_model: int, base: float) -> np.ndarray:
    """A sinusoidal table (positions, d_model) as a form computes it; `reference` is the float64 formula."""
    if form == "reference":
        return formula_table(positions, d_model, base).values
    return form_values(form, positions, d_model, base)


@st.cache_data(max_entries=32, show_spinner=False)
def position_errors(positions: int, d_model: int, base: float) -> dict[str, FormError]:
    """Every form's error, by name."""
    return {name: form_error(name, positions, d_model, base) for name in FORMS}


@st.cache_data(max_entries=8, show_spinner=False)
def similarities(rows: np.ndarray, cosine: bool) -> np.ndarray:
    """Similarity of all positions of a table (P, D): (P, P)."""
    return similarity(rows, cosine=cosine)


@st.cache_data(max_entries=8, show_spinner=False)
def uniqueness(rows: np.ndarray) -> Uniqueness:
    """The closest positions of a table (P, D)."""
    return closest(rows)


@computed(64)
def position_experiment(name: str, sentence: str, experiment: PositionExperiment) -> ExperimentResult:
    """A sentence translated with its positions moved. Raises ExperimentError."""
    return run_experiment(live(name), translation(name, sentence)[0], experiment)


@computed(64, is_long=True)
def position_belief(name: str, sentence: str, experiment: PositionExperiment, amounts: tuple[float, ...]) -> np.ndarray:
    """What the model keeps of its translation as the experiment grows. Raises ExperimentError."""
    curve = log_prob_curve(live(name), translation(name, sentence)[0], experiment, amounts)
    curve.flags.writeable = False
    return curve


@computed(32, is_long=True)
def position_heads(name: str, sentence: str) -> PositionalHeads:
    """Which heads of a checkpoint look at places, on one sentence."""
    return positional_heads(translator(name), translation(name, sentence)[0])


@computed(64)
def teacher_forced(name: str, sentence: str, target: str) -> Translation:
    """A given translation read by teacher forcing; frozen. Raises InputError."""
    return live(name).force(sentence, target)


@computed(64, is_long=True)
def with_changes(name: str, sentence: str, changes: str, target: str = "") -> Comparison:
    """A sentence translated again by the model with changes made, as changes.text_of writes them; frozen.

    With `target`, that given translation is read again. Raises InterventionError.
    """
    return compare(live(name), reading(name, sentence, target), parse(changes))


def reading(name: str, sentence: str, target: str = "", changes: str = "") -> Translation:
    """A sentence with the model's own translation or a given one, by the model as it is or with changes made."""
    if changes:
        return with_changes(name, sentence, changes, target).after
    return teacher_forced(name, sentence, target) if target else translation(name, sentence)[0]


@computed(16)
def whole_trace(name: str, sentence: str, target: str = "", changes: str = "") -> AttentionTrace:
    """The trace of a reading with queries, keys, values and scores, by one teacher-forced pass; frozen."""
    ids = reading(name, sentence, target, changes).target_ids
    return force_changed(live(name), sentence, ids, parse(changes), tensors=TENSORS).trace


@computed(64)
def lens(name: str, sentence: str, target: str = "", changes: str = "") -> Lens:
    """What the decoder would have written after each layer; frozen."""
    model, found = live(name), reading(name, sentence, target, changes)
    with intervening(model.model, parse(changes)):
        return logit_lens(model, found)


@computed(64)
def word_facts(name: str, text: str, target_ids: tuple[int, ...], changes: str = "") -> WordFacts:
    """What a translation rests on, word by word; frozen. Raises InterventionError."""
    return facts_of(live(name), text, target_ids, parse(changes))


@st.cache_resource(max_entries=512, show_spinner=False)
def passes(name: str, source_length: int, target_length: int) -> tuple[tuple[Head, ...], ...]:
    """The heads that are switched off in each forward pass of :func:`effects_of`."""
    return head_effects.plan(live(name).model, source_length, target_length)


@computed(512)
def effects_of(
    name: str, source_ids: tuple[int, ...], target_ids: tuple[int, ...], part: int, changes: str
) -> np.ndarray:
    """What switching off each head of one of the :func:`passes` changes: (heads, T). Raises InterventionError."""
    model, heads = live(name).model, passes(name, len(source_ids), len(target_ids))[part]
    with intervening(model, parse(changes)):
        return head_effects.effects_of(model, source_ids, target_ids, heads)


@cached(to_say("Computing the attention flow …"), 64)
def attention_flow(
    run: tuple[str, ...], kind: Kind, layer: int, weighted: bool, _trace: AttentionTrace
) -> AttentionMap:
    """The attention flow through a layer of a run's trace, whose weights may count by value norms. TraceError."""
    return flow_through(_trace, kind, layer)


@computed(4, to_say("Loading the snapshots …"), is_long=True)
def stops(name: str) -> tuple[Stop, ...]:
    """A model at every moment of its training that was kept; shared. Raises CheckpointError."""
    return training_stops(translator(name).checkpoint)


@computed(8, to_say("Reading the sentence at every snapshot …"), is_long=True)
def moments(name: str, sentence: str) -> tuple[Moment, ...]:
    """A sentence at every stop, each reading the released model's translation; frozen. Raises CheckpointError."""
    return timeline(stops(name), sentence, translation(name, sentence)[0].target_ids)


@st.cache_data(ttl=10, show_spinner=False)
def snapshot_steps(name: str) -> tuple[int, ...]:
    """The steps a checkpoint has snapshots of. Raises CheckpointError."""
    return kept_steps(name)


@st.cache_data(ttl=10, show_spinner=False)
def history(name: str) -> tuple[HistoryRow, ...]:
    """The course of a checkpoint's training. Raises HistoryError."""
    return read_history(folder_of(name))


@st.cache_data(ttl=10, show_spinner=False)
def scores(name: str) -> tuple[Score, ...]:
    """The scores kept beside a checkpoint. Raises ScoresError."""
    return read_scores(folder_of(name))


@st.cache_data(ttl=10, show_spinner=False)
def familiarity(name: str) -> Familiarity | None:
    """How probable a checkpoint as it is finds text of its own kind; None where nobody has measured that."""
    try:
        return read_familiarity(folder_of(name), name, translator(name).checkpoint.hash)
    except (CheckpointError, FamiliarityError):  # A model of the command line has no folder.
        return None


@st.cache_data(ttl=10, show_spinner=False)
def card(name: str) -> str:
    """The model card, empty where there is none."""
    try:
        return (folder_of(name) / CARD).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


@st.cache_data(ttl=10, show_spinner=False)
def preset_models(language: str) -> tuple[list[PresetModel], list[str]]:
    """The checkpoints that were trained alike, and what is wrong with those that cannot be read, in a language."""
    found, faults = [], []
    for name in checkpoints():
        try:
            one = read_preset_model(folder_of(name))
        except ValueError as error:
            faults.append(str(error))
        else:
            found += [one] if one else []
    return found, faults


@computed(64)
def mask_trial(name: str, sentence: str, trial: MaskTrial | None, pads: int) -> TrialResult:
    """A text written under another mask; None for the model's own; frozen. Raises RuleError, InputError."""
    return run_trial(live(name), sentence, trial, pads)


@computed(32, to_say("Changing one token after the other …"), is_long=True)
def mask_poke(name: str, sentence: str, trial: MaskTrial | None, pads: int) -> Perturbation:
    """Which outputs move with which input under a mask; frozen."""
    return perturb(live(name), mask_trial(name, sentence, None, pads), trial)


@computed(32, to_say("Running the eight tests …"), is_long=True)
def mask_checks(name: str, sentence: str, kind: Kind, trial: MaskTrial | None, language: str) -> tuple[Outcome, ...]:
    """The behaviour tests on a model that writes, with a mask tried or its own, in words of a language; frozen."""
    with speaking(language):
        return run_checks(live(name), mask_trial(name, sentence, None, 0), kind, trial)


@computed(16, to_say("Computing the same in every way …"), is_long=True)
def backends(name: str, sentence: str, language: str) -> BackendComparison:
    """The ways to the same outputs of a Hugging Face folder's model, in words of a language; frozen.

    Raises InputError.
    """
    with speaking(language):
        return compare_live(live(name), sentence)
