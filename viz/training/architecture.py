"""Every architectural choice of the model, beside those of the published architectures."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from model.language.say import listed, number, say, say_many, sentences, to_say
from model.network.config import TransformerConfig
from model.network.presets import ORIGINAL, PRESETS, SOURCES, preset

from ..export.parts import Table, Words
from ..export.save import SavedView, save
from ..ui.captions import caption
from ..ui.table import Cell, table

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from model.translate import Translator

GROUPS = {
    to_say("sizes"): (
        *("vocab_size", "target_vocab_size", "d_model", "heads", "encoder_layers", "decoder_layers", "feed_forward"),
        "max_length",
    ),
    to_say("normalisation"): ("norm_order", "final_norm", "norm_form", "norm_eps"),
    to_say("attention and feed-forward"): ("scale_scores", "qkv_bias", "output_bias", "feed_forward_bias"),
    to_say("embeddings and positions"): (
        *("positions", "scale_embedding", "shared_embedding", "tied_generator", "generator_bias"),
    ),
    to_say("training"): ("dropout", "dropout_places", "init", "equal_layers"),
}
SIZES = (*GROUPS["sizes"], "dropout")
"""What any architecture may choose freely; the rest is what makes it the one it is."""


def show(model: Translator, bar: DeltaGenerator) -> None:
    presets = {name: preset(name) for name in PRESETS}
    heads, cells = [say("field"), model.name, *presets], rows(model.config, presets)
    title = say("Architecture of {model}", model=model.name)
    filled_in = say("Filled in where a preset differs from {model}; · where it is the same.", model=model.name)
    said = (sentences(filled_in, built_from(model.config)), say(ORIGINAL))
    table(heads, cells, title)
    for line in said:
        caption(line)
    parts = (Table(heads, cells, title), *map(Words, said))
    facts = {"model": model.name, "hash": model.checkpoint.hash}
    with bar, st.container(key="saving", width="content"):
        file = f"architecture-{model.name}"
        save(SavedView(file, lambda _: parts, lambda: numbers(model.config, presets), title, facts))


def built_from(config: TransformerConfig) -> str:
    """The preset that a model was built from, and the choices that it does not share with it."""
    if config.preset not in PRESETS:
        return ""
    differ = [field for field in config.differences(preset(config.preset)) if field not in SIZES]
    named = {"preset": config.preset, "source": say(SOURCES[config.preset])}
    if not differ:
        return say("It was built from the preset {preset} ({source}).", **named)
    return say("It was built from the preset {preset} ({source}), but for {fields}.", fields=listed(differ), **named)


def rows(config: TransformerConfig, presets: dict[str, TransformerConfig]) -> list[list[Cell]]:
    """A row a field, in groups, and how many fields differ at the end."""
    differ = {name: config.differences(other) for name, other in presets.items()}
    found: list[list[Cell]] = []
    for group, fields in GROUPS.items():
        found.append([(say(group), "group"), *[("", "group")] * (1 + len(presets))])
        for field in fields:
            cells: list[Cell] = [
                value_text(changes[field][1]) if field in changes else ("·", "same") for changes in differ.values()
            ]
            found.append([field, (value_text(getattr(config, field)), "own"), *cells])
    counts: list[Cell] = [(_count(one), "same") for one in differ.values()]
    return [*found, [(say("differs in"), "group"), ("", "group"), *counts]]


def numbers(config: TransformerConfig, presets: dict[str, TransformerConfig]) -> pd.DataFrame:
    """All values in full, a field a row."""
    columns = {"this model": config, **presets}
    fields = [field.name for field in dataclasses.fields(TransformerConfig)]
    made = {name: [value_text(getattr(one, field)) for field in fields] for name, one in columns.items()}
    return pd.DataFrame(made, pd.Index(fields, name="field"))


def value_text(value: Any) -> str:
    if isinstance(value, bool):
        return say("yes") if value else say("no")
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, float):
        return number(value, "g")
    return number(value, ",") if isinstance(value, int) else str(value)


def _count(differ: dict[str, Any]) -> str:
    sizes = sum(field in SIZES for field in differ)
    choices = say_many("{count} choice", "{count} choices", len(differ) - sizes)
    return listed([choices, say_many("{count} size", "{count} sizes", sizes)])
