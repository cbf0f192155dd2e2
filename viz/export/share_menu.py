"""What the menu Share of every page saves: pictures for slides, one HTML file with the whole view, and the numbers.

A page describes its view (:class:`SavedView`), in whichever palette is chosen, and calls :func:`register_savable_view`
once. The visitor's browser takes PNG and SVG from the very file that can be saved, drawn out of sight: so they look
alike, in light or dark whatever the page is in, and need nothing installed. The export of a talk uses the same views:
where a scene is collected (:mod:`viz.export.collect`), the view is handed over instead of a menu being drawn.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from html import escape
from typing import TYPE_CHECKING, Any, ParamSpec
from urllib.parse import quote

import streamlit as st

from attenscope.atomic_write import format_csv, replace_lone_surrogates
from attenscope.language import bind_language, say, to_say
from attenscope.trace import AttentionTrace
from attenscope.viz.export.offline_html import build_view_page
from attenscope.viz.export.parts import Chart, Component, Part, View, flatten_parts
from attenscope.viz.figures.figure_style import DARK, LIGHT, Palette
from attenscope.viz.ui import controls, style
from attenscope.viz.ui.captions import draw_caption
from attenscope.viz.web.page_components import COLLECTED_VIEWS, draw_save_buttons

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

Arguments = ParamSpec("Arguments")
SESSION_BINDING: dict[str, Any] = {"persist_state": "session"}
"""Binding of the controls of the menu, which no address holds."""
PALETTES_BY_SCHEME = {to_say("light"): LIGHT, to_say("dark"): DARK}
PICTURE_SCALES = (1, 2, 3, 4)
PICTURE_ROLES = ("picture", "decoding")
"""Roles of the parts that PNG and SVG show."""
FILMED_COMPONENTS = ("decode_player", "pipeline", "snapshots")
"""Components that say of themselves how they move: their root has a ``film``."""
LONGEST_NOTES = 8000


@dataclass(frozen=True, eq=False)
class SavedView:
    """What can be saved of a view. Its functions run only once the menu is open, and use no Streamlit."""

    name: str
    """The name of the files, without their endings."""
    parts: Callable[[Palette], Sequence[Part]]
    """What the view is made of, in the colours asked for; those of :data:`PICTURE_ROLES` become PNG and SVG."""
    numbers: Callable[[], pd.DataFrame] | None = None
    title: str = ""
    """The title of the file; its name where there is none."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What is needed to make the view again, by name; see :func:`collect_trace_facts`."""
    files: Mapping[str, tuple[str, Callable[[], bytes]]] = field(default_factory=dict)
    """Anything else: by the file's name, what the visitor reads for it and its bytes."""
    width: int = 860
    """CSS pixels that a picture at 1x is wide."""
    decoded: Mapping[str, Any] = field(default_factory=dict)
    """Of a decoding the ids that it shows and the sequences forbidden in it, by the names of the state of
    viz/export/live/state.js: a live scene goes on from them."""

    def view(self, palette: Palette) -> View:
        return View(self.title or self.name, self.parts(palette), self.facts)


def build_figure_view(
    name: str,
    figure: Callable[[Palette], go.Figure],
    numbers: Callable[[], pd.DataFrame],
    alt: str,
    facts: Mapping[str, str] | None = None,
) -> SavedView:
    """A view that is one plotly figure; `alt` says what it shows and stands above it in the file."""
    return SavedView(name, lambda palette: [Chart(figure(palette), alt)], numbers, alt, facts or {})


def collect_trace_facts(trace: AttentionTrace, **more: str) -> dict[str, str]:
    """Model, hash, sentence, translation and settings of a run; `more` goes before the settings."""
    settings = {"settings": json.dumps(dict(trace.settings), ensure_ascii=False)} if trace.settings else {}
    found = {"model": trace.model, "hash": trace.model_hash, "sentence": trace.source, "translation": trace.target}
    return {name: value for name, value in (found | more | settings).items() if value}


OFFERED_VIEW = "view to save"
"""The session key of the view that the page shows now."""


def register_savable_view(what: SavedView | Callable[[], SavedView]) -> None:
    """Let a view be saved from the menu Share; in a scene that is being exported, hand the view over instead.

    A function describes the view once that is asked for.
    """
    if COLLECTED_VIEWS in st.session_state:
        st.session_state[COLLECTED_VIEWS].append(what() if callable(what) else what)
    else:
        st.session_state[OFFERED_VIEW] = what


def unregister_savable_view() -> None:
    """Forget the view that was offered: the page is about to draw another, or none."""
    st.session_state.pop(OFFERED_VIEW, None)


def view_fragment(draw: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """As ``st.fragment``, for what draws a page's view: a run of it alone, without the page's frame, offers it anew."""

    @st.fragment
    @functools.wraps(draw)
    def draw_view(*given: Arguments.args, **named: Arguments.kwargs) -> None:
        unregister_savable_view()
        draw(*given, **named)

    return draw_view


def draw_save_controls() -> None:
    """Draw what saves the view that the page has offered, if it has."""
    if what := st.session_state.get(OFFERED_VIEW):
        _draw_save_menu_items(what() if callable(what) else what)


def _draw_save_menu_items(what: SavedView) -> None:
    scheme = _draw_choice(
        say("Colours"),
        tuple(PALETTES_BY_SCHEME),
        "save-scheme",
        "dark" if style.get_palette() == DARK else "light",
        say,
    )
    palette = PALETTES_BY_SCHEME[scheme]
    if has_picture(what.parts(palette)):
        _draw_picture_buttons(what, palette)
    notes = _draw_notes_field()
    file = f"{what.name}.html"
    other = PALETTES_BY_SCHEME["light" if scheme == "dark" else "dark"]
    also = lambda: (what.view(other), other)  # noqa: E731
    page = lambda: build_view_page(what.view(palette), palette, date.today(), notes[0], also=also())  # noqa: E731
    _draw_download_button(say("Interactive page (HTML)"), page, file, "text/html", key="save-page")
    with st.expander(say("In another page")):
        draw_caption(say("Put the file beside your page, and this line into it:"))
        st.code(build_iframe_html(file, what.title or what.name), language="html", wrap_lines=True)
    if numbers := what.numbers:
        _draw_download_button(
            say("Numbers (CSV)"), lambda: table_csv(numbers()), f"{what.name}.csv", "text/csv", key="save-numbers"
        )
    for name, (label, made) in what.files.items():
        _draw_download_button(label, made, name, "application/octet-stream", key=f"save-{name}")


def build_iframe_html(file: str, title: str) -> str:
    """The line of HTML that shows a saved file in another page."""
    source = quote(replace_lone_surrogates(file))
    return f'<iframe src="{source}" title="{escape(title)}" width="960" height="640" style="border: 0"></iframe>'


def _draw_notes_field() -> list[str]:
    """The notes of the file: a list of one text, the visitor's latest, which a download finds that began before it."""
    said: list[str] = st.session_state.setdefault("save-said", [""])
    said[0] = (
        st.text_area(say("Notes in the file"), key="save-notes", max_chars=LONGEST_NOTES, height=80, **SESSION_BINDING)
        or ""
    )
    if said[0]:
        draw_caption(say("In the file, the key n shows them."))
    return said


def has_picture(parts: Sequence[Part]) -> bool:
    """Whether there is anything among `parts` that PNG and SVG are taken of, as save.js finds it."""
    return any(isinstance(part, (Chart, Component)) and part.role in PICTURE_ROLES for part in flatten_parts(parts))


def has_animated_part(parts: Sequence[Part]) -> bool:
    """Whether one of `parts` moves, so that a film can be made of it."""
    moves = lambda part: isinstance(part, Component) and part.name in FILMED_COMPONENTS  # noqa: E731
    return any(moves(part) or (isinstance(part, Chart) and bool(part.moments)) for part in flatten_parts(parts))


def _draw_picture_buttons(what: SavedView, palette: Palette) -> None:
    """The buttons PNG and SVG, and WebM and GIF of what moves; the browser draws the file of the one pressed."""
    with st.container(key="save-look", horizontal=True, vertical_alignment="center"):
        scale = _draw_choice(say("Size"), PICTURE_SCALES, "save-scale", 2, "{}×".format)
        clear = st.toggle(say("No background"), key="save-clear", **SESSION_BINDING)
    how = {"scale": scale, "clear": clear, "width": what.width}

    def request() -> None:
        st.session_state["save-request"] = dict(st.session_state["save-pictures"].take)

    take = st.session_state.pop("save-request", None)
    page = build_view_page(what.view(palette), palette, date.today(), width=what.width) if take else ""
    moves = has_animated_part(what.parts(palette))
    draw_save_buttons(what.name, how, take, page, key="save-pictures", moves=moves, on_take=request)


def _draw_choice(label: str, options: Sequence[Any], key: str, default: Any, name: Callable[[Any], str] = str) -> Any:
    return controls.draw_untranslated_choice(
        st.segmented_control,
        label,
        options,
        default=default,
        required=True,
        format_func=name,
        key=key,
        label_visibility="collapsed",
        **SESSION_BINDING,
    )


def table_csv(table: pd.DataFrame, index: bool = True) -> str:
    """A table as CSV (:func:`model.atomic_write.format_csv`), with what names its rows."""
    levels = range(table.index.nlevels if index else 0)
    names = [*(str(table.index.names[at] or "") for at in levels), *map(str, table.columns)]
    columns = [table.index.get_level_values(at).to_numpy() for at in levels]
    columns += [table.iloc[:, at].to_numpy() for at in range(table.shape[1])]
    return format_csv(names, zip(*columns, strict=True))


def _draw_download_button(label: str, what: Callable[[], str | bytes], name: str, mime: str, *, key: str) -> None:
    # It is made when the button is pressed, outside of the visitor's run.
    made = bind_language(lambda: _encode_content(what()))
    st.download_button(label, made, name, mime, on_click="ignore", key=key, width="stretch")


def _encode_content(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode("utf-8", "replace")
