"""A saved trace from a stranger: read without trusting it, and made fit to be drawn."""

from __future__ import annotations

import dataclasses
import re
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .language import join_sentences, say, say_many, to_say
from .trace import AttentionMap, AttentionTrace, TraceError, replace_tokens

MAX_FILE_MEGABYTES = 256
MAX_TOKENS, MAX_HEADS, MAX_CELLS = 1024, 2304, 2**27
MAX_TOKEN_CHARACTERS, MAX_TEXT_CHARACTERS, MAX_NAME_CHARACTERS = 80, 2000, 80
WORD_START_SIGNS = "\u2581\u0120"
"""Signs of SentencePiece and of byte-level BPE."""
STEP_FILE_NAME = re.compile(r"step-(\d{7,})\.safetensors")
PRINTED_ROUNDING = 0.0005
"""How far outside 0 to 1 a weight is still printed as 0 or 1 with three decimals."""
SAVE_HINT = to_say("Save one with capture.trace.save(...); masks and plain arrays are read on the page Masks.")


class OpenError(ValueError):
    """A file that cannot be shown; the message says why."""


@dataclass(frozen=True, eq=False)
class OpenedTrace:
    """A trace that the pages can show."""

    identity: str
    """No two traces have the same."""
    name: str
    """Name of the file, or of the user's own model."""
    trace: AttentionTrace
    """The trace as it was saved."""
    drawable: AttentionTrace
    """The same with finite float32 weights, and with tokens and texts of a length that can be read."""
    not_finite: int = 0
    """Weights that are NaN or infinite, and drawn as zero."""
    outside: int = 0
    """Weights below 0 or above 1, which most pictures show as 0 or 1."""

    @property
    def model(self) -> str:
        """What the model is called."""
        return self.drawable.model or say("an unnamed model")

    @property
    def size(self) -> int:
        """Bytes of its arrays; those that are drawn as they were saved count once."""
        arrays = [
            array
            for trace in (self.trace, self.drawable)
            for one in trace.maps.values()
            for array in (one.weights, one.mask, one.layer_masks, one.passed_masks, *one.tensors.values())
        ]
        return sum(array.nbytes for array in {id(array): array for array in arrays if array is not None}.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what differs between the trace and its pictures."""
        not_finite = say_many(
            "{count:,} weight is NaN or infinite: it is drawn as zero.",
            "{count:,} weights are NaN or infinite: they are drawn as zero.",
            self.not_finite,
        )
        outside = say_many(
            "{count:,} weight lies below 0 or above 1: heatmap, links and text show 0 or 1.",
            "{count:,} weights lie below 0 or above 1: heatmap, links and text show 0 or 1.",
            self.outside,
        )
        return tuple(said for count, said in ((self.not_finite, not_finite), (self.outside, outside)) if count)


def read_uploaded_trace(name: str, data: bytes | memoryview) -> OpenedTrace:
    """Read a saved trace as it was uploaded under `name`, which is never used as a path.

    Raises:
        OpenError: whatever is wrong with it, in a sentence.
    """
    name = clean_text(name, MAX_NAME_CHARACTERS)
    if not data:
        raise OpenError(say("{file} is empty.", file=name))
    if len(data) > MAX_FILE_MEGABYTES * 2**20:
        raise OpenError(_too_large_text(name, len(data)))
    try:
        trace = _load_trace(data)
    except TraceError as error:
        cannot = say("{file} cannot be opened.", file=name)
        raise OpenError(join_sentences(cannot, clean_text(str(error), 300), say(SAVE_HINT))) from error
    except Exception as error:  # whatever a parser can be made to raise, the file is to blame
        broken = say("{file} cannot be opened: it is broken or no saved trace.", file=name)
        raise OpenError(join_sentences(broken, say(SAVE_HINT))) from error
    return open_trace(name, trace)


def read_trace_file(path: Path) -> OpenedTrace:
    """Read a saved trace from one's own file, as :func:`read_uploaded_trace` an uploaded one. Raises OpenError."""
    try:
        if path.stat().st_size > MAX_FILE_MEGABYTES * 2**20:
            raise OpenError(_too_large_text(path.name, path.stat().st_size))
        return read_uploaded_trace(path.name, path.read_bytes())
    except OSError as error:
        raise OpenError(say("{path} cannot be read: {reason}.", path=path, reason=error.strerror)) from error


@dataclass(frozen=True, eq=False)
class OpenedRun:
    """The traces of one input at several steps of a training, whose maps have one shape."""

    name: str
    steps: tuple[int, ...]
    traces: tuple[OpenedTrace, ...]


def read_training_traces(folder: Path) -> OpenedRun:
    """Read the traces that :func:`.capture.training_watch.watch` has written. OpenError names the file at fault."""
    found = {int(match[1]): path for path in folder.iterdir() if (match := STEP_FILE_NAME.fullmatch(path.name))}
    if not found:
        raise OpenError(say("{folder} holds no trace of a step, such as step-0000500.safetensors.", folder=folder))
    size = sum(path.stat().st_size for path in found.values())
    if size > MAX_FILE_MEGABYTES * 2**20:
        raise OpenError(_too_large_text(str(folder), size))
    steps = sorted(found)
    traces = [read_trace_file(found[step]) for step in steps]
    shapes = [{kind: one.weights.shape for kind, one in opened.trace.maps.items()} for opened in traces]
    odd = next((step for step, one in zip(steps, shapes, strict=True) if one != shapes[-1]), None)
    if odd is not None:
        raise OpenError(
            say(
                "{file} has maps of other shapes than {last}: {folder} is not of one input.",
                file=found[odd].name,
                last=found[steps[-1]].name,
                folder=folder,
            )
        )
    return OpenedRun(clean_text(folder.resolve().name, MAX_NAME_CHARACTERS), tuple(steps), tuple(traces))


def open_trace(name: str, trace: AttentionTrace) -> OpenedTrace:
    """Make a trace fit to be drawn. Raises OpenError for one that is too large or has nothing to show."""
    _check_trace_size(name, trace)
    maps: dict[str, Any] = {kind: _make_drawable_map(one) for kind, one in trace.maps.items()}
    not_finite = sum(int((~np.isfinite(one.weights)).sum()) for one in trace.maps.values())
    outside = sum(int((np.abs(one.weights - 0.5) > 0.5 + PRINTED_ROUNDING).sum()) for one in maps.values())
    source, target = clean_text(trace.source, MAX_TEXT_CHARACTERS), clean_text(trace.target, MAX_TEXT_CHARACTERS)
    model = clean_text(trace.model, MAX_NAME_CHARACTERS)
    drawable = dataclasses.replace(trace, **maps, source=source, target=target, model=model)
    return OpenedTrace(uuid.uuid4().hex, name, trace, drawable, not_finite, outside)


def clean_text(text: str, longest: int) -> str:
    """Return a text fit to be sent and read: no half or control characters, at most `longest` characters."""
    whole = text[: longest + 1].encode("utf-8", "replace").decode()
    printable = "".join(sign if sign.isprintable() else " " for sign in whole)
    return printable if len(printable) <= longest else printable[: longest - 1] + "…"


def _too_large_text(name: str, size: int) -> str:
    return say(
        "{file} has {size:.0f} MB; at most {most} MB are read.", file=name, size=size / 2**20, most=MAX_FILE_MEGABYTES
    )


def _load_trace(data: bytes | memoryview) -> AttentionTrace:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.safetensors"
        path.write_bytes(data)
        return AttentionTrace.load(path)


def _check_trace_size(name: str, trace: AttentionTrace) -> None:
    if not trace.maps:
        raise OpenError(say("{file} is a trace without any map, so there is nothing to show.", file=name))
    for kind, one in trace.maps.items():
        layers, heads, queries, keys = shape = one.weights.shape
        if 0 in one.weights.shape:
            raise OpenError(
                say("{file}: its {kind} map is empty, of the shape {shape}.", file=name, kind=kind, shape=shape)
            )
        sizes = max(queries, keys) > MAX_TOKENS or layers * heads > MAX_HEADS
        if sizes or one.weights.size > MAX_CELLS:
            raise OpenError(
                say(
                    "{file}: its {kind} map has the shape {shape}; shown are at most {tokens:,} tokens, {heads:,} "
                    "heads and {cells:,} weights.",
                    file=name,
                    kind=kind,
                    shape=shape,
                    tokens=MAX_TOKENS,
                    heads=MAX_HEADS,
                    cells=MAX_CELLS,
                )
            )


def _make_drawable_map(one: AttentionMap) -> AttentionMap:
    weights = np.asarray(one.weights, np.float32)
    if not np.isfinite(weights).all():
        weights = np.nan_to_num(weights, nan=0.0, posinf=0.0, neginf=0.0)
    paths = tuple(clean_text(path, MAX_NAME_CHARACTERS) for path in one.layer_paths)
    special = frozenset(normalize_token_spaces(tuple(one.special_tokens)))
    drawn = dataclasses.replace(one, weights=weights, layer_paths=paths, special_tokens=special)
    return replace_tokens(drawn, *map(normalize_token_spaces, (one.query_tokens, one.key_tokens, one.predicted_tokens)))


def normalize_token_spaces(raw: Sequence[str]) -> tuple[str, ...]:
    """Return tokens as this project writes them: a word begins with a space, whatever sign the tokenizer has for it."""
    short = (clean_text(token, MAX_TOKEN_CHARACTERS) or " " for token in raw)
    return tuple(" " + token[1:] if token[0] in WORD_START_SIGNS and len(token) > 1 else token for token in short)
