"""Slides as the browser reads them, and the scripts that draw them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from attenscope.viz.export.parts import (
    Chart,
    Columns,
    Component,
    Formula,
    Part,
    Slide,
    Table,
    Words,
    translate_fact_names,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from attenscope.viz.export.packed_models import PackedModel


@dataclass
class ComponentBytes:
    """The bytes of all components behind each other."""

    body: bytearray = field(default_factory=bytearray)

    def add(self, data: bytes) -> tuple[int, int]:
        """Where `data` stands: first byte and length."""
        self.body += data
        return len(self.body) - len(data), len(data)


def encode_slides(slides: Sequence[Slide], models: Sequence[PackedModel] = ()) -> tuple[list[dict[str, Any]], bytes]:
    """What slide.js shows as these slides, and the bytes of their components behind each other.

    `models` are those that the file holds for slides that take sentences.
    """
    packed = ComponentBytes()
    return [_encode_slide(slide, packed, models) for slide in slides], bytes(packed.body)


def _encode_slide(slide: Slide, packed: ComponentBytes, models: Sequence[PackedModel]) -> dict[str, Any]:
    """What the browser reads of a slide; `models` are those in the file."""
    facts, live = dict(slide.view.facts) if slide.view else {}, None
    if slide.live:
        at = [one.facts["name"] for one in models].index(slide.live.model)
        live = {**slide.live.settings, "model": at}
        facts["weights in this file"] = models[at].facts["facts"]["weights"]
    return {
        "title": slide.title,
        "notes": slide.notes,
        "minutes": slide.minutes,
        "point": slide.point,
        "hide": slide.hide,
        "omit": slide.omit,
        "guess": slide.guess,
        **slide.clicked,
        "missing": slide.missing,
        "facts": translate_fact_names(facts),
        "live": live,
        "parts": [_encode_part(part, packed) for part in slide.parts],
    }


def _encode_part(part: Part, packed: ComponentBytes) -> dict[str, Any]:
    if isinstance(part, Columns):
        columns = [[_encode_part(one, packed) for one in column] for column in part.columns]
        return {"is": "columns", "columns": columns, "shares": part.shares}
    if isinstance(part, Words):
        return {"is": "words", "text": part.text, "size": part.size, "role": part.role, "marked": part.marked}
    if isinstance(part, Formula):
        return {"is": "formula", "math": part.math, "role": part.role}
    if isinstance(part, Table):
        rows = [[(cell, "") if isinstance(cell, str) else cell for cell in row] for row in part.rows]
        return {"is": "table", "headings": part.headings, "rows": rows, "name": part.name, "role": part.role}
    if isinstance(part, Chart):
        figure, *moments = map(_encode_figure, (part.figure, *part.moments))
        return {"is": "chart", "figure": figure, "alt": part.alt, "role": part.role, "moments": moments}
    assert isinstance(part, Component)
    data = {"at": packed.add(part.data)} if isinstance(part.data, bytes) else {"data": dict(part.data)}
    return {"is": "component", "name": part.name, "role": part.role, "follows": part.follows} | data


def _encode_figure(figure: go.Figure) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(figure.to_json())
    # A template that Streamlit has set as everybody's default draws in black; the figures say all they need.
    found["layout"].pop("template", None)
    return found


# Scripts: the hash of a page's code.


def compute_script_hash(code: str) -> str:
    """A script's hash, as a security policy names it."""
    return base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
