"""Write slides as one offline HTML file: its page, data, scripts, fonts and packed models."""

from __future__ import annotations

import base64
import functools
import gzip
import html
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from string import Template
from typing import Any

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from plotly.offline import get_plotlyjs

from attenscope.atomic_write import replace_lone_surrogates
from attenscope.language import LANGUAGE_TAGS, current_language, say
from attenscope.viz.engine.pack_checkpoint import (
    PackedModel,
    build_engine_elements,
    build_model_elements,
    collect_model_facts,
)
from attenscope.viz.export.parts import (
    Chart,
    Columns,
    Component,
    LiveSlide,
    Part,
    Slide,
    View,
    Words,
    compute_script_hash,
    encode_slides,
    flatten_parts,
)
from attenscope.viz.figures.figure_style import Palette
from attenscope.viz.figures.presentation_sizes import enlarge_fonts_for_projection
from attenscope.viz.streamlit_internals import find_font_file
from attenscope.viz.web.component_scripts import (
    build_scripts_constant,
    pack_arrays,
    read_component_style_sheet,
    read_packed_header_json,
    read_style_sheet,
)

# The page: one HTML text with all code, styles and data in it, which asks the network for nothing.
#
# The data are packed, compressed and written in base64, so that no token can end a script or be read as markup; a
# content security policy names the only scripts that may run by their hashes and forbids every connection. Plotly,
# where a chart needs it, stands in the file once and compressed (1.9 MB instead of 4.8).


# The names of the theme that Streamlit hands to components; a file has to say them itself.
PAGE_TEMPLATE = Template("""<!doctype html>
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
COLOURS_TEMPLATE = Template(""":root[data-scheme="$scheme"] { color-scheme: $scheme; --st-text-color: $ink;
  --st-primary-color: $accent; --st-border-color: $line; --st-background-color: $background; --soft: $soft; }""")
OTHER_SCHEME_TEMPLATE = Template("""<script type="text/plain" data-of="$scheme">$content</script>
""")
"""The same slides in other colours, which the address may ask for."""
TILES_PICTURE_SHARES = (0.45, 0.55)
"""Widths of the tiles of all heads and of the picture, as on the stage (talk/presented.css)."""
LIVE_POLICY = "'wasm-unsafe-eval'; worker-src blob:"
"""What the policy allows a page that runs a model besides its scripts."""
LIVE_SLIDE_COMPONENTS = {"decode": ("decode_player", "beam_tree", "versions")}
"""What a live slide draws, by its view; one of a head has that view, the overview and the translation."""


def build_view_page(
    view: View,
    palette: Palette,
    made: date,
    notes: str = "",
    width: int = 0,
    also: tuple[View, Palette] | None = None,
) -> str:
    """One view as a file; with a `width` in pixels, laid out that wide and without margins, as for a picture of it.

    `also` is the same view in other colours, shown where the address asks for them (``#theme=dark``).
    """
    fixed = f"main {{ width: {width}px; max-width: none; padding: 0; }}" if width else ""
    looks = [(view, palette), *([also] if also else [])]
    if not width:  # A file has its title at the top, a picture only the heading in it.
        looks = [(replace(one, parts=tuple(_remove_title_parts(one))), colours) for one, colours in looks]
    shown = [((Slide(one.title, one, notes),), colours) for one, colours in looks]
    return _build_page(view.title, shown, made, talk=False, more=fixed)


def _remove_title_parts(view: View) -> Iterator[Part]:
    return (
        part
        for part in view.parts
        if not (isinstance(part, Words) and part.size == "heading" and part.text == view.title)
    )


def build_talk_page(
    title: str,
    slides: Sequence[Slide],
    palette: Palette,
    made: date,
    models: Sequence[PackedModel] = (),
    also: tuple[Sequence[Slide], Palette] | None = None,
) -> str:
    """A whole talk as a file: slides that keys go through. `models` are those that live slides name.

    `also` are the same slides in other colours, shown where the address asks for them.
    """
    looks = [(slides, palette), *([also] if also else [])]
    shown = [
        (
            [
                replace(
                    one,
                    view=one.view
                    and replace(one.view, parts=tuple(_enlarge_part_fonts_for_projection(one.view.parts))),
                )
                for one in of
            ],
            look,
        )
        for of, look in looks
    ]
    return _build_page(title, shown, made, talk=True, models=models)


def _enlarge_part_fonts_for_projection(parts: Sequence[Part]) -> Iterator[Part]:
    """The parts as they are projected: figures that are read from the back row."""
    for part in parts:
        if isinstance(part, Chart):
            yield replace(
                part,
                figure=enlarge_fonts_for_projection(part.figure),
                moments=tuple(map(enlarge_fonts_for_projection, part.moments)),
            )
        elif isinstance(part, Columns):
            beside_tiles = any(one.role == "heads" for one in flatten_parts(part.columns[0]))
            shares = TILES_PICTURE_SHARES if beside_tiles else part.shares
            yield replace(
                part,
                columns=tuple(tuple(_enlarge_part_fonts_for_projection(one)) for one in part.columns),
                shares=shares,
            )
        else:
            yield part


def _build_page(
    title: str,
    looks: Sequence[tuple[Sequence[Slide], Palette]],
    made: date,
    *,
    talk: bool,
    more: str = "",
    models: Sequence[PackedModel] = (),
) -> str:
    slides = looks[0][0]
    every = [part for slide in slides for part in flatten_parts(slide.parts)]
    names = {part.name for part in every if isinstance(part, Component)}
    names |= {name for slide in slides if slide.live for name in _list_live_components(slide.live)}
    live = ["live"] if models else []
    code = f"{build_scripts_constant([*sorted(names), 'page', *live])}scripts.page(scripts, scripts.live?.scenes);"
    charts = any(isinstance(part, Chart) for part in every)
    hashes = [compute_script_hash(code)] + ([compute_script_hash(get_plotlyjs())] if charts else [])
    styles = {name: read_component_style_sheet(name) for name in sorted(names)}
    header = {
        "title": title,
        "talk": talk,
        "made": made.isoformat(),
        "styles": styles,
        "models": collect_model_facts(models),
    }
    found = [encode_slides(of, models) for of, _ in looks]
    contents = [_compress_to_base64(pack_arrays(header | {"slides": of}, body)) for of, body in found]
    letters = _collect_font_characters([header, found[0][0]], every, code, bool(models))
    schemes = [_find_colour_scheme(palette) for _, palette in looks]
    sheets = ["page", "ballot", *(["sentence_form"] if models else [])]
    written = PAGE_TEMPLATE.substitute(
        language=LANGUAGE_TAGS.get(current_language(), current_language()),
        title=html.escape(title),
        noscript=html.escape(say("This page draws its pictures with JavaScript; please allow it."), quote=False),
        font=build_font_faces(letters, italic=has_italic_style(styles.values())),
        scripts=" ".join([*(f"'sha256-{one}'" for one in hashes), *([LIVE_POLICY] if models else [])]),
        scheme=schemes[0],
        colours="\n".join(
            COLOURS_TEMPLATE.substitute(vars(palette), scheme=_find_colour_scheme(palette)) for _, palette in looks
        ),
        css="".join(map(read_style_sheet, sheets)) + more,
        content=contents[0],
        others="".join(
            OTHER_SCHEME_TEMPLATE.substitute(scheme=s, content=c)
            for s, c in zip(schemes[1:], contents[1:], strict=True)
        ),
        plotly=_compress_plotly() if charts else "",
        engine=build_engine_elements() if models else "",
        code=code,
        models=build_model_elements(models),
    )
    return replace_lone_surrogates(written)


def _collect_font_characters(written: Any, parts: Sequence[Part], code: str, takes_text: bool) -> str:
    """All that a page may write: what stands in it, what its scripts say, and what is typed where it takes text."""
    packed = [
        read_packed_header_json(one.data) for one in parts if isinstance(one, Component) and isinstance(one.data, bytes)
    ]
    letters = [json.dumps(written, ensure_ascii=False), code, *packed, *(TYPEABLE_LETTERS if takes_text else ())]
    return replace_lone_surrogates("".join(letters))


def _list_live_components(live: LiveSlide) -> Sequence[str]:
    """The components that a live slide draws."""
    view = live.settings["view"]
    return LIVE_SLIDE_COMPONENTS.get(view, ("overview", "tokens", view))


def _compress_to_base64(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


@functools.cache
def _compress_plotly() -> str:
    return _compress_to_base64(get_plotlyjs().encode())


def _find_colour_scheme(palette: Palette) -> str:
    return "dark" if sum(int(palette.background[at : at + 2], 16) for at in (1, 3, 5)) < 3 * 128 else "light"


# Fonts: the font of the app, cut down to the letters of the file, with its licence.
#
# Streamlit brings Source Sans (SIL Open Font License 1.1, https://openfontlicense.org), as one font of all weights.
# Copyright and licence stay in the font's own table of names and are written beside it. A changed font may not bear the
# reserved name "Source", so it has another name inside; style sheets find it by the name that they ask for.


FONT_FAMILY = "Source Sans"
"""What every style sheet and figure of the app asks for first."""
CUT_FONT_NAME = "AttenscopeSans"
"""What the cut font is called inside."""
TYPEABLE_LETTERS = frozenset(
    map(chr, (*range(0x20, 0x7F), *range(0xA0, 0x250), *range(0x2010, 0x2040), 0x20AC, 0x2190, 0x2192, 0x2212))
)
"""Letters of a file in which text can be typed: Latin with all marks, punctuation, the signs of captions."""
FONT_FEATURES = ["kern", "liga", "ccmp", "locl", "mark", "mkmk", "tnum", "lnum"]
"""Layout features of the font that are kept: kerning, ligatures, marks, and figures of equal width."""
_LEGAL_NAME_IDS = (0, 13, 14)
"""Entries of the table of names: copyright, licence, and address of the licence."""
_RESERVED_FONT_NAME = re.compile(r"Source\w*")
_KEPT_NAME_IDS = [*_LEGAL_NAME_IDS, 1, 2, 3, 4, 5, 6]


def has_italic_style(styles: Iterable[str]) -> bool:
    """Whether any of these style sheets asks for italic letters."""
    return any("font-style:italic" in one for one in styles)


def build_font_faces(text: str, *, italic: bool) -> str:
    """The rules of a style sheet for the letters that `text` is made of, in the weights from 200 to 900.

    `italic`: the slanted letters too.
    """
    letters = frozenset(text)
    return "".join(_build_font_face(letters, one) for one in ([False, True] if italic else [False]))


@functools.lru_cache(maxsize=32)
def _build_font_face(letters: frozenset[str], italic: bool) -> str:
    """One rule, after what is to be said of its font. A file and the pictures taken of it share one."""
    data, notice = _encode_subset_font(letters, italic)
    source = f"data:font/woff2;base64,{base64.b64encode(data).decode()}"
    style = "italic" if italic else "normal"
    look = f'font-family: "{FONT_FAMILY}"; font-style: {style}; font-weight: 200 900'
    return f'/* {notice} */\n@font-face {{ {look}; src: url("{source}") format("woff2"); }}\n'


def _encode_subset_font(letters: frozenset[str], italic: bool) -> tuple[bytes, str]:
    """The font with these letters alone, as WOFF2, and what is to be said of it."""
    font = TTFont(
        io.BytesIO(_encode_common_letters_font(italic))
        if letters <= TYPEABLE_LETTERS
        else find_font_file(italic=italic)
    )
    _subset_font(font, letters)
    names = font["name"]
    notice = " ".join(str(names.getDebugName(one)).replace("*/", "") for one in _LEGAL_NAME_IDS[:2])
    for record in names.names:
        if record.nameID not in _LEGAL_NAME_IDS:
            record.string = _RESERVED_FONT_NAME.sub(CUT_FONT_NAME, str(record))
    return _encode_font(font, "woff2"), f"{FONT_FAMILY}, cut to the letters of this page. {notice}"


@functools.cache
def _encode_common_letters_font(italic: bool) -> bytes:
    """The letters that most files have some of: cutting these again takes a fifth of the time that all take."""
    font = TTFont(find_font_file(italic=italic))
    _subset_font(font, TYPEABLE_LETTERS)
    return _encode_font(font, None)


def _subset_font(font: TTFont, letters: frozenset[str]) -> None:
    options = Options(layout_features=FONT_FEATURES, name_IDs=_KEPT_NAME_IDS, notdef_outline=True, hinting=False)
    cutter = Subsetter(options)
    cutter.populate(text="".join(sorted(letters)))
    cutter.subset(font)


def _encode_font(font: TTFont, flavour: str | None) -> bytes:
    font.flavor = flavour
    data = io.BytesIO()
    font.save(data)
    return data.getvalue()
