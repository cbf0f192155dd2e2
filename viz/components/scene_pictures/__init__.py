"""Pictures of a talk's scenes in its editor: drawn in the visitor's browser, out of sight, by the app's own pages."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from ..bundle import component

_mount = component("scene_pictures")
_SERVER = secrets.token_hex(8)
"""Of this process: another one may have other models, and other code that draws them."""


def scene_pictures(list_key: str, scenes: Sequence[Mapping[str, Any] | None], at: int, scheme: str) -> None:
    """Put a small picture before each label of the list with the key `list_key`.

    `scenes` are as :func:`viz.components.presenter.show` takes them, None for one that cannot be shown; `at` is the one
    that is edited, from 0. A picture is drawn when its row is in sight and nobody works on the page, one after the
    other, and kept by the browser while the scene, the colours (`scheme`) and the server stay the same.
    """
    shown = [scene and {name: scene[name] for name in ("address", "omit", "title")} for scene in scenes]
    _mount(
        key="scene-pictures", data={"list": list_key, "scenes": shown, "at": at, "server": _SERVER, "scheme": scheme}
    )
