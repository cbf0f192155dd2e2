"""Captured attention as frozen numpy arrays, saved as safetensors with JSON in its header. Imports no torch."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar, get_args

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from .atomic_write import write_file
from .language import join_items, say

Kind = Literal["encoder", "decoder", "cross"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Head = tuple[Kind, int, int]
"""The attention, the layer and the head, both from 0."""
Sizes = Mapping[Kind, tuple[int, int]]
"""How many layers and heads each kind of attention has."""
TENSOR_NAMES = ("q", "k", "v", "scores", "masked_scores")
TRACE_FORMAT = "attenscope-trace-1"


class TraceError(ValueError):
    """A file or a set of arrays that is not a trace; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """The attention weights of every layer and head of one kind, for one sentence (no batch axis)."""

    kind: Kind
    weights: np.ndarray
    """(L, H, Q, K) float32: row q is the distribution of query q over the keys, all zero if none is allowed."""
    query_tokens: tuple[str, ...]
    """(Q,) the token fed in at each row."""
    key_tokens: tuple[str, ...]
    """(K,) the token attended to in each column."""
    mask: np.ndarray
    """(Q, K) bool, True = may attend, in any layer and head."""
    predicted_tokens: tuple[str, ...] = ()
    """(Q,) the token predicted at each row; of the decoder and cross maps, else empty."""
    tensors: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Any of q (L,H,Q,d), k and v (L,H,K,d), scores and masked_scores (L,H,Q,K); a score is NaN where cached decoding
    never computed it, because the key came later."""
    layer_masks: np.ndarray | None = None
    """(L, 1 or H, Q, K) bool, where layers or their heads have masks of their own; None where `mask` is that of all."""
    layer_paths: tuple[str, ...] = ()
    """(L,) the module of each layer, by its path in the model; empty where that is not known."""
    layer_calls: tuple[str, ...] = ()
    """(L,) where each layer called attention, as JSON (:class:`.masks.attention_call_origin.AttentionCall`)."""
    passed_masks: np.ndarray | None = None
    """(1 or L, 1 or H, Q, K) bool, True = may attend: the mask that each layer's call was given, whatever took effect,
    all open where none arrived. None where it is not known, or none arrived anywhere; ``layer_calls`` say which."""
    special_tokens: frozenset[str] = frozenset()
    """Of its tokens, those that its tokenizer says stand for no text, beside the usual ones (:mod:`.text.words`)."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise TraceError(
                say(
                    "An attention map's kind is {kind!r}; it must be one of {kinds}.",
                    kind=self.kind,
                    kinds=join_items(KINDS),
                )
            )
        if self.weights.ndim != 4:
            raise TraceError(
                say("Attention weights must have the axes (L, H, Q, K); these have {shape}.", shape=self.weights.shape)
            )
        if not np.issubdtype(self.weights.dtype, np.floating):
            raise TraceError(
                say("Attention weights must be floating-point numbers; these are {type}.", type=self.weights.dtype)
            )
        queries, keys = self.weights.shape[2:]
        self._check("mask", self.mask.shape, (queries, keys))
        self._check("query tokens", (len(self.query_tokens),), (queries,))
        self._check("key tokens", (len(self.key_tokens),), (keys,))
        if self.predicted_tokens:
            self._check("predicted tokens", (len(self.predicted_tokens),), (queries,))
        self._check_masks()
        for name in ("layer_paths", "layer_calls"):
            if own := getattr(self, name):
                self._check(name.replace("_", " "), (len(own),), (self.layers,))
        for name, tensor in self.tensors.items():
            if name not in TENSOR_NAMES:
                raise TraceError(
                    say("A map cannot hold {name!r}; it holds {names}.", name=name, names=join_items(TENSOR_NAMES))
                )
            scores = name in ("scores", "masked_scores")
            rows = queries if name == "q" or scores else keys
            columns = (keys,) if scores else tensor.shape[-1:]  # any head width
            self._check(name, tensor.shape, (*self.weights.shape[:2], rows, *columns))

    def _check_masks(self) -> None:
        if self.layer_masks is not None:
            heads = 1 if self.layer_masks.shape[1:2] == (1,) else self.heads
            self._check("layer masks", self.layer_masks.shape, (self.layers, heads, *self.weights.shape[2:]))
        if self.passed_masks is not None:
            sizes = zip(self.passed_masks.shape[:2], self.weights.shape[:2], strict=False)
            first = (1 if size == 1 else whole for size, whole in sizes)
            self._check("passed masks", self.passed_masks.shape, (*first, *self.weights.shape[2:]))

    def _check(self, what: str, have: tuple[int, ...], want: tuple[int, ...]) -> None:
        if have != want:
            raise TraceError(
                say(
                    "The {kind} map's {what} have the shape {have}, but its weights {shape} ask for {want}.",
                    kind=self.kind,
                    what=what,
                    have=have,
                    shape=self.weights.shape,
                    want=want,
                )
            )

    @property
    def layers(self) -> int:
        return self.weights.shape[0]

    @property
    def heads(self) -> int:
        return self.weights.shape[1]

    @property
    def layer_numbers(self) -> tuple[int, ...]:
        """(L,) the model's own number of each layer, as it stands in the paths; 0 to L - 1 where they do not tell."""
        names = [path.split(".") for path in self.layer_paths]
        for place in zip(*names, strict=False):
            if all(part.isdecimal() for part in place) and len(set(place)) == self.layers:
                return tuple(int(part) for part in place)
        return tuple(range(self.layers))

    @property
    def masks(self) -> np.ndarray:
        """The mask of every layer, (L, 1 or H, Q, K) bool: broadcasts against the weights."""
        own = self.layer_masks
        return np.broadcast_to(self.mask, (self.layers, 1, *self.mask.shape)) if own is None else own

    def mask_of(self, layer: int, head: int) -> np.ndarray:
        """Return the mask of one head, counted from 0: (Q, K) bool."""
        return self.masks[layer, head if self.masks.shape[1] > 1 else 0]

    def rows(self, label: Literal["fed", "predicted"] = "fed") -> tuple[str, ...]:
        """Return the row labels: the token fed in, or the token predicted where there is one."""
        return self.predicted_tokens if label == "predicted" and self.predicted_tokens else self.query_tokens


P = ParamSpec("P")
R = TypeVar("R")


def cache_on_map(work: Callable[Concatenate[AttentionMap, P], R]) -> Callable[Concatenate[AttentionMap, P], R]:
    """Return `work` with its results kept on the map that they are of, for as long as that map lives.

    A map is frozen, so what is computed of it stays true. A cache of a fixed size would hold maps that nobody looks at
    any more, and forget others while many visitors look at theirs.

    Args:
        work: A function of a map and of arguments that can be hashed.
    """
    name = f"{work.__module__}.{work.__qualname__}"

    @wraps(work)
    def look_up(attention: AttentionMap, *arguments: P.args, **named: P.kwargs) -> R:
        kept: dict[Any, R] = vars(attention).setdefault("_cached_results", {})
        key = (name, arguments, *sorted(named.items()))
        if key not in kept:
            kept[key] = work(attention, *arguments, **named)
        return kept[key]

    return look_up


@dataclass(frozen=True, eq=False)
class AttentionTrace:
    """All maps of one run of one model on one sentence, and where they came from."""

    encoder: AttentionMap | None = None
    decoder: AttentionMap | None = None
    cross: AttentionMap | None = None
    source: str = ""
    target: str = ""
    model: str = ""
    """Name of the checkpoint, or of the class of any other model."""
    model_hash: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """JSON values: attention path, decoding settings, device, whatever is needed to make it again."""

    def __post_init__(self) -> None:
        for kind in KINDS:
            found = getattr(self, kind)
            if found is not None and found.kind != kind:
                raise TraceError(
                    say("The map given as {kind} says that it is a {other} map.", kind=kind, other=found.kind)
                )

    @property
    def maps(self) -> dict[Kind, AttentionMap]:
        """The maps that are there, by kind, in the order encoder, decoder, cross."""
        found = {kind: getattr(self, kind) for kind in KINDS}
        return {kind: one for kind, one in found.items() if one is not None}

    @property
    def sizes(self) -> dict[Kind, tuple[int, int]]:
        """How many layers and heads each map has, by kind."""
        return {kind: (one.layers, one.heads) for kind, one in self.maps.items()}

    def _repr_html_(self) -> str | None:
        """Return the overview of every map as a picture, for notebooks; None where the views are not installed."""
        try:
            return str(importlib.import_module(".viz.notebook.static_html", __package__).static_html(self))
        except ImportError:
            return None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file: the arrays, and all else as JSON in its header. No pickle."""
        arrays: dict[str, np.ndarray] = {}
        described: dict[str, Any] = {}
        for kind, one in self.maps.items():
            arrays |= {f"{kind}.{name}": np.ascontiguousarray(array) for name, array in _list_map_arrays(one)}
            described[kind] = {name: list(getattr(one, name)) for name in (*_TOKEN_FIELDS, *_LAYER_FIELDS)}
            described[kind] |= {"special_tokens": sorted(one.special_tokens)}
        described |= {name: getattr(self, name) for name in _TEXT_FIELDS} | {"settings": dict(self.settings)}
        write_file(path, save(arrays, metadata={"format": TRACE_FORMAT, "trace": json.dumps(described)}))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` wrote. Raises TraceError with a sentence when it is anything else."""
        try:
            with safe_open(path, framework="numpy") as file:
                metadata = file.metadata() or {}
                if metadata.get("format") != TRACE_FORMAT:
                    raise TraceError(
                        say("This safetensors file is not an Attenscope trace: its header does not say so.")
                    )
                described = json.loads(metadata["trace"])
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dict)
        except TraceError:
            raise
        except (SafetensorError, OSError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise TraceError(
                say("This file cannot be read as a trace ({error}). Save it again with trace.save().", error=error)
            ) from error
        try:
            maps = {kind: _read_map(kind, described[kind], arrays) for kind in KINDS if kind in described}
            text = {name: str(described[name]) for name in _TEXT_FIELDS}
            settings = dict(described["settings"])
        except TraceError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TraceError(
                say(
                    "The trace in this file is incomplete ({error}). Save it again with trace.save().",
                    error=repr(error),
                )
            ) from error
        return cls(maps.get("encoder"), maps.get("decoder"), maps.get("cross"), settings=settings, **text)


_LAYER_FIELDS = ("layer_paths", "layer_calls")
_TOKEN_FIELDS = ("query_tokens", "key_tokens", "predicted_tokens")
_TEXT_FIELDS = ("source", "target", "model", "model_hash")


def _list_map_arrays(one: AttentionMap) -> Iterator[tuple[str, np.ndarray]]:
    yield "weights", one.weights
    yield "mask", one.mask
    if one.layer_masks is not None:
        yield "layer_masks", one.layer_masks
    if one.passed_masks is not None:
        yield "passed_masks", one.passed_masks
    yield from one.tensors.items()


def _read_map(kind: Kind, described: Any, arrays: dict[str, np.ndarray]) -> AttentionMap:
    own = {name.removeprefix(f"{kind}."): array for name, array in arrays.items() if name.startswith(f"{kind}.")}
    tokens = {name: tuple(str(token) for token in described[name]) for name in _TOKEN_FIELDS}
    paths, calls = (tuple(str(one) for one in described.get(name, ())) for name in _LAYER_FIELDS)
    weights, mask = own.pop("weights"), own.pop("mask").astype(bool)
    masks = {name: own.pop(name).astype(bool) for name in ("layer_masks", "passed_masks") if name in own}
    layer_masks, passed = masks.get("layer_masks"), masks.get("passed_masks")
    queries, keys, predicted = (tokens[name] for name in _TOKEN_FIELDS)
    one = AttentionMap(kind, weights, queries, keys, mask, predicted, own, layer_masks)
    special = frozenset(str(token) for token in described.get("special_tokens", ()))
    return dataclasses.replace(one, layer_paths=paths, layer_calls=calls, passed_masks=passed, special_tokens=special)


def replace_tokens(
    one: AttentionMap, queries: tuple[str, ...], keys: tuple[str, ...], predicted: tuple[str, ...] = ()
) -> AttentionMap:
    """Return the same map with its rows and columns named."""
    return dataclasses.replace(one, query_tokens=queries, key_tokens=keys, predicted_tokens=predicted)


def select_head(attention: AttentionMap, layer: int, head: int) -> AttentionMap:
    """Return a map of nothing but one head, counted from 0: weights (1, 1, Q, K)."""
    weights, mask = attention.weights[layer, head][None, None], attention.mask_of(layer, head)
    paths = attention.layer_paths[layer : layer + 1]
    return dataclasses.replace(
        attention,
        weights=weights,
        mask=mask,
        layer_masks=None,
        layer_paths=paths,
        layer_calls=(),
        passed_masks=None,
        tensors={},
    )
