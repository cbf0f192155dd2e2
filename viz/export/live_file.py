"""A file that runs models: weights, tokenizer, engine and views in one HTML text that asks the network for nothing.

The code stands first and the weights after it, so that a file that was cut off can say so. Weights are packed by
:mod:`viz.engine.package`, compressed and written in base64; the worker that runs them is made from a text in the page,
so that it works from a disk. The security policy names the only script by its hash and forbids every connection.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from model.translate import Translator

from ..components.bundle import style
from ..engine.package import ENGINE, KERNEL, Form, PackageError, check_tokenizer, package
from ..figures.palette import DARK, LIGHT, Look, Palette, head_colour
from ..ui.controls import examples
from .page import BROWSER, component_code, hash_of, scoped

if TYPE_CHECKING:
    from model.checkpoint.load import Checkpoint
    from model.live.live_model import LiveModel

HERE = Path(__file__).parent / "live"
COMPONENTS = ("beam_tree", "decode_player", "heatmap", "links", "overview", "switchboard", "text", "tokens", "versions")
HEAD_COLOURS = 8
INT8_BLEU = json.loads((ENGINE / "int8_bleu.json").read_text(encoding="utf-8"))
"""By the hash of a released model's weights: greedy BLEU on its development text in half precision and in 8 bits."""
PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '$hash' 'wasm-unsafe-eval'; \
worker-src blob:; style-src 'unsafe-inline'; img-src data: blob:; connect-src $connect; base-uri 'none'; \
form-action 'none'">
<meta name="viewport" content="width=device-width"><title>$title</title>
<style>
:root { color-scheme: light dark; --st-font: "Source Sans", system-ui, sans-serif; --st-button-radius: 0.6rem; }
$css
</style></head><body><p id="starting">The model is being read. If this sentence stays, JavaScript is off here, \
or the file was cut off on its way: then download it again.</p>
<script type="text/plain" id="worker">$worker</script>
<script type="text/plain" id="kernel">$kernel</script>
<script>$code</script>
$models</body></html>
""")


@dataclass(frozen=True)
class PackedModel:
    """One checkpoint as it stands in a file."""

    facts: dict[str, Any]
    """What the page reads of it."""
    data: bytes
    """The package, compressed."""


def live_file(checkpoints: Sequence[Checkpoint], made: date, form: Form = "half") -> str:
    """The whole file as text. PackageError for a checkpoint that the engine cannot run."""
    packed = [packed_model(one, form) for one in checkpoints]
    models = "\n".join(
        f'<script type="text/plain" id="model-{at}">{_text(one.data)}</script>' for at, one in enumerate(packed)
    )
    facts = [one.facts | {"id": f"model-{at}"} for at, one in enumerate(packed)]
    return page(facts, made, models)


def live_folder(checkpoints: Sequence[Checkpoint], made: date, form: Form = "half") -> dict[str, bytes]:
    """The same as a page for a web host: by their names, the page and each model beside it. PackageError."""
    packed = [packed_model(one, form) for one in checkpoints]
    # Named by its content, so that no browser keeps the model of an earlier page.
    names = [f"{one.facts['sha256'][:16]}.bin" for one in packed]
    facts = [one.facts | {"file": name} for one, name in zip(packed, names, strict=True)]
    files = {name: one.data for name, one in zip(names, packed, strict=True)}
    return {"index.html": page(facts, made, "", "'self'").encode()} | files


def live_files(model: LiveModel) -> dict[str, tuple[str, Callable[[], bytes]]]:
    """The file of one model among those a page can save, made once it is asked for; nothing where it cannot run."""
    if not isinstance(model, Translator):
        return {}
    try:
        check_tokenizer(model.tokenizer.model)
    except PackageError:
        return {}
    made = lambda: live_file([model.checkpoint], date.today()).encode()  # noqa: E731
    return {"Live file: the model too (HTML)": (f"{model.name}-live.html", made)}


def page(models: Sequence[dict[str, Any]], made: date, data: str, connect: str = "'none'") -> str:
    """The HTML around the `data` of models; `connect` is what its security policy lets it fetch."""
    for one in models:
        one["facts"]["saved"] = made.isoformat()
    title = models[0]["title"] if len(models) == 1 else "Attenscope, live"
    header = {
        "title": title,
        "models": models,
        "palettes": {"light": palette_of(LIGHT), "dark": palette_of(DARK)},
        "styles": {name: style(name) for name in COMPONENTS},
    }
    # A token or a title is data: inside a script no text may end it.
    literal = json.dumps(header, ensure_ascii=False).replace("<", "\\u003c")
    code = f"{component_code(COMPONENTS)}{scoped(HERE / 'live.js')}({literal}, components);"
    return PAGE.substitute(
        title=html.escape(title),
        hash=f"sha256-{hash_of(code)}",
        connect=connect,
        css="".join((folder / name).read_text(encoding="utf-8") for folder, name in _SHEETS),
        worker=f"{scoped(ENGINE / 'worker.js')}(self);",
        kernel=_text(KERNEL.read_bytes()),
        code=code,
        models=data,
    )


_SHEETS = ((BROWSER, "page.css"), (HERE, "live.css"))


def packed_model(checkpoint: Checkpoint, form: Form = "half") -> PackedModel:
    """Return a checkpoint as it stands in a file, with what the page says of it."""
    card = checkpoint.card
    data = package(checkpoint, form)
    known = {"model": checkpoint.name, "hash": checkpoint.hash, "weights": weights_in_words(checkpoint.hash, form)}
    known |= {name: card[name] for name in ("data", "licence", "attribution") if card.get(name)}
    facts = {
        "name": checkpoint.name,
        "title": card.get("title", checkpoint.name),
        "examples": list(examples(card)),
        "facts": known,
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return PackedModel(facts, gzip.compress(data, 9, mtime=0))


def weights_in_words(weights_hash: str, form: Form) -> str:
    """How a file holds the weights, and what is lost by it where that was measured."""
    if form == "half":
        return "half precision"
    found = INT8_BLEU.get(weights_hash)
    if not found:
        return "8 bits a weight; what is lost by it was not measured"
    bleu = f"BLEU {found['int8']:.2f}, in half precision {found['half']:.2f}"
    return f"8 bits a weight; {bleu}, on {found['sentences']:,} sentences of {found['source']}"


def palette_of(palette: Palette) -> dict[str, Any]:
    """The colours of a theme, and of the pictures drawn in it."""
    look = Look(palette)
    heads = [head_colour(palette, head) for head in range(HEAD_COLOURS)]
    return asdict(palette) | {"stops": look.stops, "scale": look.scale, "heads": heads}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
