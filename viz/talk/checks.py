"""What a talk asks for and this app does not have: a page, a model, a head. Each with its line and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from model.interventions.changes import HeadChange, InterventionError, parse

from .scenes import Mistake, Scene, Talk

if TYPE_CHECKING:
    from model.network.config import TransformerConfig

PAGES = tuple(sorted({page.stem for page in (Path(__file__).parents[1] / "pages").glob("*.py")} - {"talk"}))
COMMON = {"sentence", "model", "rows", "scale", "colours"}
KNOWN: dict[str, set[str]] = {
    "explore": COMMON
    | {"kind", "layer", "head", "view", "order", "words", "hide", "numbers", "threshold", "layout", "flow", "norms"}
    | {"mean", "step", "beside", "pin", "changes", "pictures", "forced", "given"}
    | {"with", "with-kind", "with-layer", "with-head", "with-sentence", "with-model"},
    "decode": COMMON
    | {"method", "temperature", "top-k", "top-p", "seed", "width", "penalty", "early", "given", "begin", "never"}
    | {"branch", "without", "way", "step", "cross", "own", "changes"},
    "positions": COMMON
    | {"plot", "table", "positions", "d_model", "base", "form", "arranged", "pos", "dim", "kind", "layer", "head"}
    | {"move", "sides", "by", "factor", "start", "draw", "one", "other"}
    | {"shift", "piece", "side", "measure", "waves", "dims", "part"},
}
"""What the addresses of pages can say; of a page that is not listed, anything is taken."""


@dataclass(frozen=True)
class Checked:
    """A talk beside what is wrong with it."""

    talk: Talk
    mistakes: tuple[Mistake, ...]
    shown: tuple[Scene, ...]
    """The scenes that can be shown: those that ask for nothing that is missing."""


def check(talk: Talk, models: Mapping[str, TransformerConfig]) -> Checked:
    """Hold every scene against the pages and the `models` there are, by name; the first is the default."""
    mistakes: list[Mistake] = []
    shown = []
    for number, scene in enumerate(talk.scenes, 1):
        missing = list(_missing(scene, talk, models))
        mistakes += [_told(number, scene, *one) for one in (*missing, *_unknown(scene))]
        if not missing:
            shown.append(scene)
    return Checked(talk, tuple(mistakes), tuple(shown))


def _told(number: int, scene: Scene, key: str, text: str) -> Mistake:
    line = scene.lines.get(key, scene.lines.get("", 0))
    return Mistake(line, text if line else f"Scene {number}: {text}")


def _missing(scene: Scene, talk: Talk, models: Mapping[str, TransformerConfig]) -> Iterator[tuple[str, str]]:
    """What the scene cannot be shown without: the key that asks for it, and what to do."""
    if scene.page not in PAGES:
        yield "page", f"There is no page {scene.page!r}, so the scene is left out; use {', '.join(PAGES)}."
        return
    name = scene.view.get("model") or talk.model or next(iter(models), "")
    if name not in models:
        there = ", ".join(models) or "none yet"
        yield "view.model", f"There is no model {name!r}, so the scene is left out; models here: {there}."
        return
    for key, kind, layer, head in _heads(scene):
        config = models[name]
        layers = config.encoder_layers if kind == "encoder" else config.decoder_layers
        if not (1 <= layer <= layers and 1 <= head <= config.heads):
            what = f"There is no layer {layer}, head {head} in the {kind} attention of {name}, so the scene is left out"
            yield key, f"{what}; it has layers 1 to {layers} and heads 1 to {config.heads}."
    try:
        parse(scene.view.get("changes", ""))
    except InterventionError as error:
        yield "view.changes", str(error)


def _heads(scene: Scene) -> Iterator[tuple[str, str, int, int]]:
    """Every head a scene names: the key, the kind of attention, layer and head from 1."""
    view = scene.view
    if {"layer", "head"} & view.keys():
        key = "view.head" if "head" in view else "view.layer"
        yield key, view.get("kind", "cross"), _number(view.get("layer", "1")), _number(view.get("head", "1"))
    for key, kind in (("cross", "cross"), ("own", "decoder")):
        layer, dot, head = view.get(key, "").partition(".")
        if dot and scene.page == "decode":
            yield f"view.{key}", kind, _number(layer), 1 if head == "mean" else _number(head)
    try:
        changes = parse(view.get("changes", ""))
    except InterventionError:
        return
    for change in changes:
        if isinstance(change, HeadChange):
            yield "view.changes", change.kind, change.layer + 1, change.head + 1


def _unknown(scene: Scene) -> Iterator[tuple[str, str]]:
    known = KNOWN.get(scene.page)
    for name in scene.view if known else ():
        if name not in (known or ()):
            there = ", ".join(sorted(known or ()))
            yield f"view.{name}", f"The page {scene.page} knows no {name!r}, so it is passed over; it knows {there}."


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
