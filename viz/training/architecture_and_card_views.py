"""Views of a trained model: its architecture, parameters, comparison with presets, and model card."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.checkpoint.card import (
    PresetModel,
    StateTensor,
    count_parameters_by_part,
    find_differing_fields,
    list_state_tensors,
)
from attenscope.language import current_language, format_number, join_items, join_sentences, say, say_many, to_say
from attenscope.network.config import (
    ORIGINAL_PRESET_NOTE,
    PRESET_SOURCES,
    PRESETS,
    TransformerConfig,
    make_preset_config,
)
from attenscope.translate import Translator
from attenscope.viz.export.parts import Chart, Columns, Part, Table, Words
from attenscope.viz.export.share_menu import SavedView, register_savable_view, table_csv
from attenscope.viz.figures.architecture import plot_architecture
from attenscope.viz.figures.curves import plot_training_curves
from attenscope.viz.figures.figure_style import Palette
from attenscope.viz.training import cache, texts
from attenscope.viz.ui import style
from attenscope.viz.ui.captions import draw_caption, escape_markdown
from attenscope.viz.ui.style import TableCell, draw_table
from attenscope.viz.web.charts import draw_chart, draw_plotly_figure
from attenscope.viz.web.page_components import is_on_stage

# Architecture: every choice of the model, beside those of the published architectures.


FIELD_GROUPS = {
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
SIZE_FIELDS = (*FIELD_GROUPS["sizes"], "dropout")
"""Fields that any architecture may choose freely; the others define it."""


def draw_architecture_view(model: Translator) -> None:
    presets = {name: make_preset_config(name) for name in PRESETS}
    heads, cells = [say("field"), model.name, *presets], build_architecture_rows(model.config, presets)
    title = say("Architecture of {model}", model=model.name)
    filled_in = say("Filled in where a preset differs from {model}; · where it is the same.", model=model.name)
    said = (join_sentences(filled_in, describe_preset(model.config)), say(ORIGINAL_PRESET_NOTE))
    drawn = describe_architecture(model.config)
    with st.container(key="drawing"):
        draw_caption(drawn)
        draw_plotly_figure(plot_architecture(model.config, style.get_palette()), drawn, key="drawing-of-sizes")
    st.subheader(say("Beside the published architectures"), anchor=False)
    draw_table(heads, cells, title)
    for line in said:
        draw_caption(line)

    def build_parts(of: Palette) -> list[Part]:
        figure = Chart(plot_architecture(model.config, of), drawn)
        return [Words(drawn), figure, Table(heads, cells, title), *map(Words, said)]

    facts = {"model": model.name, "hash": model.checkpoint.hash}
    file = f"architecture-{model.name}"
    register_savable_view(
        SavedView(file, build_parts, lambda: tabulate_architecture(model.config, presets), title, facts)
    )


def describe_architecture(config: TransformerConfig) -> str:
    """What the model is, in a sentence: its stacks and how often it attends."""
    decoder = config.decoder_layers * config.heads
    return say(
        "{encoder} layers read the sentence, {decoder} layers write the translation piece by piece. In all, {heads} "
        "heads look at words: {own} in the encoder, {masked} at what is written so far, {cross} from there at the "
        "sentence.",
        encoder=config.encoder_layers,
        decoder=config.decoder_layers,
        heads=config.encoder_layers * config.heads + 2 * decoder,
        own=config.encoder_layers * config.heads,
        masked=decoder,
        cross=decoder,
    )


def describe_preset(config: TransformerConfig) -> str:
    """The preset that a model was built from, and the choices that it does not share with it."""
    if config.preset not in PRESETS:
        return ""
    differ = [field for field in config.differences(make_preset_config(config.preset)) if field not in SIZE_FIELDS]
    named = {"preset": config.preset, "source": say(PRESET_SOURCES[config.preset])}
    if not differ:
        return say("It was built from the preset {preset} ({source}).", **named)
    return say(
        "It was built from the preset {preset} ({source}), but for {fields}.", fields=join_items(differ), **named
    )


def build_architecture_rows(config: TransformerConfig, presets: dict[str, TransformerConfig]) -> list[list[TableCell]]:
    """A row a field, in groups, and how many fields differ at the end."""
    differ = {name: config.differences(other) for name, other in presets.items()}
    found: list[list[TableCell]] = []
    for group, fields in FIELD_GROUPS.items():
        found.append([(say(group), "group"), *[("", "group")] * (1 + len(presets))])
        for field in fields:
            cells: list[TableCell] = [
                format_config_value(changes[field][1]) if field in changes else ("·", "same")
                for changes in differ.values()
            ]
            found.append([field, (format_config_value(getattr(config, field)), "own"), *cells])
    counts: list[TableCell] = [(_format_difference_count(one), "same") for one in differ.values()]
    return [*found, [(say("differs in"), "group"), ("", "group"), *counts]]


def tabulate_architecture(config: TransformerConfig, presets: dict[str, TransformerConfig]) -> pd.DataFrame:
    """All values in full, a field a row."""
    columns = {"this model": config, **presets}
    fields = [field.name for field in dataclasses.fields(TransformerConfig)]
    made = {name: [format_config_value(getattr(one, field)) for field in fields] for name, one in columns.items()}
    return pd.DataFrame(made, pd.Index(fields, name="field"))


def format_config_value(value: Any) -> str:
    if isinstance(value, bool):
        return say("yes") if value else say("no")
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, float):
        return format_number(value, "g")
    return format_number(value, ",") if isinstance(value, int) else str(value)


def _format_difference_count(differ: dict[str, Any]) -> str:
    sizes = sum(field in SIZE_FIELDS for field in differ)
    choices = say_many("{count} choice", "{count} choices", len(differ) - sizes)
    return join_items([choices, say_many("{count} size", "{count} sizes", sizes)])


# Parameters: how many the model has, by part and by tensor.


PARAMETER_TABLE_SHARES = (0.34, 0.66)
"""Widths of the table of parts and of that of all tensors."""


def draw_parameters_view(model: Translator) -> None:
    counts, tensors = count_parameters_by_part(model.model), list_state_tensors(model.model)
    total = sum(counts.values())
    cells: list[list[TableCell]] = [
        [say(part), format_number(count, ","), format_number(count / total, ".1%")] for part, count in counts.items()
    ]
    cells.append([say("all"), (format_number(total, ","), "own"), ""])
    by_part = Table([say("part"), say("parameters"), say("share")], cells, say("Parameters by part"))
    rows: list[list[TableCell]] = [
        [one.name, "\u00a0×\u00a0".join(map(str, one.shape)), _build_parameter_count_cell(one)] for one in tensors
    ]
    by_tensor = Table([say("state dict"), say("shape"), say("parameters")], rows, say("State dict"))
    said = describe_shared_tensors(tensors)
    left, right = st.columns(PARAMETER_TABLE_SHARES, gap="large")
    with left:
        draw_table(by_part.headings, by_part.rows, by_part.name)
        draw_caption(said)
    with right, st.container(key="tensors", height="content" if is_on_stage() else 560, border=False):
        draw_table(by_tensor.headings, by_tensor.rows, by_tensor.name)
    register_savable_view(
        _build_saved_view(
            model, [Columns(([by_part, Words(said)], [by_tensor]), PARAMETER_TABLE_SHARES)], counts, tensors
        )
    )


def _build_saved_view(
    model: Translator, parts: list[Part], counts: Mapping[str, int], tensors: tuple[StateTensor, ...]
) -> SavedView:
    """Both tables; the state dict as numbers, and the parts as a file beside it."""
    name, title = f"state-dict-{model.name}", say("Parameters of {model}", model=model.name)
    of_parts = pd.DataFrame({"part": list(counts), "parameters": list(counts.values())})
    files = {f"parts-{model.name}.csv": (say("Parts as CSV"), lambda: table_csv(of_parts, index=False).encode())}
    facts = {"model": model.name, "hash": model.checkpoint.hash}
    return SavedView(name, lambda _: parts, lambda: tabulate_tensors(tensors), title, facts, files)


def describe_shared_tensors(tensors: tuple[StateTensor, ...]) -> str:
    shared = [one for one in tensors if one.shared_with]
    if not shared:
        return say("No tensor is shared: every part has its own.")
    return say(
        "Shared tensors count once, where they stand first: {names} are the same numbers as {first}.",
        names=join_items(one.name for one in shared),
        first=shared[0].shared_with,
    )


def tabulate_tensors(tensors: tuple[StateTensor, ...]) -> pd.DataFrame:
    """Every tensor with its shape, a row each."""
    columns = {"shape": ["x".join(map(str, one.shape)) for one in tensors]}
    counts = {"parameters": [one.parameters for one in tensors], "shared with": [one.shared_with for one in tensors]}
    return pd.DataFrame(columns | counts, pd.Index([one.name for one in tensors], name="name"))


def _build_parameter_count_cell(one: StateTensor) -> tuple[str, str]:
    return (f"= {one.shared_with}", "same") if one.shared_with else (format_number(one.parameters, ","), "")


# Presets trained on the same data, in one table: what differs between them, and their scores.


def draw_preset_comparison(bar: DeltaGenerator) -> None:
    with bar:
        log_steps = texts.draw_log_steps_toggle()
    found, faults = cache.load_comparable_checkpoints(current_language())
    for fault in faults:
        st.error(escape_markdown(fault))
    if not found:
        st.info(
            say(
                "No checkpoint of a preset is here yet. Train one with `python -m model train --config "
                "checkpoints/preset-original/recipe.json --data FOLDER`, then reload this page."
            )
        )
        return
    title, (headings, rows) = say("Architectures trained alike"), build_comparison_cells(found)
    draw_table(headings, rows, title)
    said = join_sentences(
        say(
            "Built from the presets, small, and trained on the same data with the same number of steps; only "
            "fields in which they differ are listed. Choose one as the model to see its attention on the other "
            "pages."
        ),
        _describe_presets_without_checkpoint(found),
    )
    draw_caption(said)
    histories = {one.name: one.history for one in found if one.history}
    alone = is_on_stage() or not histories  # There the table has all the room; curves are a view of their own.

    def draw_figure(palette: Palette) -> Chart:
        figure = plot_training_curves(histories, palette, say("Trained alike"), log_steps=log_steps)
        return Chart(figure, say("Loss, BLEU and learning rate of each"))

    if not alone:
        shown = draw_figure(style.get_palette())
        with st.container(key="picture"):
            draw_chart(shown.figure, shown.alt, key="alike", on_cell=lambda _, __: None)

    def build_parts(palette: Palette) -> list[Part]:
        return [Table(headings, rows, title), Words(said), *([] if alone else [draw_figure(palette)])]

    register_savable_view(
        SavedView("trained-alike", build_parts, lambda: tabulate_preset_comparison(headings, rows), title, width=1280)
    )


def tabulate_preset_comparison(headings: Sequence[str], rows: Sequence[Sequence[TableCell]]) -> pd.DataFrame:
    """The table, a fact a row, a model a column."""
    texts = [[cell if isinstance(cell, str) else cell[0] for cell in row] for row in rows]
    names = pd.Index([row[0] for row in texts], name="fact")
    return pd.DataFrame([row[1:] for row in texts], names, list(headings[1:]))


def _describe_presets_without_checkpoint(models: Sequence[PresetModel]) -> str:
    """The presets that nothing was trained from, in a sentence."""
    absent = [name for name in PRESETS if name not in {model.config.preset for model in models}]
    return say("Without a checkpoint here: {presets}.", presets=join_items(absent)) if absent else ""


def build_comparison_cells(found: Sequence[PresetModel]) -> tuple[list[str], list[list[TableCell]]]:
    """A column a model, a row a fact: scores first, then the fields in which they differ."""
    sets = list(dict.fromkeys((score.set, score.beam) for one in found for score in one.released_scores))
    rows: list[list[TableCell]] = [
        [say("parameters"), *[format_number(one.parameters, ",") for one in found]],
        [say("steps"), *[format_number(one.steps, ",") for one in found]],
        [say("last loss"), *[format_number(one.history[-1].loss, ".3f") if one.history else "–" for one in found]],
        [say("last dev BLEU"), *[_format_score(one.dev_bleu) for one in found]],
    ]
    for name, beam in sets:
        bleu = [next((s.bleu for s in one.released_scores if (s.set, s.beam) == (name, beam)), None) for one in found]
        rows.append(
            [say("BLEU, {set}, beam {beam}", set=name, beam=beam), *[(_format_score(value), "own") for value in bleu]]
        )
    fields = find_differing_fields(found)
    if fields:
        rows.append([(say("what differs"), "group"), *[("", "group")] * len(found)])
    rows += [[field, *[format_config_value(getattr(one.config, field)) for one in found]] for field in fields]
    return ["", *[one.name for one in found]], rows


def _format_score(value: float | None) -> str:
    return "–" if value is None else format_number(value, ".1f")


# The model card, as it stands beside the weights.


LONGEST_CARD = 50_000
COMMENT_PATTERN = re.compile(r"<!--.*?-->\n?", re.DOTALL)
IMAGE_PATTERN = re.compile(r"!\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])?")
DIRECTIVE_PATTERN = re.compile(r":(?=[a-z_+-]+(\[|:|/))")


def draw_card_view(model: Translator) -> None:
    text, title = cache.load_model_card(model.name), say("Card of {model}", model=model.name)
    facts: list[list[TableCell]] = [[str(name), str(fact)] for name, fact in model.card.items()]
    missing = say("{model} has no card yet. Its configuration says:", model=model.name)
    with st.container(key="card"):
        if text.strip():
            st.markdown(sanitise_card(text))
        else:
            draw_caption(missing)
            draw_table(["", ""], facts, say("Facts"))
    parts = build_card_parts(remove_card_comments_and_pictures(text), title) or [
        Words(missing),
        Table(["", ""], facts, say("Facts")),
    ]
    register_savable_view(SavedView(f"card-{model.name}", lambda _: parts, None, title, {"model": model.name}))


def remove_card_comments_and_pictures(text: str) -> str:
    """A card's Markdown without comments and pictures, which would be fetched from elsewhere."""
    return IMAGE_PATTERN.sub(r"\1", COMMENT_PATTERN.sub("", text[:LONGEST_CARD]))


def sanitise_card(text: str) -> str:
    """Return a card's Markdown without comments, pictures, formulas or Streamlit directives; HTML is not run."""
    parts = re.split(r"(`[^`\n]*`)", remove_card_comments_and_pictures(text))
    parts[::2] = [DIRECTIVE_PATTERN.sub(r"\\:", part).replace("$", r"\$") for part in parts[::2]]
    return "".join(parts)


# The model card as the parts of a saved view: headings, paragraphs, lists and tables as text.


HEADING_PATTERN = re.compile(r"#{1,6}\s+(?P<text>.*?)\s*#*$")
ITEM_PATTERN = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?P<text>.*)$")
FENCE_PATTERN = re.compile(r"\s*(```|~~~)")
LINK_PATTERN = re.compile(r"\[([^\]]+)\]\([^)\s]*\)")
STRONG_PATTERN = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
CELL_END_PATTERN = re.compile(r"(?<!\\)\|")


def build_card_parts(card: str, name: str) -> list[Part]:
    """The parts of a card whose comments and pictures are gone; `name` is what its tables show."""
    return [
        part
        for kind, lines in _split_card_blocks(card.splitlines())
        for part in _convert_markdown_block(kind, lines, name)
    ]


def _split_card_blocks(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Lines that belong together, with what they are: a heading, an item, code, a table or text."""
    inside = False

    def kind(line: str) -> str:
        nonlocal inside
        if FENCE_PATTERN.match(line):
            inside = not inside
            return "fence"
        if inside:
            return "code"
        if not line.strip():
            return ""
        if line.lstrip().startswith("|"):
            return "table"
        return "heading" if HEADING_PATTERN.match(line) else "item" if ITEM_PATTERN.match(line) else "text"

    for found, group in groupby(lines, kind):
        yield found, list(group)


def _convert_markdown_block(kind: str, lines: list[str], name: str) -> Iterator[Part]:
    if kind == "table":
        headings, *rows = [_split_table_row(line) for line in lines]
        yield Table(headings, [row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)], name)
    elif kind == "text":
        yield Words(_remove_markup(" ".join(map(str.strip, lines))), "picture", "text")
    elif kind == "code":
        yield from (Words(line, "picture", "text") for line in lines)
    elif kind == "heading":
        yield from (
            Words(_remove_markup(HEADING_PATTERN.sub(r"\g<text>", line)), "picture", "heading") for line in lines
        )
    elif kind == "item":
        yield from (
            Words("• " + _remove_markup(ITEM_PATTERN.sub(r"\g<text>", line)), "picture", "text") for line in lines
        )


def _split_table_row(line: str) -> list[str]:
    """The cells of a row of a table, between its outer bars."""
    inner = line.strip().removeprefix("|")
    found = CELL_END_PATTERN.split(inner)
    return [
        _remove_markup(cell.strip().replace("\\|", "|")) for cell in (found[:-1] if not found[-1].strip() else found)
    ]


def _remove_markup(text: str) -> str:
    """Words without the marks of their look; what stands in `code` is left alone."""
    parts = re.split(r"`([^`]*)`", text)
    parts[::2] = [LINK_PATTERN.sub(r"\1", STRONG_PATTERN.sub(r"\2", part)) for part in parts[::2]]
    return "".join(parts)
