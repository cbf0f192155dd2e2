"""Scenes that take sentences from the audience: by the app's server, and by the model in a talk's one file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from model.language.say import say

from ..figures.palette import Look, Palette
from ..ui.addresses.decode import CROSS, EARLY, METHOD, OWN, PENALTY, STEP, WAY, WIDTH
from ..ui.addresses.explore import ORDER, VIEW
from ..ui.addresses.pages import PAGES
from ..ui.addresses.pins import PIN
from ..ui.addresses.shared import CHANGES, COLOURS, HEAD, KIND, LAYER, MODEL, SCALE, SENTENCE

if TYPE_CHECKING:
    from ..ui.url_state.parameter import Parameter
    from .scenes import Scene

VIEWS = ("heatmap", "links", "text")
METHODS = ("greedy", "beam")
HEEDED: Mapping[str, tuple[Parameter[Any], ...]] = {
    "explore": (MODEL, SENTENCE, KIND, LAYER, HEAD, CHANGES, SCALE, COLOURS, VIEW, PIN, ORDER),
    "decode": (MODEL, SENTENCE, CHANGES, SCALE, COLOURS, METHOD, WIDTH, PENALTY, EARLY, CROSS, OWN, STEP, PIN, WAY),
}
"""By page, what the file heeds for a sentence that is typed, and what is of the scene's own sentence alone."""


def obstacle(scene: Scene) -> str:
    """Why a scene cannot be live; "" where it can."""
    if scene.trace or scene.arrays:
        return say("a file beside the talk takes no sentences")
    value = lambda of: of.value_of(scene.view.get(of.name, ""))  # noqa: E731
    if scene.page == "explore" and value(VIEW) in VIEWS:
        return ""
    if scene.page == "decode" and value(METHOD) in METHODS:
        return ""
    return say("only heatmap, links and text on Explore, and greedy and beam on Decode, take sentences")


def unheeded(scene: Scene) -> list[str]:
    """The names in a live scene's view that One file does not heed for a sentence that is typed."""
    heeded = {one.name for one in HEEDED[scene.page]}
    return [name for name in scene.view if name in PAGES[scene.page].parameters and name not in heeded]


def look(scene: Scene, palette: Palette) -> Look:
    """How the pictures of a scene are coloured."""
    view = scene.view
    return Look(palette, COLOURS.value_of(view.get(COLOURS.name, "")), SCALE.value_of(view.get(SCALE.name, "")))


def settings(scene: Scene) -> dict[str, Any]:
    """How a file shows a sentence that is typed into a live scene, as viz/export/live/state.js begins with it."""
    value = lambda of: of.value_of(scene.view.get(of.name, ""))  # noqa: E731
    if scene.page == "explore":
        place = {"layer": value(LAYER) - 1, "head": value(HEAD) - 1}
        return {"view": value(VIEW), "kind": value(KIND), "place": place, "changes": value(CHANGES)}
    heads = {"crossHead": value(CROSS), "ownHead": value(OWN)}
    beam = value(WIDTH) if value(METHOD) == "beam" else 1
    search = {"alpha": value(PENALTY), "stop": "early" if value(EARLY) else "proven"}
    chosen = {name: head for name, head in heads.items() if head}
    return {"view": "decode", "beam": beam, "search": search, "chosen": chosen, "changes": value(CHANGES)}
