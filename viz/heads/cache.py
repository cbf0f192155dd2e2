"""Cached atlases and measurements of the page Heads, and its controls for choosing an atlas and a head."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.analysis.heads import AlignmentReading
from attenscope.atlas import query
from attenscope.atlas.files import ATLAS_FOLDER, MANIFEST_FILE, AtlasError, check_atlas_model, read_manifest
from attenscope.atlas.heads_over_training import TIMELINE_FILE, Timeline, read_timeline
from attenscope.atlas.projection import Projection, ProjectionSpace, project_tokens
from attenscope.atlas.pruning import (
    PRUNING_FILE,
    Pruning,
    check_pruning_matches_atlas,
    read_pruning,
    translate_without_heads,
)
from attenscope.atlas.query import (
    Atlas,
    HeadRow,
    SearchResult,
    find_aligned_rows,
    find_most_ablation_sensitive_sentences,
    find_repetition_rows,
    load_attention_rows,
    open_atlas,
    parse_question,
    released_atlas_folder,
    sample_example_links,
    sample_rows_by_decile,
    search_atlas,
)
from attenscope.atlas.teacher_forced_batches import Place
from attenscope.checkpoint.load import find_checkpoint_folder
from attenscope.language import say, to_say
from attenscope.runnable_model import RunnableModel
from attenscope.trace import Head
from attenscope.user_model import read_option
from attenscope.viz.heads import texts
from attenscope.viz.ui import cache, controls
from attenscope.viz.ui.cache import queue_and_cache
from attenscope.viz.ui.captions import draw_caption, escape_message

# Cached results, shared by all visitors: open atlases, and answers about them.


ATLAS_OPTION = "--atlas"


def find_atlas_folder(name: str, model_hash: str) -> Path:
    """The atlas of a model: that of the command line if it is of this model, else the one beside the weights."""
    own = cache.load_runnable_model(name).folder
    beside = released_atlas_folder(name) if own is None else own / ATLAS_FOLDER
    given = read_option(sys.argv[1:], ATLAS_OPTION)
    if given is not None:
        try:
            check_atlas_model(read_manifest(Path(given)), name, model_hash)
        except AtlasError:
            if not (beside / MANIFEST_FILE).is_file():
                raise
        else:
            return Path(given)
    if own is not None and not (beside / MANIFEST_FILE).is_file():
        raise AtlasError(
            say(
                "There is no atlas in {atlas}: make one with `python -m model atlas --model hf:{folder} --source FILE "
                "--output {atlas}`, or name one of this model by --atlas.",
                atlas=beside,
                folder=own,
            )
        )
    return beside


def load_atlas(name: str, model_hash: str) -> Atlas:
    """The atlas of a model; shared. Raises AtlasError."""
    place = find_atlas_folder(name, model_hash)
    return _open_cached_atlas(str(place.resolve()), name, model_hash, _modification_time(place / MANIFEST_FILE))


@st.cache_resource(max_entries=16, show_spinner=False)
def _open_cached_atlas(place: str, name: str, model_hash: str, written: int) -> Atlas:
    """Cached also by `written`, the time of the manifest, which changes when the atlas is built anew."""
    return open_atlas(Path(place), name, model_hash)


def list_models_with_atlas() -> list[str]:
    """The checkpoints that have an atlas beside their weights."""
    return [name for name in cache.list_checkpoint_names() if (released_atlas_folder(name) / MANIFEST_FILE).is_file()]


def make_atlas_identity(atlas: Atlas) -> str:
    """Return a text that names this atlas alone, also apart from an earlier one in the same folder."""
    return f"{atlas.folder} {atlas.manifest}"


@queue_and_cache(128, to_say("Searching …"))
def search_atlas_by_question(
    identity: str, asked: str, _atlas: Atlas
) -> tuple[SearchResult, list[HeadRow], pd.DataFrame]:
    """Return counts by head, example rows, and the links that these rows show. Raises QuestionError."""
    question = parse_question(asked)
    links = sample_example_links(_atlas, question)
    places = [
        ((kind, int(layer), int(head)), int(sentence), int(query))
        for kind, layer, head, sentence, query in zip(
            links["map"], links["layer"], links["head"], links["sentence"], links["query"], strict=True
        )
    ]
    return search_atlas(_atlas, question), load_attention_rows(_atlas, places) if places else [], links


@queue_and_cache(128)
def load_head_example_rows(identity: str, head: Head, _atlas: Atlas) -> dict[str, list[HeadRow]]:
    """Rows of a head from three tenths of its weights. Raises AtlasError."""
    return sample_rows_by_decile(_atlas, head)


@queue_and_cache(128)
def load_repetition_rows(identity: str, head: Head, place: Place, count: int, _atlas: Atlas) -> list[HeadRow]:
    """Rows of the corpus in which a head looks at a place of repetition. Raises AtlasError."""
    return find_repetition_rows(_atlas, head, place, count)


@queue_and_cache(128)
def load_aligned_rows(identity: str, head: Head, reading: AlignmentReading, count: int, _atlas: Atlas) -> list[HeadRow]:
    """Rows of the corpus in which a head finds the match of a word. Raises AtlasError."""
    return find_aligned_rows(_atlas, head, reading, count)


@queue_and_cache(128)
def load_tag_pairs(identity: str, head: Head, _atlas: Atlas) -> pd.DataFrame:
    """The weight of a head between parts of speech. Raises AtlasError."""
    return query.load_tag_pairs(_atlas, head)


@queue_and_cache(16)
def load_tags(identity: str, _atlas: Atlas) -> frozenset[str]:
    """The parts of speech that any token of the corpus has. Raises AtlasError."""
    return query.load_tags(_atlas)


@queue_and_cache(128)
def load_costliest_sentences(identity: str, head: Head, _atlas: Atlas) -> pd.DataFrame:
    """The sentences that switching a head off costs most. Raises AtlasError."""
    return find_most_ablation_sensitive_sentences(_atlas, head)


@queue_and_cache(32, to_say("Reading the corpus …"))
def compute_token_projection(
    identity: str, name: str, model_hash: str, space: ProjectionSpace, head: Head, asked: str, _atlas: Atlas
) -> Projection:
    """Tokens of the corpus in one plane, those of a word among them. Raises AtlasError."""
    return project_tokens(cache.load_runnable_model(name), _atlas, space, head, asked)


def load_pruning_measurement(name: str, model_hash: str) -> Pruning:
    """Return how good a model is as its heads are taken away; shared. Raises PruningError, also for other costs."""
    found = _read_cached_pruning(
        str(find_checkpoint_folder(name)),
        name,
        model_hash,
        _modification_time(find_checkpoint_folder(name) / PRUNING_FILE),
    )
    beside = released_atlas_folder(name)
    if (beside / MANIFEST_FILE).is_file():
        check_pruning_matches_atlas(
            found,
            _open_cached_atlas(str(beside.resolve()), name, model_hash, _modification_time(beside / MANIFEST_FILE)),
        )
    return found


@st.cache_resource(max_entries=16, show_spinner=False)
def _read_cached_pruning(place: str, name: str, model_hash: str, written: int) -> Pruning:
    return read_pruning(Path(place), name, model_hash)


@queue_and_cache(128, to_say("Translating with fewer heads …"))
def compute_pruned_translations(name: str, model_hash: str, sentence: str, found: Pruning) -> tuple[str, ...]:
    """A sentence translated with ever fewer heads, a text for each point of the measurement. Raises InputError."""
    removed = [found.removed_heads(at) for at in range(len(found.left))]
    return tuple(one[0] for one in translate_without_heads(cache.load_translator(name), [sentence], removed))


def load_head_measure_timeline(name: str, model_hash: str) -> Timeline:
    """The measures of every head at each snapshot of a training; shared. Raises TimelineError."""
    return _read_cached_timeline(
        str(find_checkpoint_folder(name)),
        name,
        model_hash,
        _modification_time(find_checkpoint_folder(name) / TIMELINE_FILE),
    )


def has_head_measure_timeline(model: RunnableModel) -> bool:
    """Whether a model has kept measures over its training."""
    return model.can("kept measures") and (find_checkpoint_folder(model.name) / TIMELINE_FILE).is_file()


def list_models_with_head_measure_timeline() -> list[str]:
    """The checkpoints whose measures over their training are kept."""
    return [name for name in cache.list_checkpoint_names() if (find_checkpoint_folder(name) / TIMELINE_FILE).is_file()]


@st.cache_resource(max_entries=16, show_spinner=False)
def _read_cached_timeline(place: str, name: str, model_hash: str, written: int) -> Timeline:
    return read_timeline(Path(place), name, model_hash)


def _modification_time(path: Path) -> int:
    """Return when a file was written, 0 where there is none; a cache key that changes with the file."""
    return path.stat().st_mtime_ns if path.is_file() else 0


# Controls: the atlas that is shown, or why there is none, and the chosen head.


HEADS_STYLE = Path(__file__).parent / "heads.css"


def load_atlas_or_explain(model: RunnableModel) -> Atlas | None:
    """Return the atlas of the model and draw what it was made of; None, with the reason drawn, where there is none."""
    try:
        found = load_atlas(model.name, model.weights_hash)
    except AtlasError as error:
        st.info(escape_message(str(error)))
        return None
    draw_caption(texts.describe_corpus(found))
    return found


def draw_head_selector(atlas: Atlas, bar: DeltaGenerator) -> Head:
    """Draw the choice of a head and return it; the first of its map where the model has none as the address says."""
    with bar:
        return controls.draw_attention_head_selector(atlas.sizes)
