"""The views of Why about layers and runs: lenses by layer, source shares, and activation patching."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from attenscope.attribution.alti_and_leave_one_out import SourceShares
from attenscope.attribution.target import AttributionError
from attenscope.evaluation.attribution import AttributionScoresError, LooseThreshold
from attenscope.experiments.lens import DecoderLens, LogitLens
from attenscope.experiments.patching import Contrast, MinimalPair, PatchMap, read_minimal_pairs
from attenscope.language import format_number, join_sentences, say, to_say
from attenscope.runnable_model import InputError
from attenscope.viz.export.parts import Chart, Columns, Part, Words
from attenscope.viz.export.share_menu import SavedView, collect_trace_facts
from attenscope.viz.figures.figure_style import (
    Look,
    Palette,
    format_percent,
    quote_token,
    readable_token,
    translate_stream_place_name,
)
from attenscope.viz.figures.lens import plot_lens_grid, plot_lens_ranks
from attenscope.viz.figures.text_alternatives import describe_lens_settling_place
from attenscope.viz.figures.why import plot_activation_patching, plot_source_effects, plot_source_shares
from attenscope.viz.ui import controls
from attenscope.viz.ui.addresses.shared import SENTENCE
from attenscope.viz.ui.addresses.why import (
    PATCHED_PARTS,
    WHY_CONTROL_SENTENCE,
    WHY_PATCHED_PART,
    WHY_SECOND_SENTENCE,
    PatchedPart,
)
from attenscope.viz.ui.captions import draw_caption, escape_markdown
from attenscope.viz.ui.style import draw_table
from attenscope.viz.web.charts import draw_chart
from attenscope.viz.web.page_components import is_on_stage
from attenscope.viz.why import cache, texts
from attenscope.viz.why.cache import ReadingKey
from attenscope.viz.why.controls import PAIRS_LANGUAGE, Question, SentencePair, set_explained_word
from attenscope.viz.why.texts import format_pieces

# Layers: the translation read from each encoder layer, and the decoder's prediction after each sublayer.


LENS_HEADINGS = to_say("Encoder read from"), to_say("Translation"), to_say("Rank"), to_say("Probability")


def draw_layers_view(question: Question, palette: Palette) -> SavedView:
    """Draw the translations by encoder layer, the lens after each sublayer, and the ranks of X and of Y."""
    reading, at = question.key.reading, question.key.position
    read, refused = _find_finest_lens(reading)
    encoder = None if question.target.continues else cache.compute_decoder_lens(reading)
    lens = read(reading)
    ranked = [(question.target.tokens[0], lens)]
    if question.target.against_id is not None:
        ranked.append((question.target.against or "", read(reading, question.target.against_id)))
    if is_on_stage():
        ranked = []  # There the picture of so many rows has all the room.
    says = [describe_lens_settling_place(lens, at), say(texts.LOGIT_LENS_EXPLANATION)]
    if refused:
        says.append(join_sentences(refused, say(texts.LAYERS_ALONE_NOTE)))
    if encoder is not None:
        says.insert(0, _draw_encoder_lens(encoder, at))
        st.subheader(say("The decoder: logit lens"), anchor=False)
    titles = texts.make_lens_titles(sublayers=not refused)
    with st.container(key="picture"):
        draw_chart(
            plot_lens_grid(lens, look=Look(palette), pinned=at),
            titles[0],
            key="lens",
            on_cell=lambda _, column: set_explained_word(question.result, column),
        )
        for column, one in zip(st.columns(2, gap="large"), ranked, strict=False):
            with column:
                draw_chart(
                    _plot_ranks(one, at, palette),
                    titles[1],
                    key=f"ranks-{one is ranked[0]}",
                    on_cell=lambda _, __: None,
                )
    draw_caption(join_sentences(*says[0 if encoder is None else 1 :]))

    def build_parts(of: Palette) -> list[Part]:
        grid = Chart(plot_lens_grid(lens, look=Look(of), pinned=at), titles[0])
        charts = tuple([Chart(_plot_ranks(one, at, of), titles[1])] for one in ranked)
        rows = (
            () if encoder is None else zip(map(translate_stream_place_name, encoder.places), encoder.texts, strict=True)
        )
        written = [Words(f"{place}: {text}") for place, text in rows]
        both = [Columns(charts, (1 / len(charts),) * len(charts))] if charts else []
        return [*question.saved_texts, *written, grid, *both, *map(Words, says)]

    facts = collect_trace_facts(question.result.trace, **question.facts)
    return SavedView("why-layers", build_parts, lambda: tabulate_lenses(encoder, lens), titles[0], facts, width=1280)


def _draw_encoder_lens(encoder: DecoderLens, at: int) -> str:
    """Draw the translations by encoder layer; returns the sentence about them."""
    st.subheader(say("The encoder: DecoderLens"), anchor=False)
    with st.container(key="from-layers"):
        draw_table(
            [say(one) for one in LENS_HEADINGS],
            build_lens_rows(encoder, at),
            say("The translation from each encoder layer"),
        )
    said = texts.describe_encoder_lens(encoder, at)
    draw_caption(join_sentences(said, say(texts.DECODER_LENS_EXPLANATION)))
    return said


def _find_finest_lens(reading: ReadingKey) -> tuple[Callable[..., LogitLens], str]:
    """Return the lens after each sublayer and ""; where it cannot be computed, the lens after each layer and why."""
    try:
        cache.compute_sublayer_lens(reading)
    except AttributionError as error:
        return cache.compute_layer_lens, str(error)
    return cache.compute_sublayer_lens, ""


def build_lens_rows(found: DecoderLens, position: int) -> list[list[str]]:
    """The translation from each place, with rank and probability of the piece at a position, from 0."""
    return [
        [
            translate_stream_place_name(place),
            text,
            format_number(int(found.ranks[at, position]), ","),
            format_percent(math.exp(found.log_probs[at, position])),
        ]
        for at, (place, text) in enumerate(zip(found.places, found.texts, strict=True))
    ]


def tabulate_lenses(encoder: DecoderLens | None, lens: LogitLens) -> pd.DataFrame:
    """Rank and log-probability of every piece of the translation, from each encoder layer and after each sublayer."""
    both = [("decoder", lens.places, lens.target_tokens, lens.ranks, lens.target_log_probs)]
    if encoder is not None:
        both.insert(0, ("encoder", encoder.places, encoder.target_tokens, encoder.ranks, encoder.log_probs))
    listed = [
        (side, place, at + 1, token, ranks[at], log_probs[at])
        for side, places, tokens, all_ranks, all_log_probs in both
        for place, ranks, log_probs in zip(places, all_ranks, all_log_probs, strict=True)
        for at, token in enumerate(tokens)
    ]
    return pd.DataFrame(listed, columns=["stack", "after", "position", "piece", "rank", "log-probability"])


def _plot_ranks(ranked: tuple[str, LogitLens], position: int, palette: Palette) -> go.Figure:
    token, lens = ranked
    return plot_lens_ranks(lens, position, look=Look(palette), token=quote_token(token))


# Source or prefix: where each word of the translation comes from, and whether it has come loose from the source.


def draw_source_shares_view(question: Question, palette: Palette) -> SavedView:
    """Draw the shares and the effect of the source under the whole translation; a click chooses a word."""
    found, loose = cache.compute_source_shares(question.key.reading), _load_source_detachment_threshold(question)
    at, threshold = question.key.position, loose.threshold if loose else None
    lead = texts.describe_source_detachment(found, loose)
    is_loose = loose is not None and found.mean_effect < loose.threshold
    with st.container(key="loose" if is_loose else "lead"):
        draw_caption(lead)
    titles = say("Share of the source and of the prefix"), say("Effect of the source on each piece")

    def handle_click(column: int) -> None:
        set_explained_word(question.result, min(max(column, 0), len(found.tokens) - 1))

    staged = is_on_stage()  # There the charts stand beside each other: each has all the height.
    with st.container(key="picture"):
        places = st.columns(2) if staged else [nullcontext()] * 2
        with places[0]:
            figure = plot_source_shares(found, at, palette)
            draw_chart(figure, titles[0], key="shares", on_cell=lambda _, x: handle_click(x))
        with places[1]:
            figure = plot_source_effects(found, at, threshold, palette)
            draw_chart(figure, titles[1], key="effects", on_cell=lambda _, x: handle_click(x))
    says = [texts.describe_word_shares(found, question.target), texts.explain_source_shares(question.target)]
    draw_caption(join_sentences(*says))

    def build_parts(of: Palette) -> list[Part]:
        drawn = (
            Chart(plot_source_shares(found, at, of), titles[0]),
            Chart(plot_source_effects(found, at, threshold, of), titles[1]),
        )
        pictures = [Columns(tuple((one,) for one in drawn), (0.6, 0.4))] if staged else drawn
        return [*question.saved_texts, Words(lead), *pictures, *map(Words, says)]

    facts = collect_trace_facts(question.result.trace, **question.facts)
    return SavedView(
        "why-source-or-prefix", build_parts, lambda: tabulate_source_shares(found), titles[0], facts, width=1280
    )


def tabulate_source_shares(found: SourceShares) -> pd.DataFrame:
    """Every piece with its shares, the effect of the source and the attention to </s>."""
    columns = {
        "source": found.source,
        "prefix": found.prefix,
        "effect of the source, nats": found.effect,
        "attention to </s>": found.end_attention,
    }
    table = pd.DataFrame({"piece": format_pieces(found.tokens)} | columns)
    return table.set_index(pd.RangeIndex(1, len(table) + 1, name="position"))


def _load_source_detachment_threshold(question: Question) -> LooseThreshold | None:
    """The threshold that is kept with the model; None where there is none."""
    try:
        scores = cache.load_attribution_scores(question.model.name)
    except AttributionScoresError as error:
        draw_caption(str(error))
        return None
    return scores.loose if scores else None


# Two sentences: activations of the first put into the run of the second, and what comes back of the difference.


PHENOMENON_NAMES = {
    "number": to_say("grammatical number"),
    "tense": to_say("tense"),
    "negation": to_say("negation"),
    "pronoun": to_say("pronoun"),
    "word order": to_say("word order"),
    "word sense": to_say("word sense"),
}
"""What differs in those pairs: the name in their file -> the name on the page."""
DECODER_PARTS: tuple[PatchedPart, ...] = ("decoder stream", "decoder heads")
"""What can be patched of a decoder alone."""
NO_PAIR = -1
"""The choice of no pair; pairs count from 0."""


def draw_activation_patching_view(question: Question, palette: Palette) -> SavedView | None:
    """Draw the choice of the sentences, and the map of the pair beside that of its control."""
    _draw_sentence_fields(question)
    _, second, same = question.pair
    if not second:
        st.info(say(texts.NO_SECOND_SENTENCE))
        return None
    first = question.key.reading
    keys = [ReadingKey(first.model, text, "", first.changes) for text in (second, same)]
    pair = cache.compute_sentence_pair_contrast(first, keys[0])
    place = st.container(key="lead")
    listed = DECODER_PARTS if pair.target.continues else PATCHED_PARTS
    patched = controls.selectbox(say("Patched"), WHY_PATCHED_PART, listed, width=300)
    found = cache.compute_patch_map(first, keys[0], patched)
    control = _load_control_map(first, *keys) if same else say(texts.NO_CONTROL_SENTENCE)
    names = make_patch_column_names(pair, found)
    lead = texts.describe_patched_word(pair, found, names)
    with place:
        draw_caption(lead)
    says = [
        texts.describe_translation_divergence(pair),
        texts.describe_largest_patch(found, names),
        say(texts.PATCHING_EXPLANATION),
    ]
    titles = say("Patched: “{sentence}”", sentence=second), say("Control: “{sentence}”", sentence=same)

    def draw_figure(of: Palette) -> tuple[list[Part], list[Part]]:
        own = Chart(plot_activation_patching(found, names, titles[0], of), titles[0])
        if isinstance(control, str):
            return [own], [Words(control)]
        return [own], [Chart(plot_activation_patching(control, _readable_columns(control), titles[1], of), titles[1])]

    with st.container(key="picture"):
        for column, parts, key in zip(
            st.columns(2, gap="large"), draw_figure(palette), ("patches", "control-map"), strict=True
        ):
            with column:
                _draw_part(parts[0], key)
    if not isinstance(control, str):
        says.insert(2, texts.describe_control_patch_map(control))
    draw_caption(join_sentences(*says))

    def handle_save(of: Palette) -> list[Part]:
        return [*question.saved_texts, Words(lead), Columns(draw_figure(of), (0.5, 0.5)), *map(Words, says)]

    facts = collect_trace_facts(
        question.result.trace, control=same, changes=first.changes, **{"second sentence": second}
    )
    name = f"why-two-sentences-{patched.replace(' ', '-')}"
    return SavedView(name, handle_save, lambda: tabulate_patches(found, names, control), titles[0], facts, width=1280)


def tabulate_patches(found: PatchMap, names: list[str], control: PatchMap | str) -> pd.DataFrame:
    """The share that comes back for each patch, a row a layer; below it that of the control."""
    tables = {"pair": (found, names)} | (
        {} if isinstance(control, str) else {"control": (control, _readable_columns(control))}
    )
    rows = []
    for of, (one, columns) in tables.items():
        for row, layer in enumerate(one.rows):
            listed = [f"{at + 1} {name}" for at, name in enumerate(columns)]
            shares = dict(zip(listed, one.fraction[row].tolist(), strict=True))
            rows.append({"of": of, "layer": layer, **shares, "all": one.whole_row_recovered_fraction[row]})
    return pd.DataFrame(rows)


def make_patch_column_names(pair: Contrast, found: PatchMap) -> list[str]:
    """The columns of a map; a position at which the sources differ is named by both pieces."""
    names, sources = _readable_columns(found), len(pair.second_tokens)
    if found.columns[:sources] != pair.second_tokens:
        return names
    before = [readable_token(one) for one in pair.target.source_tokens]
    both = [new if old == new else f"{old}/{new}" for old, new in zip(before, names[:sources], strict=True)]
    return both + names[sources:]  # behind the prompt of a decoder alone stands what both have written


def _readable_columns(found: PatchMap) -> list[str]:
    return [readable_token(one) for one in found.columns]


def _draw_sentence_fields(question: Question) -> None:
    """Draw the pairs that come with the project, and the fields of the second sentence and of the control."""
    with st.container(key="pairs"):
        if question.model.card.get("source_language", "") == PAIRS_LANGUAGE:
            _draw_pair_selector(question.pair)
        with st.container(key="sentences", horizontal=True):
            hint = say(texts.SECOND_SENTENCE_HINT, sentence=SENTENCE.get())
            controls.text_input(say("Second sentence"), WHY_SECOND_SENTENCE, placeholder=hint)
            controls.text_input(
                say("Control: a sentence with the same answer"), WHY_CONTROL_SENTENCE, placeholder=say("may be empty")
            )


def _draw_pair_selector(shown: SentencePair) -> None:
    pairs = read_minimal_pairs()
    current = next((at for at, one in enumerate(pairs) if (one.first, one.second) == shown[:2]), NO_PAIR)
    st.session_state["pair"] = current

    def choose() -> None:
        if (at := st.session_state["pair"]) != NO_PAIR:
            fill_in_pair(pairs[at])

    controls.draw_untranslated_choice(
        st.selectbox,
        say("Pair"),
        (NO_PAIR, *range(len(pairs))),
        key="pair",
        format_func=lambda at: say("choose one, or type your own") if at == NO_PAIR else format_pair(pairs[at]),
        on_change=choose,
        width=560,
    )


def format_pair(pair: MinimalPair) -> str:
    """A pair as the list names it."""
    return f"{say(PHENOMENON_NAMES[pair.phenomenon])}: {pair.first} / {pair.second}"


def fill_in_pair(pair: MinimalPair) -> None:
    """Type a pair and its control into the fields, the first sentence into that of the page; for callbacks."""
    st.session_state[SENTENCE.key] = pair.first
    st.session_state[WHY_SECOND_SENTENCE.key], st.session_state[WHY_CONTROL_SENTENCE.key] = pair.second, pair.control


def _load_control_map(first: ReadingKey, second: ReadingKey, same: ReadingKey) -> PatchMap | str:
    """The map of the control, or why there is none."""
    try:
        return cache.compute_control_patch_map(first, second, same, WHY_PATCHED_PART.get())
    except (AttributionError, InputError) as error:
        return str(error)


def _draw_part(part: Part, key: str) -> None:
    if isinstance(part, Chart):
        draw_chart(part.figure, part.alt, key=key, on_cell=lambda _, __: None)
    elif isinstance(part, Words):
        st.info(escape_markdown(part.text))
