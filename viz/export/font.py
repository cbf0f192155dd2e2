"""Fonts: the font of the app, cut down to the letters of the file, with its licence.

Streamlit brings Source Sans (SIL Open Font License 1.1, https://openfontlicense.org), as one font of all weights.
Copyright and licence stay in the font's own table of names and are written beside it. A changed font may not bear the
reserved name "Source", so it has another name inside; style sheets find it by the name that they ask for."""

from __future__ import annotations

import base64
import functools
import io
import re
from collections.abc import Iterable

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

from attenscope.viz.streamlit_internals import read_font_file

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
    data, notice = _cut_font(letters, italic)
    source = f"data:font/woff2;base64,{base64.b64encode(data).decode()}"
    style = "italic" if italic else "normal"
    look = f'font-family: "{FONT_FAMILY}"; font-style: {style}; font-weight: 200 900'
    return f'/* {notice} */\n@font-face {{ {look}; src: url("{source}") format("woff2"); }}\n'


def _cut_font(letters: frozenset[str], italic: bool) -> tuple[bytes, str]:
    """The font with these letters alone, as WOFF2, and what is to be said of it."""
    font = TTFont(
        io.BytesIO(_cut_typeable_font(italic)) if letters <= TYPEABLE_LETTERS else read_font_file(italic=italic)
    )
    _subset_font(font, letters)
    names = font["name"]
    notice = " ".join(str(names.getDebugName(one)).replace("*/", "") for one in _LEGAL_NAME_IDS[:2])
    for record in names.names:
        if record.nameID not in _LEGAL_NAME_IDS:
            record.string = _RESERVED_FONT_NAME.sub(CUT_FONT_NAME, str(record))
    return _encode_font(font, "woff2"), f"{FONT_FAMILY}, cut to the letters of this page. {notice}"


@functools.cache
def _cut_typeable_font(italic: bool) -> bytes:
    """The letters that most files have some of: cutting these again takes a fifth of the time that all take."""
    font = TTFont(read_font_file(italic=italic))
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
