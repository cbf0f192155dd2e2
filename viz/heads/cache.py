"""What the page Heads computes once for all visitors: atlases that are open, and answers about them."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import streamlit as st

from model.atlas.folder import ATLAS, MANIFEST, AtlasError, check_model, read_manifest
from model.checkpoint.files import folder_of
from model.heads.atlas import Atlas, open_atlas, released_atlas
from model.heads.projection import Projection, Space, project
from model.heads.pruning import check_order, translations
from model.heads.pruning_curves import FILE as PRUNING
from model.heads.pruning_curves import Pruning, read_pruning
from model.heads.question import read_question
from model.heads.rows import ShownRow, costliest, rows_of, shown_rows, tag_pairs
from model.heads.search import Found, examples, search
from model.heads.timeline_table import FILE as TIMELINE
from model.heads.timeline_table import Timeline, read_timeline
from model.language.say import say, to_say
from model.trace import Head
from model.user_model import option
from model.word_alignment.rates import FILE as ALIGNMENT
from model.word_alignment.rates import Rates, read_rates

from ..computed import computed
from ..ui import cache as shared

OPTION = "--atlas"


def folder(name: str, model_hash: str) -> Path:
    """The atlas of a model: that of the command line if it is of this model, else the one beside the weights."""
    own = shared.live(name).folder
    beside = released_atlas(name) if own is None else own / ATLAS
    given = option(sys.argv[1:], OPTION)
    if given is not None:
        try:
            check_model(read_manifest(Path(given)), name, model_hash)
        except AtlasError:
            if not (beside / MANIFEST).is_file():
                raise
        else:
            return Path(given)
    if own is not None and not (beside / MANIFEST).is_file():
        raise AtlasError(
            say(
                "There is no atlas in {atlas}: make one with `python -m model atlas --model hf:{folder} --source FILE "
                "--output {atlas}`, or name one of this model by --atlas.",
                atlas=beside,
                folder=own,
            )
        )
    return beside


def atlas(name: str, model_hash: str) -> Atlas:
    """The atlas of a model; shared. Raises AtlasError."""
    place = folder(name, model_hash)
    return _opened(str(place.resolve()), name, model_hash, _written(place / MANIFEST))


@st.cache_resource(max_entries=16, show_spinner=False)
def _opened(place: str, name: str, model_hash: str, written: int) -> Atlas:
    """`written`, the time of the manifest, tells an atlas that was built anew."""
    return open_atlas(Path(place), name, model_hash)


def with_atlas() -> list[str]:
    """The checkpoints that have an atlas beside their weights."""
    return [name for name in shared.checkpoints() if (released_atlas(name) / MANIFEST).is_file()]


def identity(atlas: Atlas) -> str:
    """What tells an atlas from every other one, and from what stood in its folder before."""
    return f"{atlas.folder} {atlas.manifest}"


@computed(128, to_say("Searching …"))
def answer(identity: str, asked: str, _atlas: Atlas) -> tuple[Found, list[ShownRow], pd.DataFrame]:
    """What a question gives: counts by head, rows of examples, and the links that these are. Raises QuestionError."""
    question = read_question(asked)
    links = examples(_atlas, question)
    places = [
        ((kind, int(layer), int(head)), int(sentence), int(query))
        for kind, layer, head, sentence, query in zip(
            links["map"], links["layer"], links["head"], links["sentence"], links["query"], strict=True
        )
    ]
    return search(_atlas, question), shown_rows(_atlas, places) if places else [], links


@computed(128)
def rows(identity: str, head: Head, _atlas: Atlas) -> dict[str, list[ShownRow]]:
    """Rows of a head from three tenths of its weights. Raises AtlasError."""
    return rows_of(_atlas, head)


@computed(128)
def pairs(identity: str, head: Head, _atlas: Atlas) -> pd.DataFrame:
    """The weight of a head between parts of speech. Raises AtlasError."""
    return tag_pairs(_atlas, head)


@computed(128)
def costs(identity: str, head: Head, _atlas: Atlas) -> pd.DataFrame:
    """The sentences that switching a head off costs most. Raises AtlasError."""
    return costliest(_atlas, head)


@computed(32, to_say("Reading the corpus …"))
def projection(
    identity: str, name: str, model_hash: str, space: Space, head: Head, asked: str, _atlas: Atlas
) -> Projection:
    """Tokens of the corpus in one plane, those of a word among them. Raises AtlasError."""
    return project(shared.live(name), _atlas, space, head, asked)


def alignment(name: str, model_hash: str) -> Rates:
    """The alignment error rates of a model; shared. Raises AlignmentError."""
    return _rates(str(folder_of(name)), name, model_hash, _written(folder_of(name) / ALIGNMENT))


@st.cache_resource(max_entries=16, show_spinner=False)
def _rates(place: str, name: str, model_hash: str, written: int) -> Rates:
    return read_rates(Path(place), name, model_hash)


def pruning(name: str, model_hash: str) -> Pruning:
    """What is left of a model as its heads are taken away; shared. Raises PruningError, also for other costs."""
    found = _pruning(str(folder_of(name)), name, model_hash, _written(folder_of(name) / PRUNING))
    beside = released_atlas(name)
    if (beside / MANIFEST).is_file():
        check_order(found, _opened(str(beside.resolve()), name, model_hash, _written(beside / MANIFEST)))
    return found


@st.cache_resource(max_entries=16, show_spinner=False)
def _pruning(place: str, name: str, model_hash: str, written: int) -> Pruning:
    return read_pruning(Path(place), name, model_hash)


@computed(128, to_say("Translating with fewer heads …"))
def pruned_translations(name: str, model_hash: str, sentence: str, found: Pruning) -> tuple[str, ...]:
    """A sentence translated with ever fewer heads, a text for each point of the measurement. Raises InputError."""
    removed = [found.removed(at) for at in range(len(found.left))]
    return tuple(one[0] for one in translations(shared.translator(name), [sentence], removed))


def timeline(name: str, model_hash: str) -> Timeline:
    """The measures of every head at each snapshot of a training; shared. Raises TimelineError."""
    return _timeline(str(folder_of(name)), name, model_hash, _written(folder_of(name) / TIMELINE))


@st.cache_resource(max_entries=16, show_spinner=False)
def _timeline(place: str, name: str, model_hash: str, written: int) -> Timeline:
    return read_timeline(Path(place), name, model_hash)


def _written(path: Path) -> int:
    """When a file was written, which tells one that was measured anew; 0 where there is none."""
    return path.stat().st_mtime_ns if path.is_file() else 0
