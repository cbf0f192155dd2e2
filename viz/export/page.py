"""Write slides as one offline HTML file: its page, data, scripts, fonts and packed models."""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import html
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from string import Template
from typing import Any

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from plotly.offline import get_plotlyjs

from attenscope.atomic_write import replace_lone_surrogates
from attenscope.checkpoint.load import Checkpoint
from attenscope.evaluation.eight_bits import read_all_eight_bits
from attenscope.language import LANGUAGE_TAGS, current_language, say
from attenscope.runnable_model import RunnableModel
from attenscope.viz.engine.package import (
    ENGINE_FOLDER,
    KERNEL_FILE,
    PackageError,
    WeightForm,
    check_tokenizer,
    pack_checkpoint,
)
from attenscope.viz.export.parts import (
    Chart,
    Columns,
    Component,
    Formula,
    LiveSlide,
    Part,
    Slide,
    Table,
    View,
    Words,
    flatten_parts,
    translate_fact_names,
)
from attenscope.viz.figures.look import Look, Palette, head_colour
from attenscope.viz.figures.stage import fit_to_stage
from attenscope.viz.streamlit_internals import read_font_file
from attenscope.viz.web.bundle import COMPONENTS_FOLDER, bundle_scripts, component_style, pack_arrays, read_header_text

# The page: one HTML text with all code, styles and data in it, which asks the network for nothing.
#
# The data are packed, compressed and written in base64, so that no token can end a script or be read as markup; a
# content security policy names the only scripts that may run by their hashes and forbids every connection. Plotly,
# where a chart needs it, stands in the file once and compressed (1.9 MB instead of 4.8).


BROWSER_FOLDER = Path(__file__).parent / "browser"
# The names of the theme that Streamlit hands to components; a file has to say them itself.
PAGE_TEMPLATE = Template("""<!doctype html>
<html lang="$language" data-scheme="$scheme"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src $scripts; \
style-src 'unsafe-inline'; img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width"><title>$title</title>
<style id="font">$font</style>
<style>
:root { --st-font: "Source Sans", system-ui, sans-serif; --st-button-radius: 0.6rem; }
$colours
$css
</style></head><body><noscript>$noscript</noscript>
<script type="text/plain" data-of="$scheme" id="content">$content</script>
$others<script type="text/plain" id="plotly">$plotly</script>
$engine<script>$code</script>$models</body></html>
""")
COLOURS_TEMPLATE = Template(""":root[data-scheme="$scheme"] { color-scheme: $scheme; --st-text-color: $ink;
  --st-primary-color: $accent; --st-border-color: $line; --st-background-color: $background; --soft: $soft; }""")
OTHER_SCHEME_TEMPLATE = Template("""<script type="text/plain" data-of="$scheme">$content</script>
""")
"""The same slides in other colours, which the address may ask for."""
LIVE_SCRIPTS = Path(__file__).parent / "live"
BALLOT_STYLE = Path(__file__).parents[1] / "web" / "src" / "presenter" / "ballot.css"
TILES_PICTURE_SHARES = (0.36, 0.64)
"""Widths of the tiles of all heads and of the picture, as on the stage (talk/presented.css)."""
LIVE_POLICY = "'wasm-unsafe-eval'; worker-src blob:"
"""What the policy allows a page that runs a model besides its scripts."""
LIVE_SLIDE_COMPONENTS = {"decode": ("decode_player", "beam_tree", "versions")}
"""What a live slide draws, by its view; one of a head has that view, the overview and the translation."""


def build_view_page(
    view: View,
    palette: Palette,
    made: date,
    notes: str = "",
    width: int = 0,
    also: tuple[View, Palette] | None = None,
) -> str:
    """One view as a file; with a `width` in pixels, laid out that wide and without margins, as for a picture of it.

    `also` is the same view in other colours, shown where the address asks for them (``#theme=dark``).
    """
    fixed = f"main {{ width: {width}px; max-width: none; padding: 0; }}" if width else ""
    looks = [(view, palette), *([also] if also else [])]
    if not width:  # A file has its title at the top, a picture only the heading in it.
        looks = [(replace(one, parts=tuple(_remove_title_parts(one))), colours) for one, colours in looks]
    shown = [((Slide(one.title, one, notes),), colours) for one, colours in looks]
    return _build_page(view.title, shown, made, talk=False, more=fixed)


def _remove_title_parts(view: View) -> Iterator[Part]:
    return (
        part
        for part in view.parts
        if not (isinstance(part, Words) and part.size == "heading" and part.text == view.title)
    )


def build_talk_page(
    title: str,
    slides: Sequence[Slide],
    palette: Palette,
    made: date,
    models: Sequence[PackedModel] = (),
    also: tuple[Sequence[Slide], Palette] | None = None,
) -> str:
    """A whole talk as a file: slides that keys go through. `models` are those that live slides name.

    `also` are the same slides in other colours, shown where the address asks for them.
    """
    looks = [(slides, palette), *([also] if also else [])]
    shown = [
        (
            [
                replace(one, view=one.view and replace(one.view, parts=tuple(_scale_parts_for_stage(one.view.parts))))
                for one in of
            ],
            look,
        )
        for of, look in looks
    ]
    return _build_page(title, shown, made, talk=True, models=models)


def _scale_parts_for_stage(parts: Sequence[Part]) -> Iterator[Part]:
    """The parts as they are projected: figures that are read from the back row."""
    for part in parts:
        if isinstance(part, Chart):
            yield replace(part, figure=fit_to_stage(part.figure))
        elif isinstance(part, Columns):
            beside_tiles = any(one.role == "heads" for one in flatten_parts(part.columns[0]))
            shares = TILES_PICTURE_SHARES if beside_tiles and part.shares[0] > TILES_PICTURE_SHARES[0] else part.shares
            yield replace(
                part, columns=tuple(tuple(_scale_parts_for_stage(one)) for one in part.columns), shares=shares
            )
        else:
            yield part


def _build_page(
    title: str,
    looks: Sequence[tuple[Sequence[Slide], Palette]],
    made: date,
    *,
    talk: bool,
    more: str = "",
    models: Sequence[PackedModel] = (),
) -> str:
    slides = looks[0][0]
    every = [part for slide in slides for part in flatten_parts(slide.parts)]
    names = {part.name for part in every if isinstance(part, Component)}
    names |= {name for slide in slides if slide.live for name in _list_live_components(slide.live)}
    live = bundle_as_expression(LIVE_SCRIPTS / "scene.js") if models else "null"
    code = (
        f"{build_component_code(sorted(names))}{bundle_as_expression(BROWSER_FOLDER / 'page.js')}(components, {live});"
    )
    charts = any(isinstance(part, Chart) for part in every)
    hashes = [compute_script_hash(code)] + ([compute_script_hash(get_plotlyjs())] if charts else [])
    styles = {name: component_style(name) for name in sorted(names)}
    header = {
        "title": title,
        "talk": talk,
        "made": made.isoformat(),
        "styles": styles,
        "models": collect_model_facts(models),
    }
    found = [encode_slides(of, models) for of, _ in looks]
    contents = [_compress_to_base64(pack_arrays(header | {"slides": of}, body)) for of, body in found]
    letters = _collect_letters([header, found[0][0]], every, code, bool(models))
    schemes = [_find_colour_scheme(palette) for _, palette in looks]
    sheets = [BROWSER_FOLDER / "page.css", BALLOT_STYLE, *([LIVE_SCRIPTS / "sentence.css"] if models else [])]
    written = PAGE_TEMPLATE.substitute(
        language=LANGUAGE_TAGS.get(current_language(), current_language()),
        title=html.escape(title),
        noscript=html.escape(say("This page draws its pictures with JavaScript; please allow it."), quote=False),
        font=build_font_faces(letters, italic=has_italic_style(styles.values())),
        scripts=" ".join([*(f"'sha256-{one}'" for one in hashes), *([LIVE_POLICY] if models else [])]),
        scheme=schemes[0],
        colours="\n".join(
            COLOURS_TEMPLATE.substitute(vars(palette), scheme=_find_colour_scheme(palette)) for _, palette in looks
        ),
        css="".join(sheet.read_text(encoding="utf-8") for sheet in sheets) + more,
        content=contents[0],
        others="".join(
            OTHER_SCHEME_TEMPLATE.substitute(scheme=s, content=c)
            for s, c in zip(schemes[1:], contents[1:], strict=True)
        ),
        plotly=_compress_plotly() if charts else "",
        engine=build_engine_elements() if models else "",
        code=code,
        models=build_model_elements(models),
    )
    return replace_lone_surrogates(written)


def _collect_letters(written: Any, parts: Sequence[Part], code: str, takes_text: bool) -> str:
    """All that a page may write: what stands in it, what its scripts say, and what is typed where it takes text."""
    packed = [read_header_text(one.data) for one in parts if isinstance(one, Component) and isinstance(one.data, bytes)]
    letters = [json.dumps(written, ensure_ascii=False), code, *packed, *(TYPEABLE_LETTERS if takes_text else ())]
    return replace_lone_surrogates("".join(letters))


def _list_live_components(live: LiveSlide) -> Sequence[str]:
    """The components that a live slide draws."""
    view = live.settings["view"]
    return LIVE_SLIDE_COMPONENTS.get(view, ("overview", "tokens", view))


def _compress_to_base64(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


@functools.cache
def _compress_plotly() -> str:
    return _compress_to_base64(get_plotlyjs().encode())


def _find_colour_scheme(palette: Palette) -> str:
    return "dark" if sum(int(palette.background[at : at + 2], 16) for at in (1, 3, 5)) < 3 * 128 else "light"


# Slides as the browser reads them: JSON, and the bytes of their components one after the other.


@dataclass
class ComponentBytes:
    """The bytes of all components behind each other."""

    body: bytearray = field(default_factory=bytearray)

    def add(self, data: bytes) -> tuple[int, int]:
        """Where `data` stands: first byte and length."""
        self.body += data
        return len(self.body) - len(data), len(data)


def encode_slides(slides: Sequence[Slide], models: Sequence[PackedModel] = ()) -> tuple[list[dict[str, Any]], bytes]:
    """What browser/slide.js shows as these slides, and the bytes of their components behind each other.

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
        figure = json.loads(part.figure.to_json())
        # A template that Streamlit has set as everybody's default draws in black; the figures say all they need.
        figure["layout"].pop("template", None)
        return {"is": "chart", "figure": figure, "alt": part.alt, "role": part.role}
    assert isinstance(part, Component)
    data = {"at": packed.add(part.data)} if isinstance(part.data, bytes) else {"data": dict(part.data)}
    return {"is": "component", "name": part.name, "role": part.role, "follows": part.follows} | data


# Scripts: modules joined into one expression, and their hash.


EXPORT_KEYWORD = re.compile(r"^export (default )?", re.MULTILINE)
DEFAULT_EXPORT = re.compile(r"^export default (?:async )?function (\w+)", re.MULTILINE)


def build_component_code(names: Iterable[str]) -> str:
    """The components a file shows, each in a scope of its own, as members of one constant."""
    return "const components = {};\n" + "".join(
        f"components.{name} = {bundle_as_expression(COMPONENTS_FOLDER / name / f'{name}.js')};\n" for name in names
    )


def bundle_as_expression(entry: Path) -> str:
    """The modules of `entry` as an expression: its default export."""
    source = bundle_scripts(entry)
    if "</script" in source.lower():
        raise ValueError("A script of the project holds the text </script and cannot stand in a page.")
    name = DEFAULT_EXPORT.findall(source)[-1]
    return f"(() => {{\n{EXPORT_KEYWORD.sub('', source)}\nreturn {name};\n}})()"


def compute_script_hash(code: str) -> str:
    """A script's hash, as a security policy names it."""
    return base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()


# Fonts: the font of the app, cut down to the letters of the file, with its licence.
#
# Streamlit brings Source Sans (SIL Open Font License 1.1, https://openfontlicense.org), as one font of all weights.
# Copyright and licence stay in the font's own table of names and are written beside it. A changed font may not bear the
# reserved name "Source", so it has another name inside; style sheets find it by the name that they ask for.


FONT_FAMILY = "Source Sans"
"""What every style sheet and figure of the app asks for first."""
CUT_FONT_NAME = "AttenscopeSans"
"""What the cut font is called inside."""
TYPEABLE_LETTERS = frozenset(
    map(chr, (*range(0x20, 0x7F), *range(0xA0, 0x250), *range(0x2010, 0x2040), 0x20AC, 0x2190, 0x2192, 0x2212))
)
"""Letters of a file in which text can be typed: Latin with all marks, punctuation, the signs of captions."""
FONT_FEATURES = ["kern", "liga", "ccmp", "locl", "mark", "mkmk", "tnum", "lnum"]
"""Layout features of the font that are kept: kerning, ligatures, marks, and figures of equal width."""
_LEGAL_NAME_IDS = (0, 13, 14)
"""Entries of the table of names: copyright, licence, and address of the licence."""
_RESERVED_FONT_NAME = re.compile(r"Source\w*")
_KEPT_NAME_IDS = [*_LEGAL_NAME_IDS, 1, 2, 3, 4, 5, 6]


def has_italic_style(styles: Iterable[str]) -> bool:
    """Whether any of these style sheets asks for italic letters."""
    return any("font-style: italic" in one for one in styles)


def build_font_faces(text: str, *, italic: bool) -> str:
    """The rules of a style sheet for the letters that `text` is made of, in the weights from 200 to 900.

    `italic`: the slanted letters too.
    """
    letters = frozenset(text)
    return "".join(_build_font_face(letters, one) for one in ([False, True] if italic else [False]))


@functools.lru_cache(maxsize=32)
def _build_font_face(letters: frozenset[str], italic: bool) -> str:
    """One rule, after what is to be said of its font. A file and the pictures taken of it share one."""
    data, notice = _cut_font(letters, italic)
    source = f"data:font/woff2;base64,{base64.b64encode(data).decode()}"
    style = "italic" if italic else "normal"
    look = f'font-family: "{FONT_FAMILY}"; font-style: {style}; font-weight: 200 900'
    return f'/* {notice} */\n@font-face {{ {look}; src: url("{source}") format("woff2"); }}\n'


def _cut_font(letters: frozenset[str], italic: bool) -> tuple[bytes, str]:
    """The font with these letters alone, as WOFF2, and what is to be said of it."""
    font = TTFont(
        io.BytesIO(_cut_typeable_font(italic)) if letters <= TYPEABLE_LETTERS else read_font_file(italic=italic)
    )
    _subset_font(font, letters)
    names = font["name"]
    notice = " ".join(str(names.getDebugName(one)).replace("*/", "") for one in _LEGAL_NAME_IDS[:2])
    for record in names.names:
        if record.nameID not in _LEGAL_NAME_IDS:
            record.string = _RESERVED_FONT_NAME.sub(CUT_FONT_NAME, str(record))
    return _encode_font(font, "woff2"), f"{FONT_FAMILY}, cut to the letters of this page. {notice}"


@functools.cache
def _cut_typeable_font(italic: bool) -> bytes:
    """The letters that most files have some of: cutting these again takes a fifth of the time that all take."""
    font = TTFont(read_font_file(italic=italic))
    _subset_font(font, TYPEABLE_LETTERS)
    return _encode_font(font, None)


def _subset_font(font: TTFont, letters: frozenset[str]) -> None:
    options = Options(layout_features=FONT_FEATURES, name_IDs=_KEPT_NAME_IDS, notdef_outline=True, hinting=False)
    cutter = Subsetter(options)
    cutter.populate(text="".join(sorted(letters)))
    cutter.subset(font)


def _encode_font(font: TTFont, flavour: str | None) -> bytes:
    font.flavor = flavour
    data = io.BytesIO()
    font.save(data)
    return data.getvalue()


# Models: packed by :mod:`viz.engine.package`, compressed, with what a page says of them.


HEAD_COLOUR_COUNT = 8
INT8_BLEU = read_all_eight_bits()
"""Hash of a released model's weights -> its BLEU in half precision and in 8 bits."""
SMALL_BLEU_LOSS = 0.3
"""Loss of BLEU below which a phone gets 8 bits a weight."""
BYTES_PER_PARAMETER: Mapping[WeightForm, float] = {"half": 2.31, "int8": 1.27}
"""Bytes of a file for each parameter, compressed and in base64; fitted to the released models."""
FIXED_FILE_BYTES = 0.45e6
"""Bytes of code and tokenizer; fitted to the released models."""


@dataclass(frozen=True)
class PackedModel:
    """One checkpoint as it stands in a file."""

    facts: dict[str, Any]
    """What the page reads of it."""
    data: bytes
    """The package, compressed."""


def find_packable_checkpoint(model: RunnableModel) -> Checkpoint | None:
    """Return the checkpoint of a model that can stand in a file; None where it is none, or the engine cannot run it."""
    from attenscope.translate import Translator  # only here: a notebook draws without torch

    if not isinstance(model, Translator):
        return None
    try:
        check_tokenizer(model.tokenizer.model)
    except PackageError:
        return None
    return model.checkpoint


def pack_model(checkpoint: Checkpoint, form: WeightForm = "half") -> PackedModel:
    """Return a checkpoint as it stands in a file, with what the page says of it. PackageError."""
    card = checkpoint.card
    data = pack_checkpoint(checkpoint, form)
    known = {"model": checkpoint.name, "hash": checkpoint.hash, "weights": describe_weights(checkpoint.hash, form)}
    known |= {name: card[name] for name in ("data", "licence", "attribution") if card.get(name)}
    facts = {
        "name": checkpoint.name,
        "title": card.get("title", checkpoint.name),
        "facts": known,
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return PackedModel(facts, gzip.compress(data, 9, mtime=0))


def describe_weights(weights_hash: str, form: WeightForm) -> str:
    """How a file holds the weights, and what is lost by it where that was measured."""
    if form == "half":
        return say("half precision")
    found = INT8_BLEU.get(weights_hash)
    if not found:
        return say("8 bits a weight; what is lost by it was not measured")
    return say(
        "8 bits a weight; BLEU {int8:.2f}, in half precision {half:.2f}, on {sentences:,} sentences of {source}",
        **asdict(found),
    )


def is_int8_loss_small(weights_hash: str) -> bool:
    """Whether 8 bits a weight were measured for these weights and cost less BLEU than :data:`SMALL_BLEU_LOSS`."""
    found = INT8_BLEU.get(weights_hash)
    return found is not None and found.half - found.int8 < SMALL_BLEU_LOSS


def estimate_file_size(parameters: int, form: WeightForm) -> float:
    """About how many bytes a file with one model has, before it is made."""
    return BYTES_PER_PARAMETER[form] * parameters + FIXED_FILE_BYTES


def encode_palette(look: Look) -> dict[str, Any]:
    """The colours of a theme, and of the pictures drawn in it."""
    heads = [head_colour(look.palette, head) for head in range(HEAD_COLOUR_COUNT)]
    return asdict(look.palette) | {"stops": look.stops, "scale": look.scale, "heads": heads}


def build_engine_elements() -> str:
    """Return the HTML elements from which a page makes the worker that runs its models."""
    worker, kernel = (
        f"{bundle_as_expression(ENGINE_FOLDER / 'worker.js')}(self);",
        _encode_base64(KERNEL_FILE.read_bytes()),
    )
    return f"{_build_text_element('worker', worker)}\n{_build_text_element('kernel', kernel)}"


def build_model_elements(models: Sequence[PackedModel]) -> str:
    """The HTML elements of the models' packages, ``model-0`` and so on; they stand last in a file."""
    return "\n".join(_build_text_element(f"model-{at}", _encode_base64(one.data)) for at, one in enumerate(models))


def collect_model_facts(models: Sequence[PackedModel]) -> list[dict[str, Any]]:
    """What a page reads of the models whose packages stand in it."""
    return [one.facts | {"id": f"model-{at}"} for at, one in enumerate(models)]


def _build_text_element(name: str, text: str) -> str:
    return f'<script type="text/plain" id="{name}">{text}</script>'


def _encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
