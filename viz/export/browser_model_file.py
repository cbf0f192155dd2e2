"""A file that runs models: weights, tokenizer, engine and views in one HTML text that asks the network for nothing.

The code stands first and the weights after it, so that a file that was cut off can say so. Weights are packed by
:mod:`viz.export.page`; the worker that runs them is made from a text in the page, so that it works from a
disk. The security policy names the only script by its hash and forbids every connection.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from string import Template
from typing import Any, TypeAlias

import streamlit as st

from attenscope.checkpoint.load import Checkpoint
from attenscope.language import LANGUAGE_TAGS, current_language, say, to_say
from attenscope.runnable_model import RunnableModel
from attenscope.viz.engine.pack_checkpoint import (
    EngineModel,
    PackedModel,
    WeightForm,
    build_engine_elements,
    build_model_elements,
    collect_model_facts,
    encode_palette,
    estimate_file_size,
    find_packable_model,
    is_int8_loss_small,
    pack_model,
)
from attenscope.viz.export.offline_html import TYPEABLE_LETTERS, build_font_faces, has_italic_style
from attenscope.viz.export.parts import compute_script_hash, translate_fact_names
from attenscope.viz.figures.figure_style import DARK, LIGHT, Look
from attenscope.viz.tour import list_live_file_tour_steps
from attenscope.viz.ui.current_sentence import list_example_sentences
from attenscope.viz.web.component_scripts import build_scripts_constant, read_component_style_sheet, read_style_sheet

LIVE_FILE_COMPONENTS = (
    *("beam_tree", "decode_player", "heatmap", "links", "overview", "switchboard", "text", "tokens", "versions"),
    "word_card",
)
LiveModel: TypeAlias = Checkpoint | EngineModel
FORM_LABELS: dict[WeightForm, str] = {
    "half": to_say("Live file: the model too (HTML, about {size:.0f} MB)"),
    "int8": to_say("Live file in 8 bits (HTML, about {size:.0f} MB)"),
}
"""What the menu Save calls a file of each form."""
LIVE_PAGE_TEMPLATE = Template("""<!doctype html>
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


STARTING_TEXT = to_say(
    "The model is being read. If this sentence stays, JavaScript is off here, or the file was cut off on its way: then "
    "download it again."
)


def build_live_model_html(checkpoints: Sequence[LiveModel], made: date, form: WeightForm = "half") -> str:
    """The whole file as text. PackageError for a checkpoint that the engine cannot run."""
    packed = [pack_model(one, form) for one in checkpoints]
    return build_live_page(
        _build_model_page_data(checkpoints, collect_model_facts(packed)), made, build_model_elements(packed)
    )


def build_live_model_site(
    checkpoints: Sequence[LiveModel], made: date, form: WeightForm | None = None
) -> dict[str, bytes]:
    """Return the files of a page for a web host by name: the page, and each model beside it. Raises PackageError.

    Without a `form` each model is in half precision, and also in 8 bits for phones where the measured loss is small.
    """
    files: dict[str, bytes] = {}
    facts = []
    for one in checkpoints:
        model = pack_model(one, form or "half")
        facts.append(model.facts | {"file": _add_model_file(model, files)})
        if form is None and is_int8_loss_small(one.hash):
            small = pack_model(one, "int8")
            own = {"facts": translate_fact_names(small.facts["facts"]), "sha256": small.facts["sha256"]}
            facts[-1]["phone"] = own | {"file": _add_model_file(small, files)}
    return {
        "index.html": build_live_page(_build_model_page_data(checkpoints, facts), made, "", "'self'").encode()
    } | files


def _build_model_page_data(checkpoints: Sequence[LiveModel], facts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the page reads of each model, with sentences to begin with and the tour."""
    return [
        own
        | {
            "facts": translate_fact_names(own["facts"]),
            "examples": list(list_example_sentences(one.card)),
            "tour": list_live_file_tour_steps(one.name),
        }
        for one, own in zip(checkpoints, facts, strict=True)
    ]


def _add_model_file(model: PackedModel, files: dict[str, bytes]) -> str:
    """Put a model's package among the files; named by its content, so that no browser keeps that of an earlier page."""
    name = f"{model.facts['sha256'][:16]}.bin"
    files[name] = model.data
    return name


def list_live_files(model: RunnableModel) -> dict[str, tuple[str, Callable[[], bytes]]]:
    """Return the live files that a page can save of a model, each made on demand; none where the engine cannot run it.

    On a phone the file in 8 bits comes first, where the measured loss is small.
    """
    packable = find_packable_model(model)
    if packable is None:
        return {}
    forms: list[WeightForm] = ["half", "int8"]
    if is_phone_browser() and is_int8_loss_small(packable.hash):
        forms.reverse()
    return {
        f"{model.name}-live{'' if form == 'half' else '-8-bit'}.html": (
            say(FORM_LABELS[form], size=estimate_file_size(packable.parameter_count, form) / 1e6),
            partial(_encode_live_file, packable, form),
        )
        for form in forms
    }


def _encode_live_file(model: EngineModel, form: WeightForm) -> bytes:
    return build_live_model_html([model], date.today(), form).encode()


def is_phone_browser() -> bool:
    """Return whether the visitor's browser says that it runs on a phone."""
    return "Mobi" in (st.context.headers.get("User-Agent") or "")


def build_live_page(models: Sequence[dict[str, Any]], made: date, data: str, connect: str = "'none'") -> str:
    """The HTML around the `data` of models; `connect` is what its security policy lets it fetch."""
    styles = {name: read_component_style_sheet(name) for name in LIVE_FILE_COMPONENTS}
    title = models[0]["title"] if len(models) == 1 else say("Attenscope, live")
    header = {
        "title": title,
        "made": made.isoformat(),
        "models": models,
        "palettes": {"light": encode_palette(Look(LIGHT)), "dark": encode_palette(Look(DARK))},
        "styles": styles,
    }
    # A token or a title is data: inside a script no text may end it.
    literal = json.dumps(header, ensure_ascii=False).replace("<", "\\u003c")
    code = f"{build_scripts_constant([*LIVE_FILE_COMPONENTS, 'live'])}scripts.live.file({literal}, scripts);"
    return LIVE_PAGE_TEMPLATE.substitute(
        language=LANGUAGE_TAGS.get(current_language(), current_language()),
        title=html.escape(title),
        starting=html.escape(say(STARTING_TEXT), quote=False),
        font=build_font_faces(
            "".join([literal, code, say(STARTING_TEXT), *TYPEABLE_LETTERS]), italic=has_italic_style(styles.values())
        ),
        hash=f"sha256-{compute_script_hash(code)}",
        connect=connect,
        css="".join(map(read_style_sheet, ("page", "sentence_form", "live"))),
        engine=build_engine_elements(),
        code=code,
        models=data,
    )
