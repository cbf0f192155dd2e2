"""A file that shows slides: one HTML text with all code, styles and data in it, which asks the network for nothing.

The data are packed, compressed and written in base64, so that no token can end a script or be read as markup; a
content security policy names the only scripts that may run by their hashes and forbids every connection. Plotly, where
a chart needs it, stands in the file once and compressed (1.9 MB instead of 4.8).
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import html
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from plotly.offline import get_plotlyjs

from ..components.bundle import HERE, bundle, style
from ..components.packing import pack
from .parts import Chart, Columns, Component, Part, Slide, View, Words, leaves

if TYPE_CHECKING:
    from ..figures.palette import Palette

BROWSER = Path(__file__).parent / "browser"
EXPORT = re.compile(r"^export (default )?", re.MULTILINE)
DEFAULT = re.compile(r"^export default (?:async )?function (\w+)", re.MULTILINE)
# The names of the theme that Streamlit hands to components; a file has to say them itself.
PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src $hashes; \
style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width"><title>$title</title>
<style>
:root { color-scheme: $scheme; --st-font: "Source Sans", system-ui, sans-serif; --st-text-color: $ink;
  --st-primary-color: $accent; --st-border-color: $line; --st-background-color: $background;
  --st-button-radius: 0.6rem; --soft: $soft; }
$css
</style></head><body><noscript>This page draws its pictures with JavaScript; please allow it.</noscript>
<script type="text/plain" id="content">$content</script>
<script type="text/plain" id="plotly">$plotly</script>
<script>$code</script></body></html>
""")


def view_page(view: View, palette: Palette, made: date, notes: str = "", width: int = 0) -> str:
    """One view as a file; with a `width` in pixels, laid out that wide and without margins, as for a picture of it."""
    fixed = f"main {{ width: {width}px; max-width: none; padding: 0; }}" if width else ""
    return _file(view.title, (Slide(view.title, view, notes),), palette, made, talk=False, more=fixed)


def talk_page(title: str, slides: Sequence[Slide], palette: Palette, made: date) -> str:
    """A whole talk as a file: slides that keys go through."""
    return _file(title, slides, palette, made, talk=True)


def _file(title: str, slides: Sequence[Slide], palette: Palette, made: date, *, talk: bool, more: str = "") -> str:
    every = [part for slide in slides for part in leaves(slide.parts)]
    names = sorted({part.name for part in every if isinstance(part, Component)})
    code = f"{component_code(names)}{scoped(BROWSER / 'page.js')}(components);"
    charts = any(isinstance(part, Chart) for part in every)
    hashes = [hash_of(code)] + ([hash_of(get_plotlyjs())] if charts else [])
    packed = Packed()
    header = {
        "title": title,
        "talk": talk,
        "made": made.isoformat(),
        "styles": {name: style(name) for name in names},
        "slides": [_slide(slide, packed) for slide in slides],
    }
    return PAGE.substitute(
        title=html.escape(title),
        hashes=" ".join(f"'sha256-{one}'" for one in hashes),
        scheme="dark" if _is_dark(palette.background) else "light",
        ink=palette.ink,
        soft=palette.soft,
        accent=palette.accent,
        line=palette.line,
        background=palette.background,
        css=(BROWSER / "page.css").read_text(encoding="utf-8") + more,
        content=_compressed(pack(header, bytes(packed.body))),
        plotly=_plotly() if charts else "",
        code=code,
    )


@dataclass
class Packed:
    """The bytes of all components behind each other."""

    body: bytearray = field(default_factory=bytearray)

    def add(self, data: bytes) -> tuple[int, int]:
        """Where `data` stands: first byte and length."""
        self.body += data
        return len(self.body) - len(data), len(data)


def _slide(slide: Slide, packed: Packed) -> dict[str, Any]:
    return {
        "title": slide.title,
        "notes": slide.notes,
        "point": slide.point,
        "hide": slide.hide,
        "omit": slide.omit,
        "missing": slide.missing,
        "facts": dict(slide.view.facts) if slide.view else {},
        "parts": [_part(part, packed) for part in slide.parts],
    }


def _part(part: Part, packed: Packed) -> dict[str, Any]:
    if isinstance(part, Columns):
        columns = [[_part(one, packed) for one in column] for column in part.columns]
        return {"is": "columns", "columns": columns, "shares": part.shares}
    if isinstance(part, Words):
        return {"is": "words", "text": part.text, "size": part.size, "role": part.role, "marked": part.marked}
    if isinstance(part, Chart):
        figure = json.loads(part.figure.to_json())
        # A template that Streamlit has set as everybody's default draws in black; the figures say all they need.
        figure["layout"].pop("template", None)
        return {"is": "chart", "figure": figure, "alt": part.alt, "role": part.role}
    assert isinstance(part, Component)
    data = {"at": packed.add(part.data)} if isinstance(part.data, bytes) else {"data": dict(part.data)}
    return {"is": "component", "name": part.name, "role": part.role, "follows": part.follows} | data


def component_code(names: Iterable[str]) -> str:
    """The components a file shows, each in a scope of its own, as members of one constant."""
    return "const components = {};\n" + "".join(
        f"components.{name} = {scoped(HERE / name / f'{name}.js')};\n" for name in names
    )


def scoped(entry: Path) -> str:
    """The modules of `entry` as an expression: its default export."""
    source = bundle(entry)
    if "</script" in source.lower():
        raise ValueError("A script of the project holds the text </script and cannot stand in a page.")
    name = DEFAULT.findall(source)[-1]
    return f"(() => {{\n{EXPORT.sub('', source)}\nreturn {name};\n}})()"


def hash_of(code: str) -> str:
    """A script's hash, as a security policy names it."""
    return base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()


def _compressed(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


@functools.cache
def _plotly() -> str:
    return _compressed(get_plotlyjs().encode())


def _is_dark(colour: str) -> bool:
    return sum(int(colour[at : at + 2], 16) for at in (1, 3, 5)) < 3 * 128
