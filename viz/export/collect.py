"""A scene's page run once without a browser, to hand over what it would save (:mod:`viz.export.save`).

Each run has a session of its own, so nothing of it is seen by a visitor, and whatever a page can save by its menu a
talk can hold: no page is written twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from model.language.current import current_language, speaking
from model.language.say import say, sentences, to_say

from .. import language
from ..components.presenter import COLLECTED
from ..figures.palette import DARK, LIGHT
from ..streamlit_internals import PageRun, allow_caches_outside_of_runs, start_runtime
from ..talk import guess, live
from ..talk.beside import File, session_of
from ..talk.checks import check, model_of, network_of
from ..ui.addresses.pages import TITLES
from ..ui.addresses.shared import LANGUAGE
from .packed_models import packable, packed_model, palette_of
from .page import talk_page
from .parts import REMARKS, LiveSlide, Slide, View

if TYPE_CHECKING:
    from model.checkpoint.load import Checkpoint
    from model.network.config import TransformerConfig

    from ..engine.package import Form
    from ..figures.palette import Palette
    from ..talk.scenes import Scene, Talk
    from .save import SavedView

PAGES = Path(__file__).parents[1] / "pages"
PATIENCE = 120.0
"""Seconds that one run of a page may take: the first loads the model."""
ROUNDS = 60
"""A page whose decoding is still under way is run again, so often at most, a second apart."""
MISSING = to_say("This scene is shown by the app only: open the page {page} there.")


def talk_file(
    talk: Talk,
    models: Mapping[str, TransformerConfig | None],
    palette: Palette,
    made: date,
    progress: Callable[[int], None] = lambda number: None,
    form: Form = "half",
    beside: Mapping[str, File] | None = None,
) -> str:
    """The whole talk as one HTML file; `models` are those there are, by name. It opens in the colours of `palette`.

    `progress` is called with the number of scenes that are done. A scene that cannot be shown becomes a slide that says
    why. A scene speaks the language of its address, all else the current one. Each model that a live scene asks for
    stands in the file once, in this `form`. `beside` are the files that scenes name, by name.
    """
    other = LIGHT if palette == DARK else DARK
    drawn = []
    for at, scene in enumerate(talk.scenes):
        progress(at)
        with speaking(LANGUAGE.value_of(scene.view.get(LANGUAGE.name, "")) or current_language()):
            drawn.append(slide(scene, talk, models, (palette, other), beside or {}))
    slides, others = ([one[at] for one in drawn] for at in range(2))
    names = {one.live.model: None for one in slides if one.live}
    packed = [packed_model(one, form) for one in filter(None, map(_packable, names))]
    return talk_page(talk.title, slides, palette, made, packed, (others, other))


def slide(
    scene: Scene,
    talk: Talk,
    models: Mapping[str, TransformerConfig | None],
    palettes: Sequence[Palette],
    beside: Mapping[str, File],
) -> list[Slide]:
    """One scene of a talk, in the colours of each palette."""
    texts = (scene.notes, scene.point, scene.hide, (*scene.omit, REMARKS))
    checked = check(replace(talk, scenes=(scene,)), models, beside)
    if not checked.shown:
        left_out = Slide(scene.title, None, *texts, missing=sentences(*(one.text for one in checked.mistakes)))
        return [left_out] * len(palettes)
    views = collect(scene.page, scene.query(talk.model), session_of(scene, beside))
    if not views:
        missing = say(MISSING, page=say(TITLES[scene.page]))
        return [Slide(scene.title, None, *texts, missing=missing)] * len(palettes)
    (shown,) = checked.shown
    model = model_of(scene, talk, models)
    drawn = [(views[-1].view(palette), palette) for palette in palettes]
    lives = [_live(shown, model, view, palette) for view, palette in drawn]
    choices = tuple(map(scene.said, shown.guess))
    clicked = guess.clicked(shown, network_of(scene, talk, models, beside))
    found = zip(drawn, lives, strict=True)
    return [Slide(scene.title, view, *texts, live=live, guess=choices, clicked=clicked) for (view, _), live in found]


def _live(scene: Scene, model: str, view: View, palette: Palette) -> LiveSlide | None:
    """How a slide takes sentences; None where its scene is not live, or its model is none that a file can hold."""
    if not scene.live or _packable(model) is None:
        return None
    begun = {"sentence": view.facts["sentence"], "palette": palette_of(live.look(scene, palette))}
    return LiveSlide(model, live.settings(scene) | begun)


def _packable(model: str) -> Checkpoint | None:
    from ..ui import cache  # after the runtime, as all that draws components

    return packable(cache.live(model))


def collect(page: str, view: Mapping[str, str], session: Mapping[str, Any] | None = None) -> Sequence[SavedView]:
    """What the page, at this address, offers to save; nothing where it cannot be saved or asks for what is not there.

    It speaks the current language. `session` is what the session holds at first. Raises RuntimeError when it does not
    come to an end.
    """
    views: list[SavedView] = []
    run = PageRun(PAGES / f"{page}.py", {COLLECTED: views, language.KEY: current_language(), **(session or {})})
    for _ in range(ROUNDS):
        elements = run.run(view, PATIENCE)
        if views or not _working(elements):
            break
        time.sleep(1)
    return views


def _working(elements: Any) -> bool:
    """Whether the page says that it is still decoding: it then has a button to stop."""
    return any(button.key == "stop" for button in elements.button)


def begin() -> None:
    """Make what the pages need where no app is served; before anything that draws components is imported."""
    start_runtime(PAGES.parents[1] / "app.py")
    allow_caches_outside_of_runs()
