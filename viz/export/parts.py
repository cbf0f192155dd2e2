"""What a saved view is made of: components, charts and words, and how a browser reads them to draw them again."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from attenscope.language import say, to_say

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from attenscope.viz.engine.pack_checkpoint import PackedModel
    from attenscope.viz.ui.captions import ChangeMark
    from attenscope.viz.ui.style import TableCell

REMARKS_ROLE = "remarks"
"""The role of what a page says about its pictures; scenes leave it out, as the speaker says it."""
SENTENCE_PICTURE_ROLE = "sentence-picture"
"""The role of the words of a sentence and its translation with the links between them. It takes the place of both texts
where a scene leaves out all other pictures; elsewhere these have the room. On the stage parts.js decides the same."""
PICTURES_BESIDE_SENTENCE = frozenset({"heads", "picture"})
"""The roles of the pictures that a scene of Explore leaves out for its sentence to be the picture."""

FACT_NAMES = (
    *(to_say("model"), to_say("hash"), to_say("sentence"), to_say("translation"), to_say("settings"), to_say("corpus")),
    *(
        to_say("word"),
        to_say("rather than"),
        to_say("changes"),
        to_say("method"),
        to_say("cell"),
        to_say("second sentence"),
    ),
    *(to_say("control"), to_say("steps"), to_say("strategy"), to_say("view"), to_say("experiment"), to_say("mask")),
    *(to_say("padding"), to_say("weights"), to_say("weights in this file"), to_say("data"), to_say("licence")),
    to_say("attribution"),
)
"""The names of what a view or a model was made from, as code has them."""


def translate_fact_names(facts: Mapping[str, str]) -> dict[str, str]:
    """Facts by their names in the reader's language."""
    return {say(name): value for name, value in facts.items()}


MathML = tuple[str, "str | tuple[MathML, ...]"]
"""An element of MathML: its name, and its text or the elements in it."""


class Part:
    """A piece of a saved view: one of the classes below."""


@dataclass(frozen=True, eq=False)
class Component(Part):
    """A component of viz/web/src, with the data it is mounted with."""

    name: str
    """The name of its folder."""
    data: bytes | Mapping[str, Any]
    role: str = "picture"
    """A key of :data:`viz.talk.scenes.SCENE_PARTS`, by which a scene hides it or leaves it out."""
    follows: bool = False
    """Shows another head once one is chosen in the overview that stands in the same view."""


@dataclass(frozen=True, eq=False)
class Chart(Part):
    """A plotly figure; `alt` says to a screen reader what it shows."""

    figure: go.Figure
    alt: str
    role: str = "picture"
    moments: Sequence[go.Figure] = ()
    """Where it moves: what its film shows, one after the other."""


@dataclass(frozen=True)
class Words(Part):
    """Plain text."""

    text: str
    role: str = REMARKS_ROLE
    size: Literal["caption", "text", "heading", "large"] = "caption"
    marked: Sequence[tuple[str, ChangeMark]] = ()
    """The text in pieces, spaces included, each with its mark, where it is to be seen what a change did."""


@dataclass(frozen=True, eq=False)
class Table(Part):
    """A table as pages show it; the first column names its row."""

    headings: Sequence[str]
    rows: Sequence[Sequence[TableCell]]
    name: str
    """What it shows, for a screen reader."""
    role: str = "picture"


@dataclass(frozen=True)
class Formula(Part):
    """Steps of a calculation, set by the browser."""

    math: MathML
    role: str = "picture"


@dataclass(frozen=True, eq=False)
class Columns(Part):
    """Parts beside each other, as wide as their shares; below each other in a narrow window."""

    columns: tuple[Sequence[Part], ...]
    shares: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class View:
    """One view of a page, in one palette."""

    title: str
    parts: Sequence[Part]
    facts: Mapping[str, str] = field(default_factory=dict)
    """What is needed to make it again, by name: the model, its hash, the sentence, the settings."""


@dataclass(frozen=True, eq=False)
class LiveSlide:
    """How a slide shows typed sentences, with a model in the file."""

    model: str
    """Its name."""
    settings: Mapping[str, Any]
    """The state that viz/export/live/live.js starts from."""


@dataclass(frozen=True, eq=False)
class Slide:
    """A view in a file, and what is said to it. Where there is no view, `missing` says why."""

    title: str
    view: View | None
    notes: str = ""
    point: str = ""
    """What to look at; stands under the picture."""
    hide: tuple[str, ...] = ()
    """Roles that are covered until the next key."""
    omit: tuple[str, ...] = ()
    """Roles that are left out."""
    missing: str = ""
    live: LiveSlide | None = None
    guess: tuple[str, ...] = ()
    """Parts of the picture among which the audience chooses before the next key."""
    clicked: Mapping[str, Any] = field(default_factory=dict)
    """Tells which choice a click in the picture hits; made by :func:`viz.talk.scenes.build_choice_click_data`."""
    minutes: float = 0.0
    """That it is to take, for the speaker's clock; 0 where nothing is planned."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that are shown, hidden ones included."""
        if not self.view:
            return ()
        parts = tuple(_remove_parts_with_roles(self.view.parts, self.omit))
        roles = {part.role for part in flatten_parts(parts)}
        is_alone = SENTENCE_PICTURE_ROLE in roles and not self.live and set(self.omit) >= PICTURES_BESIDE_SENTENCE
        without = ("sentence", "translation") if is_alone else (SENTENCE_PICTURE_ROLE,)
        return tuple(_remove_parts_with_roles(parts, without))


def flatten_parts(parts: Sequence[Part]) -> Iterator[Component | Chart | Words | Table | Formula]:
    """Yield all parts in reading order, those in columns in place of the columns."""
    for part in parts:
        if isinstance(part, Columns):
            for column in part.columns:
                yield from flatten_parts(column)
        elif isinstance(part, (Component, Chart, Words, Table, Formula)):
            yield part


def _remove_parts_with_roles(parts: Sequence[Part], omit: tuple[str, ...]) -> Iterator[Part]:
    for part in parts:
        if isinstance(part, (Component, Chart, Words, Table, Formula)) and part.role not in omit:
            yield part
        if not isinstance(part, Columns):
            continue
        left = [
            (tuple(_remove_parts_with_roles(one, omit)), share)
            for one, share in zip(part.columns, part.shares, strict=True)
        ]
        kept = [(column, share) for column, share in left if column]
        if kept:
            yield replace(part, columns=tuple(one for one, _ in kept), shares=tuple(share for _, share in kept))


# Slides as the browser reads them.


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


def compute_script_hash(code: str) -> str:
    """A script's hash, as a security policy names it."""
    return base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
