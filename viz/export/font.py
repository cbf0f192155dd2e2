"""The font of a file: the one that the app is set in, cut down to the letters of the file, with its licence.

Streamlit brings Source Sans (SIL Open Font License 1.1, https://openfontlicense.org), as one font of all weights.
Copyright and licence stay in the font's own table of names and are said beside it. A font that was changed may not
bear the reserved name "Source", so it is called otherwise inside; style sheets find it by the name that they ask for.
"""

from __future__ import annotations

import base64
import functools
import io
import re
from collections.abc import Iterable

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

from ..streamlit_internals import font_file

FAMILY = "Source Sans"
"""What every style sheet and figure of the app asks for first."""
OWN_NAME = "AttenscopeSans"
"""What the cut font is called inside."""
TYPED = frozenset(
    map(chr, (*range(0x20, 0x7F), *range(0xA0, 0x250), *range(0x2010, 0x2040), 0x20AC, 0x2190, 0x2192, 0x2212))
)
"""What a file has where text is typed later: Latin letters with all their marks, punctuation, the signs of captions."""
FEATURES = ["kern", "liga", "ccmp", "locl", "mark", "mkmk", "tnum", "lnum"]
"""Of the font's layout tables: letters that stand well together, and numbers that stand below each other."""
_LEGAL_NAMES = (0, 13, 14)
"""Of the table of names: copyright, licence, and where the licence stands."""
_RESERVED = re.compile(r"Source\w*")
_KEPT_NAMES = [*_LEGAL_NAMES, 1, 2, 3, 4, 5, 6]


def is_slanted(styles: Iterable[str]) -> bool:
    """Whether any of these style sheets asks for italic letters."""
    return any("font-style: italic" in one for one in styles)


def font_faces(text: str, *, italic: bool) -> str:
    """The rules of a style sheet for the letters that `text` is made of, in the weights from 200 to 900.

    `italic`: the slanted letters too.
    """
    letters = frozenset(text)
    return "".join(_face(letters, one) for one in ([False, True] if italic else [False]))


@functools.lru_cache(maxsize=32)
def _face(letters: frozenset[str], italic: bool) -> str:
    """One rule, after what is to be said of its font. A file and the pictures taken of it share one."""
    data, notice = _cut(letters, italic)
    source = f"data:font/woff2;base64,{base64.b64encode(data).decode()}"
    style = "italic" if italic else "normal"
    look = f'font-family: "{FAMILY}"; font-style: {style}; font-weight: 200 900'
    return f'/* {notice} */\n@font-face {{ {look}; src: url("{source}") format("woff2"); }}\n'


def _cut(letters: frozenset[str], italic: bool) -> tuple[bytes, str]:
    """The font with these letters alone, as WOFF2, and what is to be said of it."""
    font = TTFont(io.BytesIO(_typed(italic)) if letters <= TYPED else font_file(italic=italic))
    _subset(font, letters)
    names = font["name"]
    notice = " ".join(str(names.getDebugName(one)).replace("*/", "") for one in _LEGAL_NAMES[:2])
    for record in names.names:
        if record.nameID not in _LEGAL_NAMES:
            record.string = _RESERVED.sub(OWN_NAME, str(record))
    return _written(font, "woff2"), f"{FAMILY}, cut to the letters of this page. {notice}"


@functools.cache
def _typed(italic: bool) -> bytes:
    """The letters that most files have some of: cutting these again takes a fifth of the time that all take."""
    font = TTFont(font_file(italic=italic))
    _subset(font, TYPED)
    return _written(font, None)


def _subset(font: TTFont, letters: frozenset[str]) -> None:
    options = Options(layout_features=FEATURES, name_IDs=_KEPT_NAMES, notdef_outline=True, hinting=False)
    cutter = Subsetter(options)
    cutter.populate(text="".join(sorted(letters)))
    cutter.subset(font)


def _written(font: TTFont, flavour: str | None) -> bytes:
    font.flavor = flavour
    data = io.BytesIO()
    font.save(data)
    return data.getvalue()
