"""Components that draw texts in the browser: shaded and signed text, tokens, the word card, versions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from attenscope.analysis.heads import head_name
from attenscope.analysis.telling_word import WordWeights, read_source_word, read_target_word
from attenscope.language import join_items, say, to_say
from attenscope.text.words import SPECIAL_TOKENS, get_special_tokens, has_space_before
from attenscope.trace import AttentionMap, Head
from attenscope.viz.figures.figure_style import (
    KIND_NAMES,
    Look,
    Palette,
    format_percent,
    format_signed,
    name_tokens_apart,
    quote_token,
    readable_token,
    translate_stream_place_name,
)
from attenscope.viz.figures.heatmap import RowLabel, diverging_colours
from attenscope.viz.figures.text_alternatives import describe_word_attention
from attenscope.viz.web.component_scripts import (
    FULL_BYTE,
    component_value,
    create_mount_function,
    pack_arrays,
    quantise_weights,
)

if TYPE_CHECKING:
    from attenscope.decoding.greedy_and_sampling import Candidate, DecodingStep
    from attenscope.experiments.ablation import WordFacts
    from attenscope.hugging_face.masked_words import MaskedWord

# Shaded text: both texts of a map, shaded by the weights to or from the hovered or pinned token.


_mount_shaded_text = create_mount_function("text")
QUERY_TITLES = {
    "encoder": to_say("The sentence, attending"),
    "decoder": to_say("The translation, attending"),
    "cross": to_say("The translation"),
}
KEY_TITLES = {
    "encoder": to_say("The sentence, attended to"),
    "decoder": to_say("The translation so far"),
    "cross": to_say("The sentence"),
}
ALONE_TITLES = to_say("The text, attending"), to_say("The text so far")
"""Of the queries and the keys of a decoder without cross-attention, which need not translate."""


def draw_shaded_text(
    attention: AttentionMap,
    layer: int,
    head: int,
    look: Look,
    rows: RowLabel,
    pinned: tuple[int | None, int | None],
    alt: str,
    *,
    key: str,
    on_pin: Callable[[str, int], None],
    fixed: bool = False,
    alone: bool = False,
) -> None:
    """Draw one head, counted from 0, as shaded text, `pinned` (query, key) marked; screen readers are told `alt`.

    `fixed`: it stays with its head when another is chosen in the overview, as the second side of a comparison does.
    `alone`: its trace has no cross-attention.
    `on_pin(side, index)` hears of a click on a token, side ``query`` or ``key``.
    """
    _mount_shaded_text(
        key=key,
        data=encode_shaded_text(attention, layer, head, look, rows, pinned, alt, fixed, alone),
        on_pin_change=lambda: on_pin(str(component_value(key).pin["side"]), int(component_value(key).pin["index"])),
    )


def encode_shaded_text(
    attention: AttentionMap,
    layer: int,
    head: int,
    look: Look,
    rows: RowLabel,
    pinned: tuple[int | None, int | None],
    alt: str,
    fixed: bool = False,
    alone: bool = False,
) -> bytes:
    """What text.js reads: tokens and colours, then (Q, K) bytes of the head and (K,) of its mean over the queries."""
    kind = attention.kind
    query, key = ALONE_TITLES if alone and kind == "decoder" else (QUERY_TITLES[kind], KEY_TITLES[kind])
    palette, special = look.palette, get_special_tokens(attention)
    queries = build_token_data(attention.rows(rows), special)
    header = {
        "query": {"title": say(query), "tokens": queries},
        "key": {"title": say(key), "tokens": build_token_data(attention.key_tokens, special)},
        "alt": alt,
        "label": say(
            "{kind}, layer {layer}, head {head}, as shaded text",
            kind=say(KIND_NAMES[kind]),
            layer=layer + 1,
            head=head + 1,
        ),
        "stops": look.stops,
        "scale": look.scale,
        "masked": palette.masked,
        "inks": (palette.ink, palette.background),
        "pinned": pinned,
        "fixed": fixed,
        "pattern": say(
            "{kind}, layer {layer}, head {head}, as shaded text",
            kind=say(KIND_NAMES[kind]),
            layer="{layer}",
            head="{head}",
        ),
    }
    weights, mask = attention.weights[layer, head], attention.mask_of(layer, head)
    allowed = mask.sum(axis=0)
    means = np.where(mask, weights, 0).sum(axis=0, dtype=np.float64) / np.maximum(allowed, 1)
    return pack_arrays(
        header, quantise_weights(weights, mask).tobytes() + quantise_weights(means, allowed > 0).tobytes()
    )


def build_token_data(tokens: Sequence[str], special: AbstractSet[str] = SPECIAL_TOKENS) -> list[dict[str, Any]]:
    """Tokens of a line of text: how each reads, whether a space stands before it, and whether it stands for no text."""
    return [
        {
            "text": readable_token(token),
            "space": has_space_before(token, special),
            "special": token in special,
        }
        for token in tokens
    ]


# Signed text: one signed number for each piece, orange below zero, indigo above.


_mount_signed_text = create_mount_function("signed_text")


@dataclass(frozen=True, eq=False)
class SignedText:
    """One text and the number of each of its pieces."""

    title: str
    note: str
    """What stands under the title until a piece is pointed at."""
    pieces: Sequence[str]
    values: np.ndarray | None
    """(P,) or None where nothing is said of these pieces."""
    readings: Sequence[str] = ()
    """What stands under each piece, in place of the number that is read by pointing at it."""


def draw_signed_text(texts: Sequence[SignedText], palette: Palette, label: str, *, key: str) -> None:
    """Draw `texts` beside each other, on one scale; screen readers are told `label`."""
    _mount_signed_text(key=key, data=encode_signed_text(texts, palette, label))


def encode_signed_text(texts: Sequence[SignedText], palette: Palette, label: str) -> bytes:
    """What signed_text.js reads: pieces and colours, then a byte a piece; half of FULL is zero."""
    largest = max((float(np.abs(one.values).max()) for one in texts if one.values is not None), default=0.0) or 1.0
    levels = [np.zeros(len(one.pieces)) if one.values is None else one.values / largest for one in texts]
    header = {
        "texts": [
            {
                "title": one.title,
                "note": one.note,
                "tokens": [_signed_token_data(one, at) for at in range(len(one.pieces))],
            }
            for one in texts
        ],
        "label": label,
        "stops": diverging_colours(palette),
        "inks": (palette.ink, palette.background),
    }
    return pack_arrays(header, np.rint((np.concatenate(levels) + 1) / 2 * FULL_BYTE).astype(np.uint8).tobytes())


def _signed_token_data(text: SignedText, at: int) -> dict[str, str | bool]:
    piece = text.pieces[at]
    if text.readings:
        return {"text": readable_token(piece), "space": True, "reading": text.readings[at]}
    value = say("no number") if text.values is None else format_signed(float(text.values[at]), 3, plus=True)
    return {"text": readable_token(piece), "space": has_space_before(piece), "value": value}


# Tokens: the translation as running text, unsure pieces underlined; a click pins a piece.


_mount_tokens = create_mount_function("tokens")

SURE_FROM = 0.6
"""The probability below which a piece is underlined."""


def draw_tokens(
    steps: Sequence[DecodingStep],
    pinned: int | None,
    *,
    key: str,
    on_pin: Callable[[int], None] | None,
    keep: bool = False,
    word: Sequence[int] = (),
) -> None:
    """Draw the pieces of `steps`; `on_pin(position)` hears of a click, without it the pinned piece stays.

    With `keep`, a click never unpins a piece. `word` are the positions of the word that the pinned piece stands for,
    which are marked with it.
    """

    def handle_click() -> None:
        if on_pin:
            on_pin(int(component_value(key).pin["position"]))

    data = token_line_data(steps, pinned, keep=keep, word=word) | {"fixed": on_pin is None}
    _mount_tokens(key=key, data=data, on_pin_change=handle_click)


def token_line_data(
    steps: Sequence[DecodingStep], pinned: int | None, *, keep: bool = False, word: Sequence[int] = ()
) -> dict[str, Any]:
    """What tokens.js reads."""
    return {
        "pieces": [_build_token_doubt_data(step) for step in steps],
        "pinned": pinned,
        "keep": keep,
        "word": list(word),
    }


def _build_token_doubt_data(step: DecodingStep) -> dict[str, Any]:
    """One piece; its doubt is 1 minus the probability that the model gave to it."""
    return {
        "text": step.token,
        "doubt": round(1 - math.exp(step.log_prob), 3),
        "unsure": is_low_probability_token(step),
        "special": step.stopped == "eos",
        "note": _describe_piece_alternatives(step),
    }


def is_low_probability_token(step: DecodingStep) -> bool:
    """Whether the model gave the piece that it wrote less than `SURE_FROM`."""
    return math.exp(step.log_prob) < SURE_FROM


def _describe_piece_alternatives(step: DecodingStep) -> str:
    listed = [one for one in step.candidates if one.token_id != step.token_id][:3]
    names = name_tokens_apart([one.token for one in listed])
    others = [f"{name} {format_percent(math.exp(one.log_prob))}" for name, one in zip(names, listed, strict=True)]
    own = f"{readable_token(step.token)} {format_percent(math.exp(step.log_prob))}"
    return say("{piece}; next best: {others}", piece=own, others=join_items(others)) if others else own


# The sentence and its translation, words above words, with curves between them.


_mount_sentence = create_mount_function("sentence")
SentenceSide = Literal["source", "target"]


@dataclass(frozen=True, eq=False)
class SentencePicture:
    """One head between the words of a sentence and those of its translation."""

    words: WordWeights
    layer: int
    """From 0, as is the head."""
    head: int
    steps: Sequence[DecodingStep]
    pinned: Mapping[SentenceSide, int | None]
    """The captured positions that are pinned."""
    head_picked: bool = False
    """Whether the page itself has chosen the head for this sentence."""
    preview: Mapping[str, str] | None = None
    """With it, what is typed is translated before it is asked for (:mod:`viz.explore.translation_preview`): the
    `model`, the `language` of the texts, the `sentence` that is drawn, and a `note` that Enter is to follow."""
    has_card: bool = False
    """Whether the card of the pinned word of the translation is open somewhere below."""


def draw_sentence_picture(picture: SentencePicture, *, key: str, on_pin: Callable[[SentenceSide, int], None]) -> None:
    """Draw the words with the links of the pinned one; `on_pin(side, position)` hears of a click: its first piece."""

    def handle_click() -> None:
        side: SentenceSide = "source" if component_value(key).pin["side"] == "source" else "target"
        groups = picture.words.keys if side == "source" else picture.words.rows
        on_pin(side, groups[int(component_value(key).pin["index"])].start)

    _mount_sentence(key=key, data=encode_sentence_picture(picture), on_pin_change=handle_click)


def encode_sentence_picture(picture: SentencePicture) -> bytes:
    """What sentence.js reads: the words and what is said of each, then (R, K) bytes of the head's weights."""
    words, place = picture.words, (picture.layer, picture.head)
    read_row = [describe_word_attention(words, read_target_word(words, row, place)) for row in range(len(words.rows))]
    read_key = [
        describe_word_attention(words, read_source_word(words, key, place), of_source=True)
        for key in range(len(words.keys))
    ]
    tokens = words.pieces.key_tokens
    header = {
        "source": {
            "label": say(KEY_TITLES["cross"]),
            "words": _word_data(words.key_words, words.keys, tokens),
            "says": read_key,
        },
        "target": {
            "label": say(QUERY_TITLES["cross"]),
            "words": [
                data | _build_word_doubt([picture.steps[at] for at in group if at < len(picture.steps)])
                for data, group in zip(
                    _word_data(words.row_words, words.rows, words.pieces.rows("predicted")), words.rows, strict=True
                )
            ],
            "says": read_row,
        },
        "pinned": {
            "source": words.get_word_at_column(picture.pinned["source"]),
            "target": words.row_of(picture.pinned["target"]),
        },
        "headPicked": picture.head_picked,
        "preview": picture.preview,
        "card": say("Its card ↓") if picture.has_card else "",
        "hint": say(
            "Each curve is the word that head {head} looked at most. Point at a word, or click it.",
            head=f"{picture.layer + 1}.{picture.head + 1}",
        ),
    }
    weights = words.weights[place]
    return pack_arrays(header, quantise_weights(weights, np.ones(weights.shape, bool)).tobytes())


def _word_data(texts: Sequence[str], groups: Sequence[range], tokens: Sequence[str]) -> list[dict[str, Any]]:
    marked = any(token.startswith((" ", "▁")) for token in tokens)
    return [
        {"text": readable_token(text), "space": not marked or tokens[group.start].startswith((" ", "▁"))}
        for text, group in zip(texts, groups, strict=True)
    ]


def _build_word_doubt(steps: Sequence[DecodingStep]) -> dict[str, Any]:
    """How unsure the model was of the piece of a word of which it was least sure."""
    doubt = max((1 - math.exp(step.log_prob) for step in steps if is_low_probability_token(step)), default=0.0)
    return {"doubt": round(doubt, 3), "note": _describe_piece_alternatives(steps[0]) if steps else ""}


# The word card: the probability of a word, its alternatives, where it looked, and the heads that matter.


_mount_word_card = create_mount_function("word_card")
MAX_CARD_ROWS = 4
"""Rows of each part of the card."""


@dataclass(frozen=True)
class CardActions:
    """What a card does when it is pressed."""

    close: Callable[[], None]
    candidate: Callable[[int], None] | None
    """Called with the token id that is to be written instead; None where none can be."""
    head: Callable[[Head], None]
    why: Callable[[], None] | None
    """The button "Why this word?"; None for none."""
    open: Callable[[], None] | None = None
    """The button "Open in Decode"; None where the card stands there."""


def draw_word_card(data: dict[str, Any], actions: CardActions, *, key: str) -> None:
    """Draw a card from the data of :func:`word_card_data`."""
    state = lambda: component_value(key)  # noqa: E731  (what the browser sent, read when a callback runs)

    def head() -> None:
        kind, layer, number = state().head
        actions.head((kind, int(layer), int(number)))

    _mount_word_card(
        key=key,
        data=data
        | {
            "why": actions.why is not None,
            "chooses": actions.candidate is not None,
            "open": say("Open in Decode") if actions.open else "",
        },
        on_close_change=actions.close,
        on_candidate_change=lambda: actions.candidate(int(state().candidate)) if actions.candidate else None,
        on_head_change=head,
        on_open_change=actions.open or (lambda: None),
        on_why_change=actions.why or (lambda: None),
    )


def _list_candidates(candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
    names = name_tokens_apart([one.token for one in candidates])
    shares = [math.exp(one.log_prob) for one in candidates]
    return [
        {"id": one.token_id, "text": name, "value": format_percent(share), "share": share}
        for one, name, share in zip(candidates, names, shares, strict=True)
    ]


def masked_word_data(found: MaskedWord, heads: Sequence[tuple[Head, float]]) -> dict[str, Any]:
    """What word_card.js reads of a masked word; `heads` as in :func:`word_card_data`."""
    name = readable_token(found.token)
    others = [one for one in found.candidates if one.token != found.token][:MAX_CARD_ROWS]
    largest = max(1.0, *(abs(change) for _, change in heads), *(abs(fall) for _, fall in found.by_fall))
    mask = (
        say("{token} is masked for this, and read from the other words.", token=quote_token(found.token))
        if found.is_given
        else say("The text has a mask here: {token} is the most probable token.", token=quote_token(found.token))
    )
    return {
        "step": found.position,
        "masked": True,
        "label": say("The word {word}", word=name),
        "word": name,
        "fact": f"{format_percent(math.exp(found.log_prob))} · {_rank_text(found.rank)}",
        "others": _list_candidates(others),
        "sources": [
            {"text": readable_token(word), "value": format_signed(-fall, plus=True), "share": abs(fall) / largest}
            for word, fall in found.by_fall[:MAX_CARD_ROWS]
        ],
        "heads": [_build_head_effect_data(head, change, largest) for head, change in heads[:MAX_CARD_ROWS]],
        "headsNote": say("change of log-prob. when off"),
        "decided": mask,
    }


def word_card_data(step: DecodingStep, facts: WordFacts, heads: Sequence[tuple[Head, float]]) -> dict[str, Any]:
    """What word_card.js reads. `heads` and the change of the token's log-probability without each, largest first."""
    name, position = readable_token(step.token), step.position
    others = [one for one in step.candidates if one.token_id != step.token_id and not one.forbidden][:MAX_CARD_ROWS]
    largest = max(1.0, *(abs(change) for _, change in heads))  # of less than a nat, a bar is not to look like much
    return {
        "step": position,
        "label": say("The word {word}", word=name),
        "word": name,
        "fact": f"{format_percent(math.exp(step.log_prob))} · {_rank_text(step.rank)}",
        "others": _list_candidates(others),
        "sources": [
            {"text": readable_token(one.text), "value": format_percent(one.share), "share": one.share}
            for one in facts.rank_source_attention_shares(position)[:MAX_CARD_ROWS]
        ],
        "heads": [_build_head_effect_data(head, change, largest) for head, change in heads[:MAX_CARD_ROWS]],
        "headsNote": say("change of log-prob. when off"),
        "decided": decision_layer_text(step, facts),
    }


def decision_layer_text(step: DecodingStep, facts: WordFacts) -> str:
    """From which layer on the token written is the one that the model would write."""
    name, place = quote_token(step.token), facts.find_deciding_lens_layer(step.position)
    if place is None:
        return say("After the last layer another token than {token} is the most probable.", token=name)
    if place == facts.lens.places[0]:
        return say("{token} is the most probable token from the embedding on, before any layer.", token=name)
    return say(
        "{token} is the most probable token from {place} of {layers} on.",
        token=name,
        place=translate_stream_place_name(place),
        layers=len(facts.lens.places) - 1,
    )


def _rank_text(rank: int) -> str:
    return say("the most probable token") if rank == 1 else say("rank {rank:,}", rank=rank)


def _build_head_effect_data(head: Head, change: float, largest: float) -> dict[str, Any]:
    name = head_name(head)
    value = format_signed(change, plus=True)
    return {
        "place": list(head),
        "text": name,
        "value": value,
        "share": abs(change) / largest,
        "label": say("Show {head}: {change} nats without it", head=name, change=value),
    }


# Versions: translations of one sentence below each other, their differences marked; a click chooses one.


_mount_versions = create_mount_function("versions")


@dataclass(frozen=True)
class TranslationVersion:
    """One row."""

    what: str
    """How it was made, in a word or two."""
    words: Sequence[tuple[str, str]]
    """Runs of words, spaces included, with their mark: ``same``, ``new`` or ``gone``."""
    numbers: Sequence[str]
    """One for each heading."""


def draw_translation_versions(
    rows: Sequence[TranslationVersion],
    headings: Sequence[str],
    current: int,
    *,
    key: str,
    on_choice: Callable[[int], None],
) -> None:
    """Draw `rows`, the `current` one marked (-1 for none); `on_choice(number)` hears of a click."""

    def handle_choice() -> None:
        on_choice(int(component_value(key).choice["number"]))

    _mount_versions(
        key=key, data=build_translation_versions_data(rows, headings, current), on_choice_change=handle_choice
    )


def build_translation_versions_data(
    rows: Sequence[TranslationVersion], headings: Sequence[str], current: int
) -> dict[str, Any]:
    """What versions.js reads."""
    listed = [{"what": row.what, "words": row.words, "numbers": row.numbers} for row in rows]
    return {"headings": headings, "versions": listed, "current": current}
