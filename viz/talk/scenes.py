"""The data classes of a talk, what a scene lets the audience guess, and which scenes take sentences.

:mod:`viz.talk.file` reads and writes the file of a talk. Nothing here knows a model; :mod:`viz.talk.checks` checks what
a scene asks of one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from attenscope.language import join_items, say, to_say
from attenscope.text.words import split_words
from attenscope.untrusted_trace import OpenedTrace
from attenscope.viz.figures.figure_style import Look, Palette
from attenscope.viz.ui.address import Parameter
from attenscope.viz.ui.addresses.decode import (
    DECODE_BEAM_WIDTH,
    DECODE_CROSS_HEAD,
    DECODE_LENGTH_PENALTY,
    DECODE_METHOD,
    DECODE_OWN_HEAD,
    DECODE_STEP,
    DECODE_STOP_EARLY,
    DECODE_TREE_PATH,
)
from attenscope.viz.ui.addresses.explore import EXPLORE_HEAD_ORDER, EXPLORE_VIEW
from attenscope.viz.ui.addresses.masks import GALLERY_VIEWS, MASKS_PART
from attenscope.viz.ui.addresses.page_registry import PAGES
from attenscope.viz.ui.addresses.shared import (
    CHANGES,
    COLOURS,
    HEAD,
    KIND,
    LANGUAGE,
    LAYER,
    MODEL,
    PIN,
    SCALE,
    SENTENCE,
)

if TYPE_CHECKING:
    from attenscope.network.config import TransformerConfig

SCENE_PARTS = {
    to_say("sentence"): "the sentence",
    to_say("translation"): "its translation",
    to_say("heads"): "the overview of all heads",
    to_say("picture"): "the large picture",
    to_say("next token"): "the token written next, and its candidates",
    to_say("attention"): "which words are attended to",
    to_say("matrix"): "how the decoder looks at its own words",
    to_say("candidates"): "the candidates for the next token",
    to_say("player"): "the steps and where one is",
    to_say("decoding"): "the decoding step by step",
    to_say("tree"): "the beam tree",
    to_say("best"): "the best translations of a beam",
    to_say("verdict"): "what was found",
    to_say(
        "broken or fixed"
    ): "which picture of a fault is the broken one: their names and the colour of what is wrong",
}
"""What a scene can hide until the next key, or leave out."""
PARTS_BY_PAGE: Mapping[str, tuple[str, ...]] = {
    "explore": ("sentence", "translation", "heads", "picture"),
    "decode": ("sentence", "next token", "attention", "matrix", "candidates", "player", "decoding", "tree", "best"),
    "why": ("sentence", "translation", "picture"),
    "heads": ("sentence", "picture"),
    "positions": ("sentence", "translation", "heads", "picture"),
    "training": ("sentence", "picture"),
    "masks": ("sentence", "picture", "verdict", "broken or fixed"),
}
"""Which of these a page has."""
MOST_SCENES = 99
LONGEST_MINUTES = 120.0
LONGEST_TEXTS = {"title": 200, "point": 300, "notes": 8000, "page": 60, "trace": 120, "arrays": 120}
"""Characters of each text."""


@dataclass(frozen=True)
class Scene:
    """One view of a page, and what is said to it."""

    title: str
    page: str
    """As the file of the page is named: explore, decode, ..."""
    view: Mapping[str, str] = field(default_factory=dict)
    """The page's address: names and values after the question mark."""
    notes: str = ""
    point: str = ""
    """What the audience is to look at; stands under the picture."""
    hide: tuple[str, ...] = ()
    """Keys of :data:`SCENE_PARTS` that are covered until the next key."""
    omit: tuple[str, ...] = ()
    """Keys of :data:`SCENE_PARTS` that are not shown at all."""
    live: bool = False
    """Whether it takes sentences from the audience; :func:`explain_live_scene_obstacle` says why a scene cannot."""
    trace: str = ""
    """The name of a saved trace beside the talk that the scene shows (:mod:`viz.talk.attachments`)."""
    arrays: str = ""
    """The name of a file with a mask or weights beside the talk, for the page Masks."""
    guess: tuple[str, ...] = ()
    """Parts of the picture among which the audience guesses before the next key: `list_guessable_picture_parts`."""
    minutes: float = 0.0
    """How long the speaker means to take, up to :data:`LONGEST_MINUTES`; 0: not said."""
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Where its keys stand in the file it was read from, from 1; "" is its first line."""

    def address(self, model: str = "", **more: str) -> str:
        """Path and query of the view inside the app; `model` is that of the talk, `more` is added."""
        query = self.query(model) | more
        path = "/" if self.page == "explore" else f"/{quote(self.page, safe='')}"
        return f"{path}?{urlencode(query)}" if query else path

    def query(self, model: str = "") -> dict[str, str]:
        """The address of the view: `model` is that of the talk; a file with arrays is read as one that is uploaded."""
        return ({"model": model} if model else {}) | ({"from": "upload"} if self.arrays else {}) | dict(self.view)

    def choice_text(self, choice: str) -> str:
        """A choice as the audience reads it: a side of the gallery in its language, anything else as it stands."""
        return say(choice) if self.page == "masks" else choice

    def presenter_data(
        self, model: str = "", keys: Mapping[str, str] | None = None, language: str = ""
    ) -> dict[str, Any]:
        """Return the scene as :func:`viz.web.shell.mount_talk_presenter` takes it; `keys` are those of its files.

        `language` is that of a scene whose address names none.
        """
        key = (keys or {}).get(self.trace or self.arrays, "")
        texts = {"title": self.title, "notes": self.notes, "point": self.point}
        more = {"live": "1" if self.live else "", "kept": key}
        if LANGUAGE.name not in self.view:
            more[LANGUAGE.name] = language
        address = self.address(model, **{name: value for name, value in more.items() if value})
        guesses = tuple(map(self.choice_text, self.guess))
        parts = {"hide": self.hide, "omit": self.omit, "guess": guesses}
        return {"address": address, **texts, **parts, "live": self.live, "minutes": self.minutes}


@dataclass(frozen=True)
class Talk:
    """Scenes in the order in which they are shown."""

    title: str
    scenes: tuple[Scene, ...] = ()
    model: str = ""
    """The model of every scene that names no other."""


@dataclass(frozen=True)
class Mistake:
    """What is wrong in a file, and what to do; the rest of the talk still runs."""

    line: int
    """From 1; 0 where the scene is of no file."""
    text: str

    def __str__(self) -> str:
        return say("Line {line}: {text}", line=self.line, text=self.text) if self.line else self.text


# Guesses: parts of a picture, which are words, heads, or one picture of two.


if TYPE_CHECKING:
    SceneNetwork = TransformerConfig | OpenedTrace | None

FEWEST_CHOICES, MOST_CHOICES = 2, 9
"""Number of choices; the keys 1 to 9 count the guesses."""
LONGEST_CHOICE = 40
"""Characters of a choice."""
GALLERY_SIDES = (to_say("left"), to_say("right"))
"""The two pictures of a fault in the gallery: broken and fixed."""
SENTENCE_PAGES = ("explore", "decode", "why", "positions", "training")
HEAD_PAGES = ("explore",)
GUESSED_HEAD_PATTERN = re.compile(r"[1-9]\d?\.[1-9]\d?")
_MOST_LISTED_PARTS = 12


def list_guessable_picture_parts(scene: Scene, network: SceneNetwork) -> tuple[str, ...]:
    """What can be chosen among in the picture of a scene, in reading order: its words, then its heads ("2.5").

    `network` says which heads there are: those of the scene's model, or of the trace that it shows; with None no heads
    are known.
    """
    if scene.page == "masks":
        return GALLERY_SIDES if MASKS_PART.value_of(scene.view.get(MASKS_PART.name, "")) in GALLERY_VIEWS else ()
    words = _split_words(_get_scene_sentence(scene, network)) if scene.page in SENTENCE_PAGES else []
    layers, heads = _count_layers_and_heads(scene, network) if scene.page in HEAD_PAGES else (0, 0)
    named = [f"{layer + 1}.{head + 1}" for layer in range(layers) for head in range(heads)]
    return tuple(dict.fromkeys([*words, *named]))


def build_choice_click_data(scene: Scene, network: SceneNetwork) -> dict[str, Any]:
    """Return what talk/chosen.js needs to tell which choice a click in the picture hits."""
    return {
        "choices": scene.guess,
        "sentence": _get_scene_sentence(scene, network) if scene.page in SENTENCE_PAGES else "",
    }


def is_choice_in_picture(choice: str, scene: Scene, network: SceneNetwork) -> bool:
    """Return whether the picture of a scene has this word, these words in a row, or this head.

    Where no heads are known, every head passes.
    """
    known = list_guessable_picture_parts(scene, network)
    if choice in known or (network is None and scene.page in HEAD_PAGES and GUESSED_HEAD_PATTERN.fullmatch(choice)):
        return True
    there, wanted = (_split_words(text) for text in (_get_scene_sentence(scene, network), choice))
    inside = (there[at : at + len(wanted)] == wanted for at in range(len(there)))
    return scene.page in SENTENCE_PAGES and bool(wanted) and any(inside)


def find_choice_problem(choice: str, scene: Scene, network: SceneNetwork) -> str:
    """Why a scene cannot ask for this choice, with the nearest that it can; "" where it can."""
    if is_choice_in_picture(choice, scene, network):
        return ""
    known = list_guessable_picture_parts(scene, network)
    if not known:
        return say(
            "{choice!r} is no part of this picture, and it is passed over; guess words of the view's sentence, heads "
            "on Explore, or left and right in the gallery.",
            choice=choice,
        )
    near = get_close_matches(choice, known, 1)
    has = join_items([*known[:_MOST_LISTED_PARTS], *(["..."] if len(known) > _MOST_LISTED_PARTS else [])])
    if near:
        return say(
            "There is no {choice!r} in the picture to guess, and it is passed over; {near!r} is nearest; it has {has}.",
            choice=choice,
            near=near[0],
            has=has,
        )
    return say(
        "There is no {choice!r} in the picture to guess, and it is passed over; it has {has}.", choice=choice, has=has
    )


def _get_scene_sentence(scene: Scene, network: SceneNetwork) -> str:
    if isinstance(network, OpenedTrace):
        return network.drawable.source
    return SENTENCE.value_of(scene.view.get(SENTENCE.name, ""))


def _split_words(text: str) -> list[str]:
    """The words of a text without the marks between them."""
    return [word.strip() for word in split_words(text) if any(map(str.isalnum, word))]


def _count_layers_and_heads(scene: Scene, network: SceneNetwork) -> tuple[int, int]:
    """Layers and heads of the attention that a scene of Explore shows."""
    kind = KIND.value_of(scene.view.get(KIND.name, ""))
    if network is None:
        return 0, 0
    if isinstance(network, OpenedTrace):
        maps = network.drawable.maps
        return maps[kind].weights.shape[:2] if kind in maps else (0, 0)
    return (network.encoder_layers if kind == "encoder" else network.decoder_layers), network.heads


# Live scenes take sentences from the audience: on the app's server, or by the model in a talk's one file.


LIVE_VIEWS = ("heatmap", "links", "text")
LIVE_METHODS = ("greedy", "beam")
LIVE_PARAMETERS: Mapping[str, tuple[Parameter[Any], ...]] = {
    "explore": (MODEL, SENTENCE, KIND, LAYER, HEAD, CHANGES, SCALE, COLOURS, EXPLORE_VIEW, PIN, EXPLORE_HEAD_ORDER),
    "decode": (
        MODEL,
        SENTENCE,
        CHANGES,
        SCALE,
        COLOURS,
        DECODE_METHOD,
        DECODE_BEAM_WIDTH,
        DECODE_LENGTH_PENALTY,
        DECODE_STOP_EARLY,
        DECODE_CROSS_HEAD,
        DECODE_OWN_HEAD,
        DECODE_STEP,
        PIN,
        DECODE_TREE_PATH,
    ),
}
"""Page -> parameters that One file follows for a typed sentence, or that belong to the scene's own sentence alone."""


def explain_live_scene_obstacle(scene: Scene) -> str:
    """Why a scene cannot be live; "" where it can."""
    if scene.trace or scene.arrays:
        return say("a file beside the talk takes no sentences")
    value = lambda of: of.value_of(scene.view.get(of.name, ""))  # noqa: E731
    if scene.page == "explore" and value(EXPLORE_VIEW) in LIVE_VIEWS:
        return ""
    if scene.page == "decode" and value(DECODE_METHOD) in LIVE_METHODS:
        return ""
    return say("only heatmap, links and text on Explore, and greedy and beam on Decode, take sentences")


def list_ignored_live_parameters(scene: Scene) -> list[str]:
    """The names in a live scene's view that One file does not heed for a sentence that is typed."""
    heeded = {one.name for one in LIVE_PARAMETERS[scene.page]}
    return [name for name in scene.view if name in PAGES[scene.page].parameters and name not in heeded]


def build_live_look(scene: Scene, palette: Palette) -> Look:
    """How the pictures of a scene are coloured."""
    view = scene.view
    return Look(palette, COLOURS.value_of(view.get(COLOURS.name, "")), SCALE.value_of(view.get(SCALE.name, "")))


def build_live_scene_state(scene: Scene) -> dict[str, Any]:
    """Return how a file shows a sentence typed into a live scene: the first state of viz/export/live/state.js."""
    value = lambda of: of.value_of(scene.view.get(of.name, ""))  # noqa: E731
    if scene.page == "explore":
        place = {"layer": value(LAYER) - 1, "head": value(HEAD) - 1}
        return {"view": value(EXPLORE_VIEW), "kind": value(KIND), "place": place, "changes": value(CHANGES)}
    heads = {"crossHead": value(DECODE_CROSS_HEAD), "ownHead": value(DECODE_OWN_HEAD)}
    beam = value(DECODE_BEAM_WIDTH) if value(DECODE_METHOD) == "beam" else 1
    search = {"alpha": value(DECODE_LENGTH_PENALTY), "stop": "early" if value(DECODE_STOP_EARLY) else "proven"}
    chosen = {name: head for name, head in heads.items() if head}
    return {"view": "decode", "beam": beam, "search": search, "chosen": chosen, "changes": value(CHANGES)}
