"""A folder of Hugging Face transformers, as it is named on the command line: ``hf:FOLDER``.

Nothing is downloaded, no code of the folder runs, and only weights in safetensors are read: nothing is unpickled.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

from ..language import join_items, join_sentences, say, say_many, to_say
from ..runnable_model import Ability, LocalError, LocalModel, RunnableModel

FOLDER_PREFIX = "hf:"
OPTIONS_EXAMPLE = "?source=en&target=de&dtype=bfloat16"
CONFIG_FILE, ADAPTER_FILE = "config.json", "adapter_config.json"
SAFETENSORS_FILES = ("model.safetensors", "model.safetensors.index.json")
PICKLE_FILES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "flax_model.msgpack")
LAYER_COUNT_NAMES = re.compile("^(?!vocab_)(?!.*size).*(layer|block|expert|depth|stage)", re.IGNORECASE)
"""Names of numbers of a configuration that say how many modules are made, before any weight is read; no widths."""
MAX_LAYERS = 1024
MAX_EXPERTS = 32_768
"""Experts of a layer are one tensor, and some models have many small ones."""
MAX_NAME_CHARACTERS = 300
"""Characters of a name in a configuration that a sentence shows."""
TRANSFORMERS_MISSING_MESSAGE = to_say(
    "Running a Hugging Face folder takes transformers, which is not installed here: pip install transformers"
)


def find_model_folders(directory: Path) -> list[Path]:
    """Return the folders under a directory that hold a model, by name, one level deep. Raises LocalError."""
    if not directory.is_dir():
        raise LocalError(say("There is no folder {directory}.", directory=directory))
    return sorted(path.parent for path in directory.glob(f"*/{CONFIG_FILE}"))


def find_adapter_specs(directory: Path) -> dict[str, str]:
    """Return what opens each adapter directly under a directory, by its folder's name.

    Its base is the folder that its configuration names, or the one of the same last name beside it; an adapter without
    either says so when it is opened.
    """
    found = {}
    for path in sorted(directory.glob(f"*/{ADAPTER_FILE}")):
        if not (path.parent / CONFIG_FILE).is_file():
            base = _find_adapter_base(path)
            adapter = quote(str(path.parent))
            found[path.parent.name] = f"{base}?adapter={adapter}" if base else str(path.parent)
    return found


def _find_adapter_base(path: Path) -> Path | None:
    try:
        named = json.loads(path.read_text(encoding="utf-8"))["base_model_name_or_path"]
        beside = path.parent.parent / Path(named).name
        return next((one for one in (Path(named), beside) if (one / CONFIG_FILE).is_file()), None)
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return None


def open_model_folder(name: str) -> RunnableModel | LocalModel:
    """Return what runs ``FOLDER`` or ``FOLDER?source=en&target=de&dtype=own``: one that writes, or one that reads.

    The languages are those of a model that writes many; ``template=none`` takes a chat template away, and the name of a
    task puts its prefix before texts. ``adapter=FOLDER`` merges an adapter into its weights. Raises LocalError.
    """
    path, _, query = name.partition("?")
    options = dict(parse_qsl(query))
    if unknown := set(options) - {"source", "target", "dtype", "template", "adapter"}:
        raise LocalError(
            say(
                "{prefix}{name}: {unknown} is unknown; write {example}.",
                example=OPTIONS_EXAMPLE,
                prefix=FOLDER_PREFIX,
                name=name,
                unknown=join_items(sorted(unknown)),
            )
        )
    folder = Path(path).expanduser()
    config = read_checked_config(folder)
    _check_weight_files(folder)
    try:
        from .load import load_folder_model
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "transformers":
            raise LocalError(say(TRANSFORMERS_MISSING_MESSAGE)) from error
        raise
    return load_folder_model(folder, config, options)


def read_checked_config(folder: Path) -> Mapping[str, Any]:
    """Return what the folder's configuration says, where a model can be built of it at all. Raises LocalError."""
    if not folder.is_dir():
        raise LocalError(say("There is no folder {folder}.", folder=folder))
    if (folder / ADAPTER_FILE).is_file() and not (folder / CONFIG_FILE).is_file():
        raise LocalError(
            say(
                "{folder} is an adapter (LoRA and the like), not a whole model: name the folder of its base, and the "
                "adapter behind it: {example}",
                folder=folder.name,
                example=f"`hf:BASE?adapter={folder}`",
            )
        )
    try:
        config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    except OSError as error:
        raise LocalError(
            say(
                "{folder} has no {config}: it is no folder of a Hugging Face model.",
                folder=folder.name,
                config=CONFIG_FILE,
            )
        ) from error
    except (ValueError, RecursionError) as error:
        raise LocalError(say("{folder}: {config} is not JSON.", folder=folder.name, config=CONFIG_FILE)) from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise LocalError(
            say(
                "{folder}: {config} names no model_type, so it is no folder of a Hugging Face model.",
                folder=folder.name,
                config=CONFIG_FILE,
            )
        )
    _check_layer_counts(folder, config)
    return config


def _check_weight_files(folder: Path) -> None:
    """Raise LocalError where a folder has no weights in safetensors."""
    if not any((folder / name).is_file() for name in SAFETENSORS_FILES):
        pickled = next((name for name in PICKLE_FILES if (folder / name).exists()), None)
        raise LocalError(
            join_sentences(
                say("{folder} has no weights in safetensors ({file}).", folder=folder.name, file=SAFETENSORS_FILES[0]),
                say("It has {file}, which is never opened: save it again with model.save_pretrained.", file=pickled)
                if pickled
                else "",
            )
        )


def _check_layer_counts(folder: Path, config: Mapping[str, Any]) -> None:
    """Raise LocalError where a configuration, or one in it, asks for more modules than any model has."""
    within = [config]
    while within:
        for name, value in within.pop().items():
            if isinstance(value, dict):
                within.append(value)
            most = MAX_EXPERTS if "expert" in name.lower() else MAX_LAYERS
            if isinstance(value, int | float) and LAYER_COUNT_NAMES.search(name) and value > most:
                raise LocalError(
                    say(
                        "{folder}: {config} asks for {name} = {value}; at most {most:,} are made.",
                        folder=folder.name,
                        config=CONFIG_FILE,
                        name=name[:MAX_NAME_CHARACTERS],
                        value=str(value)[:20],
                        most=most,
                    )
                )


@contextmanager
def convert_failure_to_local_error(folder: Path, message: str) -> Iterator[None]:
    """Raise LocalError with a message of ours for whatever transformers raises in this block.

    What it raised itself speaks of its own inside; it goes to the log. The message may name {folder} and {version}.
    """
    try:
        yield
    except LocalError:
        raise
    except Exception as error:  # transformers raises anything, from KeyError to its own
        logging.getLogger(__name__).info("%s: %s", folder, message, exc_info=True)
        raise LocalError(say(message, folder=folder.name, version=version("transformers"))) from error


# What a folder's model cannot do on the pages, and which of its generation settings are not applied.


TRANSLATION_LACKS: Mapping[Ability, str] = {
    "cache check": "",
    "examples": "",
    "parts": to_say(
        "The parts of a logit and of an attention score are not computed for a model from a folder, whose norms and "
        "feed-forward networks are not known one by one; a model of this project can."
    ),
    "position pictures": "",
    "training": to_say("A folder says nothing of its training; a model of this project can."),
    "kept measures": to_say(
        "Alignment, pruning and the course of training are not measured of a model from a folder, whose heads have an "
        "atlas alone: Map, Head, Search and Projection."
    ),
}
CONTINUATION_LACKS: Mapping[Ability, str] = {
    **TRANSLATION_LACKS,
    "translate": to_say("A decoder alone has no source to attend to."),
}
"""Messages for :meth:`RunnableModel.cannot`. An empty one: the view leaves out that part and says nothing."""
NO_POSITIONS_MESSAGE = to_say(
    "No table of positions is added to this model's token embeddings, as where attention itself knows distances "
    "(relative or rotary positions), so there is none to read and to move."
)
NO_MASK_MESSAGE = to_say(
    "What a word rests on is not computed for this model: no mask reaches its encoder's attention, so no piece can be "
    "left out."
)
NO_STREAMS_LACKS: Mapping[Ability, str] = {
    "lens": to_say(
        "The layers of this model hand on more than one stream, so none can be read as if it were the last, nor be put "
        "into another run."
    ),
    "word facts": "",
}
OTHER_INPUTS: Mapping[str, str] = {
    "input_features": to_say("{folder} reads sound, not text."),
    "input_values": to_say("{folder} reads sound, not text."),
    "pixel_values": to_say("{folder} reads pictures, not text."),
}
"""What transformers calls the main input of models without text, and what is said of them."""


@dataclass(frozen=True)
class AbsentMaps:
    """What mixes positions in a model and has no map, so that a page says so."""

    encoder: bool = False
    """No attention of its encoder is seen."""
    bare_layers: tuple[int, ...] = ()
    """Layers of the decoder, from 0, that have no attention."""
    mixed_layers: tuple[int, ...] = ()
    """Layers that keep a state beside their attention."""
    sinks: bool = False
    """Its attention has a learned sink beside its keys."""

    @property
    def sentences(self) -> tuple[str, ...]:
        found = []
        if self.encoder:
            found.append(
                say(
                    "The maps of the encoder are missing: its attention is not computed as weights of every token on "
                    "every other."
                )
            )
        if self.bare_layers:
            found.append(
                say_many(
                    "Layer {layers} has no attention: a state or a convolution mixes positions there, and has no map. "
                    "The layers of the maps count those with attention.",
                    "Layers {layers} have no attention: a state or a convolution mixes positions there, and has no "
                    "map. The layers of the maps count those with attention.",
                    len(self.bare_layers),
                    layers=_format_layer_numbers(self.bare_layers),
                )
            )
        if self.mixed_layers:
            found.append(
                say_many(
                    "Layer {layers} has a state beside its attention, which mixes positions too and has no map.",
                    "Layers {layers} have a state beside their attention, which mixes positions too and has no map.",
                    len(self.mixed_layers),
                    layers=_format_layer_numbers(self.mixed_layers),
                )
            )
        if self.sinks:
            found.append(
                say(
                    "Each head has a learned sink beside its keys: the weights of a row sum to less than 1, and the "
                    "rest is the sink's."
                )
            )
        return tuple(found)


def _format_layer_numbers(layers: Sequence[int]) -> str:
    return join_items([str(one + 1) for one in layers])


UNAPPLIED_SETTINGS: Mapping[str, Any] = {
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "min_length": 0,
    "min_new_tokens": 0,
    "begin_suppress_tokens": (),
}
"""Settings of generation that would change what is written, and the value at which each does nothing."""


def describe_unapplied_generation_settings(settings: Any) -> tuple[str, ...]:
    """Return what a page has to say of a folder's generation settings, `transformers.GenerationConfig`."""
    asked = {name: getattr(settings, name, None) for name in UNAPPLIED_SETTINGS}
    left = [f"{name} {value}" for name, value in asked.items() if value and value != UNAPPLIED_SETTINGS[name]]
    if not left:
        return ()
    return (
        say(
            "The folder's generation settings also ask for {settings}, which is not applied here.",
            settings=join_items(left),
        ),
    )
