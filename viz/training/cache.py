"""What the page Training reads and computes once for all visitors."""

from __future__ import annotations

import streamlit as st

from attenscope.checkpoint.card import PresetModel, read_preset_model
from attenscope.checkpoint.load import find_checkpoint_folder
from attenscope.checkpoint.measurements import CARD_FILE, HistoryRow, Score, read_history, read_scores
from attenscope.checkpoint.snapshots import list_snapshot_steps as list_steps_in_folder
from attenscope.experiments.lens import SnapshotRun, TrainingSnapshot, load_training_snapshots, run_snapshots
from attenscope.language import to_say
from attenscope.viz.ui import cache
from attenscope.viz.ui.cache import queue_and_cache


@queue_and_cache(4, to_say("Loading the snapshots …"), is_long=True)
def load_snapshots(name: str) -> tuple[TrainingSnapshot, ...]:
    """A model at every saved snapshot of its training; shared. Raises CheckpointError."""
    return load_training_snapshots(cache.load_translator(name).checkpoint)


@queue_and_cache(8, to_say("Reading the sentence at every snapshot …"), is_long=True)
def compute_snapshot_runs(name: str, sentence: str) -> tuple[SnapshotRun, ...]:
    """A sentence at every snapshot, each reading the released model's translation; frozen. Raises CheckpointError."""
    return run_snapshots(load_snapshots(name), sentence, cache.compute_translation(name, sentence).target_ids)


@st.cache_data(ttl=10, show_spinner=False)
def list_snapshot_steps(name: str) -> tuple[int, ...]:
    """The steps a checkpoint has snapshots of. Raises CheckpointError."""
    return list_steps_in_folder(name)


@st.cache_data(ttl=10, show_spinner=False)
def load_training_history(name: str) -> tuple[HistoryRow, ...]:
    """The course of a checkpoint's training. Raises HistoryError."""
    return read_history(find_checkpoint_folder(name))


@st.cache_data(ttl=10, show_spinner=False)
def load_bleu_scores(name: str) -> tuple[Score, ...]:
    """The scores kept beside a checkpoint. Raises ScoresError."""
    return read_scores(find_checkpoint_folder(name))


@st.cache_data(ttl=10, show_spinner=False)
def load_model_card(name: str) -> str:
    """The model card, empty where there is none."""
    try:
        return (find_checkpoint_folder(name) / CARD_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


@st.cache_data(ttl=10, show_spinner=False)
def load_comparable_checkpoints(language: str) -> tuple[list[PresetModel], list[str]]:
    """The checkpoints that were trained alike, and the errors of those that cannot be read, in a language."""
    found, faults = [], []
    for name in cache.list_checkpoint_names():
        try:
            one = read_preset_model(find_checkpoint_folder(name))
        except ValueError as error:
            faults.append(str(error))
        else:
            found += [one] if one else []
    return found, faults
