"""Run the pages of a talk's scenes without a browser, and collect their views into one HTML file."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from attenscope.language import bind_language, current_language, join_sentences, say, to_say, use_language
from attenscope.viz import visitor_language
from attenscope.viz.engine.pack_checkpoint import (
    EngineModel,
    WeightForm,
    encode_palette,
    estimate_file_size,
    find_packable_model,
    pack_model,
)
from attenscope.viz.export.offline_html import build_talk_page
from attenscope.viz.export.parts import REMARKS_ROLE, LiveSlide, Slide
from attenscope.viz.export.share_menu import SavedView
from attenscope.viz.figures.figure_style import DARK, LIGHT, Palette
from attenscope.viz.streamlit_internals import PageRun, allow_caches_outside_of_runs, start_component_runtime
from attenscope.viz.talk import attachments, scenes
from attenscope.viz.talk.attachments import AttachedFile, build_scene_session_values
from attenscope.viz.talk.checks import check_talk, find_scene_model, find_scene_trace_or_config
from attenscope.viz.talk.scenes import Scene, Talk
from attenscope.viz.ui import cache as ui_cache
from attenscope.viz.ui import style
from attenscope.viz.ui.addresses.page_registry import PAGE_TITLES
from attenscope.viz.ui.addresses.shared import LANGUAGE
from attenscope.viz.web.page_components import COLLECTED_VIEWS

if TYPE_CHECKING:
    from attenscope.network.config import TransformerConfig

# A scene's page is run once without a browser, and hands over what it would save (:mod:`viz.export.save`).
#
# Each run has a session of its own, so no visitor sees anything of it. A talk can hold whatever a page's menu can save,
# so no page is written twice.


PAGES_FOLDER = Path(__file__).parents[1] / "pages"
PAGE_RUN_TIMEOUT = 120.0
"""Seconds that one run of a page may take: the first loads the model."""
MOST_PAGE_RUNS = 60
"""A page whose decoding is still under way is run again, so often at most, a second apart."""
MISSING_SCENE_TEXT = to_say("This scene is shown by the app only: open the page {page} there.")


def build_talk_file(
    talk: Talk,
    models: Mapping[str, TransformerConfig | None],
    palette: Palette,
    made: date,
    progress: Callable[[int], None] = lambda number: None,
    form: WeightForm = "half",
    beside: Mapping[str, AttachedFile] | None = None,
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
        with use_language(LANGUAGE.value_of(scene.view.get(LANGUAGE.name, "")) or current_language()):
            drawn.append(build_scene_slides(scene, talk, models, (palette, other), beside or {}))
    slides, others = ([one[at] for one in drawn] for at in range(2))
    names = {one.live.model: None for one in slides if one.live}
    packed = [pack_model(one, form) for one in filter(None, map(_load_packable_model, names))]
    return build_talk_page(talk.title, slides, palette, made, packed, (others, other))


def build_scene_slides(
    scene: Scene,
    talk: Talk,
    models: Mapping[str, TransformerConfig | None],
    palettes: Sequence[Palette],
    beside: Mapping[str, AttachedFile],
) -> list[Slide]:
    """One scene of a talk, in the colours of each palette."""
    texts = (scene.notes, scene.point, scene.hide, (*scene.omit, REMARKS_ROLE))
    build_slide = partial(Slide, scene.title, minutes=scene.minutes)
    checked = check_talk(replace(talk, scenes=(scene,)), models, beside)
    if not checked.shown:
        left_out = build_slide(None, *texts, missing=join_sentences(*(one.text for one in checked.mistakes)))
        return [left_out] * len(palettes)
    views = collect_savable_views(scene.page, scene.query(talk.model), build_scene_session_values(scene, beside))
    if not views:
        missing = say(MISSING_SCENE_TEXT, page=say(PAGE_TITLES[scene.page]))
        return [build_slide(None, *texts, missing=missing)] * len(palettes)
    (shown,) = checked.shown
    model = find_scene_model(scene, talk, models)
    drawn = [views[-1].view(palette) for palette in palettes]
    lives = [_build_live_slide(shown, model, views[-1], palette) for palette in palettes]
    choices = tuple(map(scene.choice_text, shown.guess))
    clicked = scenes.build_choice_click_data(shown, find_scene_trace_or_config(scene, talk, models, beside))
    found = zip(drawn, lives, strict=True)
    return [build_slide(view, *texts, live=live, guess=choices, clicked=clicked) for view, live in found]


def _build_live_slide(scene: Scene, model: str, view: SavedView, palette: Palette) -> LiveSlide | None:
    """Return how a slide takes sentences; None where its scene is not live or a file cannot hold its model."""
    if not scene.live or _load_packable_model(model) is None:
        return None
    look = encode_palette(scenes.build_live_look(scene, palette))
    begun = {"sentence": view.facts["sentence"], "saved": dict(view.decoded), "palette": look}
    return LiveSlide(model, scenes.build_live_scene_state(scene) | begun)


def _load_packable_model(model: str) -> EngineModel | None:
    return find_packable_model(ui_cache.load_runnable_model(model))


def collect_savable_views(
    page: str, view: Mapping[str, str], session: Mapping[str, Any] | None = None
) -> Sequence[SavedView]:
    """Return what the page offers to save at this address; nothing where it has nothing to save or lacks what it needs.

    The page speaks the current language. `session` is what its session holds at first. Raises RuntimeError when it
    does not come to an end.
    """
    views: list[SavedView] = []
    run = PageRun(
        PAGES_FOLDER / f"{page}.py",
        {COLLECTED_VIEWS: views, visitor_language.LANGUAGE_KEY: current_language(), **(session or {})},
    )
    for _ in range(MOST_PAGE_RUNS):
        elements = run.run(view, PAGE_RUN_TIMEOUT)
        if views or not _is_page_still_decoding(elements):
            break
        time.sleep(1)
    return views


def _is_page_still_decoding(elements: Any) -> bool:
    """Whether the page says that it is still decoding: it then has a button to stop."""
    return any(button.key == "stop" for button in elements.button)


def start_streamlit_runtime_without_server() -> None:
    """Start the runtime that pages need where no app is served; call it before anything draws components."""
    start_component_runtime(PAGES_FOLDER.parents[1] / "app.py")
    allow_caches_outside_of_runs()


# The button that saves a whole talk as one file.


TALK_FILE_HELP = to_say(
    "The whole talk as one HTML file for a USB stick: no server, no network. Making it takes a second or so a scene."
)
LIVE_SCENES_HELP = to_say("Its live scenes bring their model along.")


def draw_save_talk_button(talk: Talk, models: Mapping[str, TransformerConfig | None]) -> None:
    """Draw the button; the file is made once it is pressed, in the colours that the visitor sees."""
    there = attachments.get_attached_files() if attachments.list_talk_file_names(talk) else {}
    live = {find_scene_model(one, talk, models) for one in check_talk(talk, models, there).shown if one.live}
    sizes = [estimate_file_size(one.parameters, "half") for one in ui_cache.load_model_summaries() if one.name in live]
    name = re.sub(r"[^\w]+", "-", talk.title.lower(), flags=re.ASCII).strip("-") or "talk"
    st.download_button(
        say("One file (about {size:.0f} MB)", size=sum(sizes) / 1e6) if sizes else say("One file"),
        partial(bind_language(build_talk_file), talk, models, style.get_palette(), date.today(), beside=there),
        f"{name}.html",
        "text/html",
        key="talk-one-file",
        type="tertiary",
        help=join_sentences(say(TALK_FILE_HELP), say(LIVE_SCENES_HELP) if sizes else ""),
        on_click="ignore",
        disabled=not talk.scenes,
    )
