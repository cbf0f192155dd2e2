"""A component as one HTML file that needs nothing else: no server, no network."""

from __future__ import annotations

import base64
import html
from string import Template
from typing import TYPE_CHECKING

from .bundle import HERE, bundle, style

if TYPE_CHECKING:
    from ..figures.palette import Palette

# The names of the theme that Streamlit hands to components; the page has to say them itself.
PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>$title</title>
<style>
:root { --st-font: system-ui, sans-serif; --st-text-color: $ink; --st-primary-color: $accent;
  --st-border-color: $line; --st-background-color: $background; --st-button-radius: 0.6rem; }
body { background: $background; color: $ink; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
body, h1 { font-family: var(--st-font); }
h1 { font-size: 1.1rem; }
$css
</style></head><body><h1>$title</h1><div id="view"></div>
<script type="module">
$js
const data = Uint8Array.from(atob("$data"), (character) => character.charCodeAt(0));
$name({ data, parentElement: document.getElementById("view"), setTriggerValue() {} });
</script></body></html>
""")


def page(name: str, data: bytes, title: str, palette: Palette) -> str:
    """The view in the folder `name`, whose default export has that name too, showing the packed `data`."""
    return PAGE.substitute(
        title=html.escape(title),
        ink=palette.ink,
        accent=palette.accent,
        line=palette.line,
        background=palette.background,
        css=style(name),
        js=bundle(HERE / name / f"{name}.js"),
        data=base64.b64encode(data).decode(),
        name=name,
    )
