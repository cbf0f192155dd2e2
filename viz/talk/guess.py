"""What a scene lets the audience guess: parts of its picture, which are words, heads, or one picture of two."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from model.language.say import listed, say, to_say
from model.text.words import words_of
from model.untrusted_trace import OpenedTrace

from ..ui.addresses.masks import GALLERY, PART
from ..ui.addresses.shared import KIND, SENTENCE

if TYPE_CHECKING:
    from model.network.config import TransformerConfig

    from .scenes import Scene

    Network = TransformerConfig | OpenedTrace | None

FEWEST, MOST = 2, 9
"""Choices: the keys 1 to 9 count them."""
LONGEST = 40
"""Characters of a choice."""
SIDES = (to_say("left"), to_say("right"))
"""The two pictures of a fault in the gallery: broken and fixed."""
OF_SENTENCES = ("explore", "decode", "why", "positions", "training")
OF_HEADS = ("explore",)
HEAD = re.compile(r"[1-9]\d?\.[1-9]\d?")
_LISTED = 12


def parts(scene: Scene, network: Network) -> tuple[str, ...]:
    """What can be chosen among in the picture of a scene, in reading order: its words, then its heads ("2.5").

    `network` says which heads there are: of the model that the scene asks for, or of the trace that it shows; of None
    no heads are known.
    """
    if scene.page == "masks":
        return SIDES if PART.value_of(scene.view.get(PART.name, "")) in GALLERY else ()
    words = _words(_sentence(scene, network)) if scene.page in OF_SENTENCES else []
    layers, heads = _heads(scene, network) if scene.page in OF_HEADS else (0, 0)
    named = [f"{layer + 1}.{head + 1}" for layer in range(layers) for head in range(heads)]
    return tuple(dict.fromkeys([*words, *named]))


def clicked(scene: Scene, network: Network) -> dict[str, Any]:
    """What tells in the browser which choice of a scene a click in its picture hits (presenter/chosen.js)."""
    return {"choices": scene.guess, "sentence": _sentence(scene, network) if scene.page in OF_SENTENCES else ""}


def is_part(choice: str, scene: Scene, network: Network) -> bool:
    """Whether the picture of a scene has this word, or these words behind each other, or this head.

    Where no heads are known, any may be.
    """
    known = parts(scene, network)
    if choice in known or (network is None and scene.page in OF_HEADS and HEAD.fullmatch(choice)):
        return True
    there, wanted = (_words(text) for text in (_sentence(scene, network), choice))
    inside = (there[at : at + len(wanted)] == wanted for at in range(len(there)))
    return scene.page in OF_SENTENCES and bool(wanted) and any(inside)


def problem(choice: str, scene: Scene, network: Network) -> str:
    """Why a scene cannot ask for this choice, with the nearest that it can; "" where it can."""
    if is_part(choice, scene, network):
        return ""
    known = parts(scene, network)
    if not known:
        return say(
            "{choice!r} is no part of this picture, and it is passed over; guess words of the view's sentence, heads "
            "on Explore, or left and right in the gallery.",
            choice=choice,
        )
    near = get_close_matches(choice, known, 1)
    has = listed([*known[:_LISTED], *(["..."] if len(known) > _LISTED else [])])
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


def _sentence(scene: Scene, network: Network) -> str:
    if isinstance(network, OpenedTrace):
        return network.drawable.source
    return SENTENCE.value_of(scene.view.get(SENTENCE.name, ""))


def _words(text: str) -> list[str]:
    """The words of a text without the marks between them."""
    return [word.strip() for word in words_of(text) if any(map(str.isalnum, word))]


def _heads(scene: Scene, network: Network) -> tuple[int, int]:
    """Layers and heads of the attention that a scene of Explore shows."""
    kind = KIND.value_of(scene.view.get(KIND.name, ""))
    if network is None:
        return 0, 0
    if isinstance(network, OpenedTrace):
        maps = network.drawable.maps
        return maps[kind].weights.shape[:2] if kind in maps else (0, 0)
    return (network.encoder_layers if kind == "encoder" else network.decoder_layers), network.heads
