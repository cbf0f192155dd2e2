"""The comparison view: a head or run beside another head, sentence or model, and their difference."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial

import pandas as pd
import streamlit as st

from attenscope.analysis.attention_steps import MapDifference, PositionPairs, compare_maps, match_rows_and_columns
from attenscope.checkpoint.load import CheckpointError
from attenscope.language import join_sentences, say, to_say
from attenscope.runnable_model import InputError, LocalError, LocalModel, RunnableModel
from attenscope.text.words import guess_language
from attenscope.trace import AttentionMap, Kind, TraceError, select_head
from attenscope.viz.explore.controls import ALL_HEADS_VIEWS
from attenscope.viz.explore.saving import DrawnView, offer_view_download
from attenscope.viz.explore.texts import WEIGHTS_TEXT, ViewText, draw_map_preprocessing_captions
from attenscope.viz.explore.view_data import RunKey, Scene, TokenDisplay, TraceSource, display_tokens
from attenscope.viz.explore.views import VIEWS
from attenscope.viz.export.parts import Chart, Columns, Part, Words
from attenscope.viz.figures.explore import (
    CHANGE_PANEL,
    ROW_PANEL,
    SECOND_PANEL,
    ComparedMap,
    PinnedCell,
    describe_map_difference,
    locate_clicked_panel_cell,
    plot_comparison,
)
from attenscope.viz.figures.figure_style import Look, shorten_token
from attenscope.viz.ui import cache, controls
from attenscope.viz.ui.addresses.explore import (
    EXPLORE_COMPARE_WITH,
    EXPLORE_COMPARED_VIEW,
    EXPLORE_SECOND_HEAD,
    EXPLORE_SECOND_KIND,
    EXPLORE_SECOND_LAYER,
    EXPLORE_SECOND_MODEL,
    EXPLORE_SECOND_SENTENCE,
    EXPLORE_VIEW,
    SecondSideKind,
    SingleView,
)
from attenscope.viz.ui.addresses.shared import KIND, PinPlace
from attenscope.viz.ui.captions import draw_caption, escape_markdown, escape_message
from attenscope.viz.web.charts import draw_chart
from attenscope.viz.web.page_components import is_on_stage

# What the view says of itself.


COMPARISON_TEXT = ViewText(
    to_say("Two heads, sentences or models side by side; below, what the second has more (indigo) or less (orange)."),
    (
        to_say(
            "The difference is {difference} on the rows and columns that both have, in a scale with zero in its "
            "middle. Nothing is rescaled. Two sentences share the tokens that stand in both in the same order; two "
            "models that cut words into other pieces are compared word by word. How much of a row lies elsewhere "
            "is the total variation distance {variation}, averaged over the rows; where some columns are not "
            "shared, it is at least that much. Click a cell in any of the pictures, and its pair is marked in all "
            "of them."
        ),
        *WEIGHTS_TEXT,
    ),
    {
        "difference": r"$A^{(2)}_{qk} - A^{(1)}_{qk}$",
        "variation": r"$\tfrac12 \sum_k |A^{(2)}_{qk} - A^{(1)}_{qk}|$",
    },
)


def draw_view_explanation() -> None:
    """Draw the longer explanation of the chosen view, and of the comparison if two sides of it are compared."""
    view = EXPLORE_VIEW.get()
    if view == "compare":
        st.markdown(VIEWS[EXPLORE_COMPARED_VIEW.get()].text.details)
        st.markdown(COMPARISON_TEXT.details)
    else:
        st.markdown(VIEWS[view].text.details)


# The heatmap view: both heads, and their difference on the tokens that they share.


@dataclass(frozen=True, eq=False)
class HeadComparison:
    """Two heads, and what they share."""

    scene: Scene
    """The first side; its map is merged into words where the second side splits words into other pieces."""
    tokens: TokenDisplay
    """The second side's map."""
    first: AttentionMap
    """The first head as a map of its own."""
    second: AttentionMap
    """The second head as a map of its own."""
    queries: PositionPairs
    keys: PositionPairs
    difference: MapDifference | None
    """None where the two share no rows or no columns."""

    @property
    def pinned_cells(self) -> tuple[PinnedCell, PinnedCell, PinnedCell]:
        """The pinned pair in the first map, in the second and in the difference."""
        own = self.scene.query, self.scene.key
        pairs = self.queries, self.keys
        return own, map_pin_to_other_side(own, pairs, 1), _map_pin_to_shared_cells(own, pairs)

    def pin(self, row: int, column: int) -> None:
        """Pin what was clicked in any of the panels, as far as the first map has it; for callbacks."""
        panel, row, column = locate_clicked_panel_cell(row, column)
        query: int | None = row
        key: int | None = column
        if panel == SECOND_PANEL:
            query, key = map_pin_to_other_side((row, column), (self.queries, self.keys), 0)
        elif panel == CHANGE_PANEL:
            query, key = self.queries[row][0], self.keys[column][0]
        elif panel == ROW_PANEL:
            query, key = None, self.keys[row][0]
        if (query, key) != (None, None):
            self.scene.pin(query=query, key=key)


def draw_head_comparison(scene: Scene, second: SecondSide) -> DrawnView:
    """Draw both heads, and what the second has more or less where they share tokens."""
    pair = compare_heads(scene, second)
    own, across, among = pair.pinned_cells
    draw = partial(
        plot_comparison,
        ComparedMap(pair.first, second.first_name, own),
        ComparedMap(pair.second, second.name, across),
        pair.difference,
        among,
        rows=scene.rows,
        on_stage=is_on_stage(),
    )
    said = describe_comparison(pair, among)
    text = join_sentences(*said)
    draw_chart(draw(look=scene.look), text, key="compare", on_cell=pair.pin)
    for sentence in said:
        draw_caption(sentence)
    draw_caption(say(COMPARISON_TEXT.line))
    change = pair.difference
    numbers = (lambda: comparison_table(change, scene)) if change else None
    displays = {say("first map"): pair.scene.tokens, say("second map"): pair.tokens}
    return DrawnView(lambda look: [Chart(draw(look=look), text), *map(Words, said)], numbers, displays=displays)


def compare_heads(scene: Scene, second: SecondSide) -> HeadComparison:
    """Both sides with their tokens displayed in the same way, and what they share by the labels of their rows.

    Special tokens are never hidden: how much of a row lies elsewhere is known of whole rows alone.
    """
    merge = scene.display.merge or second.in_words
    if scene.display.hide or scene.display.hide_first or merge != scene.display.merge:
        words = display_tokens(scene.tokens.original, scene.rows, merge=merge, hide=False)
        scene = dataclasses.replace(scene, tokens=words)
    tokens = display_tokens(second.attention, scene.rows, merge=merge, hide=False)
    one = select_head(scene.attention, scene.layer, scene.head)
    two = select_head(tokens.attention, second.layer, second.head)
    try:
        change = compare_maps(one, two, scene.rows)
    except TraceError:
        change = None
    return HeadComparison(scene, tokens, one, two, *match_rows_and_columns(one, two, scene.rows), change)


def describe_comparison(pair: HeadComparison, pinned: PinnedCell) -> list[str]:
    """What the comparison shows, a sentence each."""
    if pair.difference is None:
        return [_nothing_shared_text(pair)]
    said = [describe_map_difference(pair.difference, pinned, pair.scene.rows)]
    if shared := _shared_rows_columns_text(pair):
        said.append(shared)
    if pair.tokens.merged and not pair.scene.display.merge:
        said.append(say("The two models cut words into other pieces, so both are shown in words."))
    if pair.scene.display.hide or pair.scene.display.hide_first:
        said.append(say("Special tokens are shown here, so that rows are whole."))
    return said


def _shared_rows_columns_text(pair: HeadComparison) -> str:
    """On how many rows and columns the difference is taken, where these are not all."""
    rows, first_rows, second_rows = len(pair.queries), len(pair.first.query_tokens), len(pair.second.query_tokens)
    columns, first_columns, second_columns = len(pair.keys), len(pair.first.key_tokens), len(pair.second.key_tokens)
    of_rows = {"rows": rows, "first_rows": first_rows, "second_rows": second_rows}
    of_columns = {"columns": columns, "first_columns": first_columns, "second_columns": second_columns}
    all_rows, all_columns = rows == first_rows == second_rows, columns == first_columns == second_columns
    if all_rows and all_columns:
        return ""
    if all_columns:
        return say(
            "Both share {rows} of {first_rows} and {second_rows} rows; the difference is taken on these.", **of_rows
        )
    if all_rows:
        return say(
            "Both share {columns} of {first_columns} and {second_columns} columns; the difference is taken on these.",
            **of_columns,
        )
    return say(
        "Both share {rows} of {first_rows} and {second_rows} rows and {columns} of {first_columns} and "
        "{second_columns} columns; the difference is taken on these.",
        **of_rows,
        **of_columns,
    )


def comparison_table(change: MapDifference, scene: Scene) -> pd.DataFrame:
    """Every shared pair of tokens that is allowed: its weight in both maps and the difference."""
    rows, columns = change.mask.nonzero()
    first, second = (one.weights[0, 0][rows, columns] for one in (change.first, change.second))
    queries, keys = change.first.rows(scene.rows), change.first.key_tokens
    return pd.DataFrame(
        {
            "query": [queries[row] for row in rows],
            "key": [keys[column] for column in columns],
            "first": first,
            "second": second,
            "difference": second - first,
        }
    ).rename_axis("pair")


def _nothing_shared_text(pair: HeadComparison) -> str:
    if pair.queries:
        return say(
            "Both have the same rows but other columns, so there is no difference; a pinned row is marked twice."
        )
    if pair.keys:
        return say(
            "Both have the same columns but other rows, so there is no difference; a pinned column is marked in both."
        )
    return say("The two share no token, so there is nothing to take the difference of.")


def map_pin_to_other_side(place: PinnedCell, pairs: tuple[PositionPairs, PositionPairs], to: int) -> PinnedCell:
    """Row and column of one side on the other (0 the first, 1 the second); None for what it does not have."""
    row, column = (
        next((pair[to] for pair in axis if pair[1 - to] == at), None) for at, axis in zip(place, pairs, strict=True)
    )
    return row, column


def _map_pin_to_shared_cells(place: PinnedCell, pairs: tuple[PositionPairs, PositionPairs]) -> PinnedCell:
    """Row and column of the first side among what is shared."""
    row, column = (
        next((index for index, pair in enumerate(axis) if pair[0] == at), None)
        for at, axis in zip(place, pairs, strict=True)
    )
    return row, column


# Any view drawn for both sides.


def draw_comparison_view(view: SingleView, scene: Scene) -> None:
    """Draw a view of both sides, with the controls that choose the second, and offer what can be saved."""
    try:
        second = draw_second_side_controls(scene, of_head=view not in ALL_HEADS_VIEWS)
    except (InputError, CheckpointError) as error:
        st.info(escape_message(str(error)))
        return
    if second is None:
        return
    drawn = draw_head_comparison(scene, second) if view == "heatmap" else draw_both_sides(view, scene, second)
    if drawn:
        draw_map_preprocessing_captions(drawn.displays)
        offer_view_download(drawn, scene, "compare")


def draw_both_sides(view: SingleView, scene: Scene, second: SecondSide) -> DrawnView | None:
    """Draw a view of each side, with its controls once and pins marked on the tokens that both sides have.

    The sides stand one above the other; on a stage, which is wide and low, views of one head stand side by side.
    """
    names = second.first_name, second.name
    beside = is_on_stage() and view not in ALL_HEADS_VIEWS
    places = st.columns(2, gap="large") if beside else (st.container(), st.container())
    drawn = []
    for side, name, place in zip((scene, SecondScene.from_scene(scene, second)), names, places, strict=True):
        with place, st.container(key=side.element_key("side")):
            st.markdown(f"**{escape_markdown(name)}**")
            drawn.append(VIEWS[view].draw(side))
    first, other = drawn
    if first is None or other is None:
        return None

    def build_parts(look: Look) -> list[Part]:
        titled = zip(names, (first, other), strict=True)
        columns = tuple([Words(name, "picture", "heading"), *one.parts(look)] for name, one in titled)
        return [Columns(columns, (0.5, 0.5))] if beside else [part for column in columns for part in column]

    displays = {say("first {map}", map=name): one for name, one in first.displays.items()}
    displays |= {say("second {map}", map=name): one for name, one in other.displays.items()}
    return DrawnView(build_parts, first.numbers, displays=displays)


@dataclass(frozen=True, eq=False)
class SecondScene(Scene):
    """The second side. Its pins are those of the first, on the tokens that both have."""

    first: Scene = field(kw_only=True)

    @classmethod
    def from_scene(cls, scene: Scene, second: SecondSide) -> SecondScene:
        merge = scene.display.merge or second.in_words
        tokens = dataclasses.replace(scene.display, merge=merge).make_token_display(second.attention)
        place = second.source, tokens, second.layer, second.head, scene.display
        return cls(*place, side="second", first=scene)

    @cached_property
    def shared_positions(self) -> tuple[PositionPairs, PositionPairs]:
        """Rows and columns of the captured maps that both have."""
        first, second = (select_head(one.tokens.original, 0, 0) for one in (self.first, self))
        return match_rows_and_columns(first, second, self.rows)

    @property
    def captured_query(self) -> int | None:
        return map_pin_to_other_side((self.first.captured_query, None), self.shared_positions, 1)[0]

    @property
    def captured_key(self) -> int | None:
        return map_pin_to_other_side((None, self.first.captured_key), self.shared_positions, 1)[1]

    def position(self, length: int) -> int | None:
        found = None if self.kind == "encoder" else self.captured_query
        step = None if found is None else found - self.source.first_row
        return step if step is not None and 0 <= step < length else None

    def pin(self, *, query: int | None = None, key: int | None = None) -> None:
        row = None if query is None else self.tokens.queries[query][0]
        column = None if key is None else self.tokens.keys[key][0]
        tokens, (row, column) = self.first.tokens, map_pin_to_other_side((row, column), self.shared_positions, 0)
        self.first.pin(query=tokens.row(row), key=tokens.column(column))

    def pin_captured(self, query: int) -> None:
        row, _ = map_pin_to_other_side((query, None), self.shared_positions, 0)
        if row is not None:
            self.first.pin_captured(row)

    def pin_places(self, cell: Mapping[PinPlace, int]) -> None:
        """Pin nothing: a position of another run means something else in the first; for callbacks."""


# The controls that choose the second side, all of them kept in the address.


SECOND_SIDE_NAMES: dict[SecondSideKind, str] = {
    "head": to_say("another head"),
    "sentence": to_say("another sentence"),
    "model": to_say("another model"),
    "original": to_say("the model's own"),
}
MAX_TITLE_LENGTH = 38
"""Letters that fit into the title of a map."""


@dataclass(frozen=True, eq=False)
class SecondSide:
    """The second side of a comparison, and the titles of both sides."""

    source: TraceSource
    kind: Kind
    layer: int
    """From 0, as is the head."""
    head: int
    first_name: str
    name: str
    in_words: bool = False
    """The two sides cut the same text into different pieces, so only words can be compared."""

    @property
    def attention(self) -> AttentionMap:
        """The map as it was captured."""
        return self.source.trace.maps[self.kind]


def draw_second_side_controls(scene: Scene, *, of_head: bool) -> SecondSide | None:
    """Draw the controls and return the second side; None, with a sentence that says so, where something is missing.

    `of_head`: the view is of one head, so that another head can be the second side.
    Raises InputError and CheckpointError.
    """
    options = _second_side_options(scene.source.run, of_head=of_head)
    if not options:
        draw_caption(
            say("This view is of all heads, so only another run can be beside it, and there is no model to make one.")
        )
        return None
    with st.container(key="sidechoices", horizontal=True, vertical_alignment="center"):
        EXPLORE_COMPARE_WITH.hold(options)
        name = lambda option: say(SECOND_SIDE_NAMES[option])  # noqa: E731
        choice = controls.draw_untranslated_choice(
            st.selectbox,
            say("Compare with"),
            options,
            format_func=name,
            width=285,
            **EXPLORE_COMPARE_WITH.synced_widget_arguments,
        )
        if choice == "head" or scene.source.run is None:
            return _choose_second_head(scene)
        return SECOND_RUN_CHOICES[choice](scene, scene.source.run)


def _second_side_options(run: RunKey | None, *, of_head: bool) -> tuple[SecondSideKind, ...]:
    """Return what a view can be compared with; without a model, only the trace's own heads."""
    heads: tuple[SecondSideKind, ...] = ("head",) if of_head else ()
    if run is None:
        return heads
    return (*heads, "sentence", "model", *(("original",) if run.given or run.changes else ()))


def _choose_second_head(scene: Scene) -> SecondSide:
    maps = scene.trace.maps
    kinds = tuple(maps)
    kind = controls.selectbox_with_default(
        say("Its kind"),
        EXPLORE_SECOND_KIND,
        kinds,
        scene.kind,
        format_func=KIND.label,
        width=120,
        label_visibility="collapsed",
    )
    layer, head = _draw_second_head_choice(maps[kind], scene.layer, (scene.head + 1) % maps[kind].heads)
    titles = _second_head_title(scene.kind, scene.layer, scene.head), _second_head_title(kind, layer, head)
    return SecondSide(scene.source, kind, layer, head, *titles)


def _choose_second_sentence(scene: Scene, run: RunKey) -> SecondSide | None:
    hint = say("Type a second sentence")
    text = controls.text_input(
        say("Second sentence"), EXPLORE_SECOND_SENTENCE, placeholder=hint, label_visibility="collapsed"
    )
    if not text.strip():
        draw_caption(say("Type a sentence that has some words in common with the first."))
        return None
    second = scene.source.open_run(RunKey(run.model, text, "", run.changes))
    titles = shorten_token(run.sentence, MAX_TITLE_LENGTH), shorten_token(text, MAX_TITLE_LENGTH)
    return SecondSide(second, scene.kind, scene.layer, scene.head, *titles)


def _choose_second_model(scene: Scene, run: RunKey) -> SecondSide | None:
    model = cache.load_runnable_model(run.model)
    others = _list_other_models(run)
    if not others:
        draw_caption(
            say("There is only one model. Train another with `python -m model train`, and it can be chosen here.")
            if model.can("translate")
            else say("There is no other decoder. Start with --models and a directory that holds several.")
        )
        return None
    EXPLORE_SECOND_MODEL.hold(others)
    name = controls.draw_untranslated_choice(
        st.selectbox,
        say("Second model"),
        others,
        width=215,
        label_visibility="collapsed",
        **EXPLORE_SECOND_MODEL.synced_widget_arguments,
    )
    if refused := _model_refusal_text(name, model):
        draw_caption(refused)
        return None
    key = RunKey(name, run.sentence, run.given)
    first, second = cache.compute_translation_with_changes(*run), cache.compute_translation_with_changes(*key)
    layer, head = _draw_second_head_choice(second.trace.maps[scene.kind], scene.layer, scene.head)
    titles = f"{run.model}: L{scene.layer + 1} h{scene.head + 1}", f"{name}: L{layer + 1} h{head + 1}"
    in_words = first.source_tokens != second.source_tokens
    return SecondSide(scene.source.open_run(key), scene.kind, layer, head, *titles, in_words)


def _model_refusal_text(name: str, first: RunnableModel) -> str:
    """Why the chosen model cannot be compared, "" where it can; a model of a folder is known once it is loaded."""
    found = cache.load_command_line_model(name)
    if isinstance(found, LocalError):
        return str(found)
    if isinstance(found, LocalModel):
        return say("{model} only reads what it is given: it writes no translation to compare.", model=name)
    if found and found.can("translate") and not first.can("translate"):
        return say("{model} translates, and {first} continues a prompt.", model=name, first=first.name)
    return found.cannot("translate") if found and first.can("translate") else ""


def _list_other_models(run: RunKey) -> list[str]:
    """Return the models that a run can be compared with, those that read the language of its sentence first.

    A decoder alone with those of the command line: the project's own translate.
    """
    if not cache.load_runnable_model(run.model).can("translate"):
        return [name for name, config in cache.load_model_configs().items() if config is None and name != run.model]
    languages = cache.load_source_languages()
    language = guess_language(run.sentence) or languages.get(run.model)
    others = [name for name in cache.list_models() if name != run.model]
    return sorted(others, key=lambda name: languages.get(name) != language)


def _make_unchanged_model_side(scene: Scene, run: RunKey) -> SecondSide:
    own = scene.source.open_run(RunKey(run.model, run.sentence))
    first = say("Given translation") if run.given else say("Changed model")
    return SecondSide(own, scene.kind, scene.layer, scene.head, first, say("The model's own, unchanged"))


SECOND_RUN_CHOICES: dict[SecondSideKind, Callable[[Scene, RunKey], SecondSide | None]] = {
    "sentence": _choose_second_sentence,
    "model": _choose_second_model,
    "original": _make_unchanged_model_side,
}


def _draw_second_head_choice(attention: AttentionMap, layer: int, head: int) -> tuple[int, int]:
    """Return the layer and head of the second side, from 0; those given until others are chosen."""
    layers, heads = range(1, attention.layers + 1), range(1, attention.heads + 1)
    return (
        controls.selectbox_with_default(
            say("Layer"), EXPLORE_SECOND_LAYER, layers, min(layer + 1, layers[-1]), width=115
        )
        - 1,
        controls.selectbox_with_default(say("Head"), EXPLORE_SECOND_HEAD, heads, min(head + 1, heads[-1]), width=115)
        - 1,
    )


SECOND_HEAD_TITLES: dict[Kind, str] = {
    "encoder": to_say("Encoder, layer {layer}, head {head}"),
    "decoder": to_say("Decoder, layer {layer}, head {head}"),
    "cross": to_say("Cross, layer {layer}, head {head}"),
}


def _second_head_title(kind: Kind, layer: int, head: int) -> str:
    return say(SECOND_HEAD_TITLES[kind], layer=layer + 1, head=head + 1)
