"""A file that shows slides: one HTML text with all code, styles and data in it, which asks the network for nothing.

The data are packed, compressed and written in base64, so that no token can end a script or be read as markup; a
content security policy names the only scripts that may run by their hashes and forbids every connection. Plotly, where
a chart needs it, stands in the file once and compressed (1.9 MB instead of 4.8).
"""

from __future__ import annotations

import base64
import functools
import gzip
import html
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from plotly.offline import get_plotlyjs

from model.atomic_write import whole_characters
from model.language.catalogue import TAGS
from model.language.current import current_language
from model.language.say import say

from ..components.bundle import style
from ..components.packing import header_text, pack
from ..figures.stage import staged
from .font import TYPED, font_faces, is_slanted
from .packed_models import PackedModel, engine_elements, model_elements, model_facts
from .parts import Chart, Columns, Component, LiveSlide, Part, Slide, View, Words, leaves
from .scripts import component_code, hash_of, scoped
from .slides import described

if TYPE_CHECKING:
    from ..figures.palette import Palette

BROWSER = Path(__file__).parent / "browser"
# The names of the theme that Streamlit hands to components; a file has to say them itself.
PAGE = Template("""<!doctype html>
<html lang="$language" data-scheme="$scheme"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src $scripts; \
style-src 'unsafe-inline'; img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width"><title>$title</title>
<style id="font">$font</style>
<style>
:root { --st-font: "Source Sans", system-ui, sans-serif; --st-button-radius: 0.6rem; }
$colours
$css
</style></head><body><noscript>$noscript</noscript>
<script type="text/plain" data-of="$scheme" id="content">$content</script>
$others<script type="text/plain" id="plotly">$plotly</script>
$engine<script>$code</script>$models</body></html>
""")
COLOURS = Template(""":root[data-scheme="$scheme"] { color-scheme: $scheme; --st-text-color: $ink;
  --st-primary-color: $accent; --st-border-color: $line; --st-background-color: $background; --soft: $soft; }""")
OTHER = Template("""<script type="text/plain" data-of="$scheme">$content</script>
""")
"""The same slides in other colours, which the address may ask for."""
LIVE = Path(__file__).parent / "live"
BALLOT = Path(__file__).parents[1] / "components" / "presenter" / "ballot.css"
BESIDE_TILES = (0.36, 0.64)
"""Widths of the tiles of all heads and of the picture, which is what is shown, on the stage (talk/presented.css)."""
LIVE_POLICY = "'wasm-unsafe-eval'; worker-src blob:"
"""What a page that runs a model may do beside its scripts."""
LIVE_COMPONENTS = {"decode": ("decode_player", "beam_tree", "versions")}
"""What a live slide draws, by its view; one of a head has that view, the overview and the translation."""


def view_page(
    view: View,
    palette: Palette,
    made: date,
    notes: str = "",
    width: int = 0,
    also: tuple[View, Palette] | None = None,
) -> str:
    """One view as a file; with a `width` in pixels, laid out that wide and without margins, as for a picture of it.

    `also` is the same view in other colours, for who asks for them in the address (``#theme=dark``).
    """
    fixed = f"main {{ width: {width}px; max-width: none; padding: 0; }}" if width else ""
    looks = [(view, palette), *([also] if also else [])]
    if not width:  # The file says its title above all, a picture only by the heading in it.
        looks = [(replace(one, parts=tuple(_without_title(one))), colours) for one, colours in looks]
    shown = [((Slide(one.title, one, notes),), colours) for one, colours in looks]
    return _file(view.title, shown, made, talk=False, more=fixed)


def _without_title(view: View) -> Iterator[Part]:
    return (
        part
        for part in view.parts
        if not (isinstance(part, Words) and part.size == "heading" and part.text == view.title)
    )


def talk_page(
    title: str,
    slides: Sequence[Slide],
    palette: Palette,
    made: date,
    models: Sequence[PackedModel] = (),
    also: tuple[Sequence[Slide], Palette] | None = None,
) -> str:
    """A whole talk as a file: slides that keys go through. `models` are those that live slides name.

    `also` are the same slides in other colours, for who asks for them in the address.
    """
    looks = [(slides, palette), *([also] if also else [])]
    shown = [
        ([replace(one, view=one.view and replace(one.view, parts=tuple(_staged(one.view.parts)))) for one in of], look)
        for of, look in looks
    ]
    return _file(title, shown, made, talk=True, models=models)


def _staged(parts: Sequence[Part]) -> Iterator[Part]:
    """The parts as they are projected: figures that are read from the back row."""
    for part in parts:
        if isinstance(part, Chart):
            yield replace(part, figure=staged(part.figure))
        elif isinstance(part, Columns):
            beside_tiles = any(one.role == "heads" for one in leaves(part.columns[0]))
            shares = BESIDE_TILES if beside_tiles and part.shares[0] > BESIDE_TILES[0] else part.shares
            yield replace(part, columns=tuple(tuple(_staged(one)) for one in part.columns), shares=shares)
        else:
            yield part


def _file(
    title: str,
    looks: Sequence[tuple[Sequence[Slide], Palette]],
    made: date,
    *,
    talk: bool,
    more: str = "",
    models: Sequence[PackedModel] = (),
) -> str:
    slides = looks[0][0]
    every = [part for slide in slides for part in leaves(slide.parts)]
    names = {part.name for part in every if isinstance(part, Component)}
    names |= {name for slide in slides if slide.live for name in _drawn_live(slide.live)}
    live = scoped(LIVE / "scene.js") if models else "null"
    code = f"{component_code(sorted(names))}{scoped(BROWSER / 'page.js')}(components, {live});"
    charts = any(isinstance(part, Chart) for part in every)
    hashes = [hash_of(code)] + ([hash_of(get_plotlyjs())] if charts else [])
    styles = {name: style(name) for name in sorted(names)}
    header = {
        "title": title,
        "talk": talk,
        "made": made.isoformat(),
        "styles": styles,
        "models": model_facts(models),
    }
    found = [described(of, models) for of, _ in looks]
    contents = [_compressed(pack(header | {"slides": of}, body)) for of, body in found]
    letters = _letters([header, found[0][0]], every, code, bool(models))
    schemes = [_scheme(palette) for _, palette in looks]
    sheets = [BROWSER / "page.css", BALLOT, *([LIVE / "sentence.css"] if models else [])]
    written = PAGE.substitute(
        language=TAGS.get(current_language(), current_language()),
        title=html.escape(title),
        noscript=html.escape(say("This page draws its pictures with JavaScript; please allow it."), quote=False),
        font=font_faces(letters, italic=is_slanted(styles.values())),
        scripts=" ".join([*(f"'sha256-{one}'" for one in hashes), *([LIVE_POLICY] if models else [])]),
        scheme=schemes[0],
        colours="\n".join(COLOURS.substitute(vars(palette), scheme=_scheme(palette)) for _, palette in looks),
        css="".join(sheet.read_text(encoding="utf-8") for sheet in sheets) + more,
        content=contents[0],
        others="".join(OTHER.substitute(scheme=s, content=c) for s, c in zip(schemes[1:], contents[1:], strict=True)),
        plotly=_plotly() if charts else "",
        engine=engine_elements() if models else "",
        code=code,
        models=model_elements(models),
    )
    return whole_characters(written)


def _letters(written: Any, parts: Sequence[Part], code: str, takes_text: bool) -> str:
    """All that a page may write: what stands in it, what its scripts say, and what is typed where it takes text."""
    packed = [header_text(one.data) for one in parts if isinstance(one, Component) and isinstance(one.data, bytes)]
    letters = [json.dumps(written, ensure_ascii=False), code, *packed, *(TYPED if takes_text else ())]
    return whole_characters("".join(letters))


def _drawn_live(live: LiveSlide) -> Sequence[str]:
    """The components that a live slide draws."""
    view = live.settings["view"]
    return LIVE_COMPONENTS.get(view, ("overview", "tokens", view))


def _compressed(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


@functools.cache
def _plotly() -> str:
    return _compressed(get_plotlyjs().encode())


def _scheme(palette: Palette) -> str:
    return "dark" if sum(int(palette.background[at : at + 2], 16) for at in (1, 3, 5)) < 3 * 128 else "light"
