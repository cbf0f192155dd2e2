"""The small pictures of the scenes of the talk that ships, in the list of the editor.

They stand below each other in one image a colour scheme, beside the talk's file, and are taken of a rehearsal
(``python -m publish.pictures thumbnails``). A rehearsal of the visitor's own takes their place.
"""

from __future__ import annotations

import base64
from collections.abc import Hashable, Sequence
from functools import cache
from pathlib import Path
from string import Template

from attenscope.viz.talk.scenes import Scene, Talk

FOLDER = Path(__file__).parent
SIZE = (192, 93)
"""Pixels of one: twice as many as it is shown in."""
LIST_RULE = Template('.st-key-$key { --thumbnails: url("data:image/webp;base64,$image"); }')
SCENE_RULE = Template(
    '.st-key-$key [data-testid="stRadioOption"]:has([value="$at"]) > div::before '
    '{ content: ""; background: 0 $place% / 100% auto no-repeat var(--thumbnails); }'
)


def get_thumbnails_file(scheme: str) -> Path:
    """The image of all scenes in a colour scheme, light or dark."""
    return FOLDER / f"talk.{scheme}.webp"


def build_thumbnail_style(list_key: str, talk: Talk, shipped: Talk, scheme: str) -> str:
    """CSS that shows a picture of each scene which is drawn as one of the `shipped` talk; "" where none is.

    `list_key` is the Streamlit key of the list, whose options are the scenes by their places.
    """
    pictured = [_list_drawn(scene, shipped.model) for scene in shipped.scenes]
    drawn = [_list_drawn(scene, talk.model) for scene in talk.scenes]
    found = [(at, pictured.index(one)) for at, one in enumerate(drawn) if one in pictured]
    rules = [
        SCENE_RULE.substitute(key=list_key, at=at, place=f"{100 * row / (len(pictured) - 1):.4f}") for at, row in found
    ]
    return "\n".join([LIST_RULE.substitute(key=list_key, image=_read_image(scheme)), *rules]) if rules else ""


def _list_drawn(scene: Scene, model: str) -> Sequence[Hashable]:
    """What a scene's picture depends on, as in presenter/kept.js."""
    view = frozenset(scene.query(model).items())
    return scene.page, view, scene.live, scene.trace, scene.arrays, scene.omit, bool(scene.guess)


@cache
def _read_image(scheme: str) -> str:
    return base64.b64encode(get_thumbnails_file(scheme).read_bytes()).decode()
