"""A file that runs models: weights, tokenizer, engine and views in one HTML text that asks the network for nothing.

The code stands first and the weights after it, so that a file that was cut off can say so. Weights are packed by
:mod:`viz.export.packed_models`; the worker that runs them is made from a text in the page, so that it works from a
disk. The security policy names the only script by its hash and forbids every connection.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import streamlit as st

from model.language.catalogue import TAGS
from model.language.current import current_language
from model.language.say import say, to_say

from ..components.bundle import style
from ..engine.package import Form
from ..figures.palette import DARK, LIGHT, Look
from ..tour.steps import steps_in_file
from ..ui.sentences import examples
from .font import TYPED, font_faces, is_slanted
from .packed_models import (
    PackedModel,
    engine_elements,
    estimated_size,
    int8_loses_little,
    model_elements,
    model_facts,
    packable,
    packed_model,
    palette_of,
)
from .page import BROWSER
from .parts import named_facts
from .scripts import component_code, hash_of, scoped

if TYPE_CHECKING:
    from model.checkpoint.load import Checkpoint
    from model.live.live_model import LiveModel

HERE = Path(__file__).parent / "live"
COMPONENTS = (
    *("beam_tree", "decode_player", "heatmap", "links", "overview", "switchboard", "text", "tokens", "versions"),
    "word_card",
)
FORMS: dict[Form, str] = {
    "half": to_say("Live file: the model too (HTML, about {size:.0f} MB)"),
    "int8": to_say("Live file in 8 bits (HTML, about {size:.0f} MB)"),
}
"""What the menu Save calls a file of each form."""
PAGE = Template("""<!doctype html>
<html lang="$language"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '$hash' 'wasm-unsafe-eval'; \
worker-src blob:; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; connect-src $connect; \
base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width"><title>$title</title>
<style id="font">$font</style>
<style>
:root { color-scheme: light dark; --st-font: "Source Sans", system-ui, sans-serif; --st-button-radius: 0.6rem; }
$css
</style></head><body><p id="starting">$starting</p>
$engine
<script>$code</script>
$models</body></html>
""")


STARTING = to_say(
    "The model is being read. If this sentence stays, JavaScript is off here, or the file was cut off on its way: then "
    "download it again."
)


def live_file(checkpoints: Sequence[Checkpoint], made: date, form: Form = "half") -> str:
    """The whole file as text. PackageError for a checkpoint that the engine cannot run."""
    packed = [packed_model(one, form) for one in checkpoints]
    return page(_facts(checkpoints, model_facts(packed)), made, model_elements(packed))


def live_folder(checkpoints: Sequence[Checkpoint], made: date, form: Form | None = None) -> dict[str, bytes]:
    """The same as a page for a web host: by their names, the page and each model beside it. PackageError.

    Without a `form`: half precision, and beside it 8 bits for phones where little is known to be lost by them.
    """
    files: dict[str, bytes] = {}
    facts = []
    for one in checkpoints:
        model = packed_model(one, form or "half")
        facts.append(model.facts | {"file": _kept(model, files)})
        if form is None and int8_loses_little(one.hash):
            small = packed_model(one, "int8")
            own = {"facts": named_facts(small.facts["facts"]), "sha256": small.facts["sha256"]}
            facts[-1]["phone"] = own | {"file": _kept(small, files)}
    return {"index.html": page(_facts(checkpoints, facts), made, "", "'self'").encode()} | files


def _facts(checkpoints: Sequence[Checkpoint], facts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the page reads of each model, with sentences to begin with and the tour."""
    return [
        own
        | {"facts": named_facts(own["facts"]), "examples": list(examples(one.card)), "tour": steps_in_file(one.name)}
        for one, own in zip(checkpoints, facts, strict=True)
    ]


def _kept(model: PackedModel, files: dict[str, bytes]) -> str:
    """Put a model's package among the files; named by its content, so that no browser keeps that of an earlier page."""
    name = f"{model.facts['sha256'][:16]}.bin"
    files[name] = model.data
    return name


def live_files(model: LiveModel) -> dict[str, tuple[str, Callable[[], bytes]]]:
    """The files of one model among those a page can save, each made once it is asked for; none where it cannot run.

    What is in 8 bits comes first on a phone, where little is known to be lost by them.
    """
    checkpoint = packable(model)
    if checkpoint is None:
        return {}
    parameters = sum(one.numel() for one in checkpoint.model.parameters())
    forms: list[Form] = ["half", "int8"]
    if on_phone() and int8_loses_little(checkpoint.hash):
        forms.reverse()
    return {
        f"{model.name}-live{'' if form == 'half' else '-8-bit'}.html": (
            say(FORMS[form], size=estimated_size(parameters, form) / 1e6),
            partial(_made, checkpoint, form),
        )
        for form in forms
    }


def _made(checkpoint: Checkpoint, form: Form) -> bytes:
    return live_file([checkpoint], date.today(), form).encode()


def on_phone() -> bool:
    """Whether the visitor's browser says that it is one of a phone."""
    return "Mobi" in (st.context.headers.get("User-Agent") or "")


def page(models: Sequence[dict[str, Any]], made: date, data: str, connect: str = "'none'") -> str:
    """The HTML around the `data` of models; `connect` is what its security policy lets it fetch."""
    styles = {name: style(name) for name in COMPONENTS}
    title = models[0]["title"] if len(models) == 1 else say("Attenscope, live")
    header = {
        "title": title,
        "made": made.isoformat(),
        "models": models,
        "palettes": {"light": palette_of(Look(LIGHT)), "dark": palette_of(Look(DARK))},
        "styles": styles,
    }
    # A token or a title is data: inside a script no text may end it.
    literal = json.dumps(header, ensure_ascii=False).replace("<", "\\u003c")
    code = f"{component_code(COMPONENTS)}{scoped(HERE / 'live.js')}({literal}, components);"
    return PAGE.substitute(
        language=TAGS.get(current_language(), current_language()),
        title=html.escape(title),
        starting=html.escape(say(STARTING), quote=False),
        font=font_faces("".join([literal, code, say(STARTING), *TYPED]), italic=is_slanted(styles.values())),
        hash=f"sha256-{hash_of(code)}",
        connect=connect,
        css="".join((folder / name).read_text(encoding="utf-8") for folder, name in _SHEETS),
        engine=engine_elements(),
        code=code,
        models=data,
    )


_SHEETS = ((BROWSER, "page.css"), (HERE, "sentence.css"), (HERE, "live.css"))
