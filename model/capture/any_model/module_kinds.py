"""Facts on the modules of any model: their kinds, names, refusals and remarks, and a weight store."""

from __future__ import annotations

import re
import weakref
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...language import join_items, join_sentences, say, to_say
from ...trace import KINDS, Kind, TraceError
from .axes import iterate_tensors

# Kinds: told by the path of a module, else by its mask.


CROSS_PATH = re.compile(
    r"cross|multihead_attn|enc(oder)?_attn|enc(oder)?_?dec|src_attn|context_attn|attn2", re.IGNORECASE
)
DECODER_PATH = re.compile(r"decoder|(^|\.)dec(_|\.|$)", re.IGNORECASE)
ENCODER_PATH = re.compile(r"encoder|(^|\.)enc(_|\.|$)", re.IGNORECASE)
_NAME_OF_BOTH = re.compile(r"[^.]*(enc(oder)?_?dec|dec(oder)?_?enc)[^.]*", re.IGNORECASE)
"""One name of a path, as of a model of both stacks, that says of neither which it is."""


@dataclass(frozen=True)
class KindEvidence:
    """The evidence that decides the kind of a path."""

    path: str
    is_cross: bool | None
    """Queries and keys were made of different tensors; None where that is not known, or both come from one sequence."""
    causal: bool | None
    """No query may attend to a later key, in every call that could show it; None where none could."""


def read_kind_from_path(path: str) -> Kind:
    """Return the kind of an attention of this project: ``encoder.layers.0.self_attention`` -> encoder, and so on."""
    if CROSS_PATH.search(get_path_in_layer(path)):
        return "cross"
    return "decoder" if "decoder" in _NAME_OF_BOTH.sub("", path) else "encoder"


def get_path_in_layer(path: str) -> str:
    """Return the part of a path inside its layer: what follows a number, but not one at the end, as of a head."""
    numbered = re.sub(r"(\.\d+)+$", "", path)
    return re.split(r"(?:^|\.)\d+\.", numbered)[-1]


def infer_attention_kinds(facts: Sequence[KindEvidence], model: str) -> Mapping[str, Kind]:
    """Return the kind of every path; `model` is the name of the model's class.

    Where a module was seen to make queries and keys of one tensor, or of different ones, no name says otherwise. What a
    path says, encoder or decoder, holds when the model has both. Where there is one stack alone, it is a
    decoder if its mask is causal, or if the model is a language model by its name and so ought to be. A mask that could
    be either is a decoder's in a layer that has cross-attention too, else an encoder's.
    """
    crossed = {_get_parent_path(one.path) for one in facts if _is_cross(one)}
    alone = not any(_is_cross(one) or is_on_path(DECODER_PATH, one.path) for one in facts)
    return {one.path: _infer_kind(one, alone, _get_parent_path(one.path) in crossed, model) for one in facts}


def _infer_kind(one: KindEvidence, alone: bool, crossed: bool, model: str) -> Kind:
    if _is_cross(one):
        return "cross"
    if is_on_path(DECODER_PATH, one.path):
        return "decoder"
    if alone or not is_on_path(ENCODER_PATH, one.path):
        causal = crossed if one.causal is None else one.causal
        return "decoder" if causal or is_causal_language_model_class(model) else "encoder"
    return "encoder"


def _get_parent_path(path: str) -> str:
    return path.rpartition(".")[0]


def is_on_path(side: re.Pattern[str], path: str) -> bool:
    """Return whether a path leads through a side, `DECODER_PATH` or `ENCODER_PATH`; `encoder_decoder` names neither."""
    return side.search(_NAME_OF_BOTH.sub("", path)) is not None


def _is_cross(one: KindEvidence) -> bool:
    """Whether it is cross-attention: by what is known, else by its name in the layer.

    What the network around is called says nothing: the layers of a cross-encoder have self-attention.
    """
    name = get_path_in_layer(one.path)
    named = CROSS_PATH.search(name) is not None
    if one.is_cross is None:
        return named
    return one.is_cross and (named or "self" not in name)


def is_causal_language_model_class(name: str) -> bool:
    """Whether a class of this name generates text from left to right, so that its one stack is a decoder."""
    return "CausalLM" in name or "LMHead" in name or name.startswith("GPT")


def is_broadcast_scalar_mask(allowed: Tensor) -> bool:
    """Whether a mask is a single number that was broadcast."""
    return not any(allowed.stride())


def is_causal_mask(allowed: Tensor) -> bool | None:
    """Whether booleans (B, H, Q, K) block every later key; None where that cannot be told, as of one query.

    A key that no query may attend to is padding and tells nothing: a causal mask blocks later keys that other queries
    see, and lets queries see earlier ones. The last query stands beside the last key: with more keys than queries, the
    earlier ones are those of a cache.
    """
    queries, keys = allowed.shape[-2:]
    if keys < queries:
        return None
    if is_broadcast_scalar_mask(allowed):
        return False if queries > 1 and bool(allowed.flatten()[0]) else None
    later = torch.ones(queries, keys, dtype=torch.bool, device=allowed.device).triu(keys - queries + 1)
    if bool((allowed & later).any()):
        return False
    earlier = torch.ones_like(later).tril(keys - queries - 1)
    seen = allowed.any(-2, keepdim=True)
    return True if bool((seen & later).any()) and bool((allowed & earlier).any()) else None


# Modules that the user names, and weights found in what they return.


def match_modules(model: nn.Module, patterns: Mapping[str, Kind | None]) -> dict[str, Kind | None]:
    """Return the paths that the patterns name, in the model's order, and the kind that each is said to be.

    Raises:
        TraceError: for a pattern that names nothing, and for a kind that there is not.
    """
    paths = [path for path, _ in model.named_modules()]
    found: dict[str, Kind | None] = {}
    for pattern, kind in patterns.items():
        if kind not in (None, *KINDS):
            raise TraceError(
                say(
                    "{pattern} is said to be {kind!r}; it must be one of {kinds}.",
                    pattern=pattern,
                    kind=kind,
                    kinds=join_items(KINDS),
                )
            )
        hits = [path for path in paths if fnmatchcase(path, pattern)]
        if not hits:
            some = ", ".join(path for path in paths if path)[:300] or say("itself alone")
            raise TraceError(
                say(
                    "No module of this {model} is named {pattern!r}. It has: {paths} ...",
                    model=type(model).__name__,
                    pattern=pattern,
                    paths=some,
                )
            )
        found |= dict.fromkeys(hits, kind)
    return found


def find_named_ancestor(path: str, named: Mapping[str, Kind | None]) -> str | None:
    """Return the named module at or above `path`; None where there is none."""
    above = (one for one in named if path == one or path.startswith(f"{one}.") or not one)
    return max(above, key=len, default=None)


def find_attention_weights_in_output(output: Any) -> Tensor | None:
    """Return the last tensor of an output that can only be weights: no number below 0, every row sums to 1."""
    found = [tensor for tensor in iterate_tensors(output) if _is_attention_weights(tensor)]
    return found[-1] if found else None


def _is_attention_weights(tensor: Tensor) -> bool:
    if not tensor.is_floating_point() or not 2 <= tensor.dim() <= 5 or not tensor.numel():
        return False
    if tensor.dim() == 2 and len(tensor) > 1:  # rather one row of each sample
        return False
    sums = tensor.float().sum(-1)
    return bool((tensor >= 0).all()) and bool(torch.isclose(sums, torch.ones_like(sums), atol=1e-3).all())


# Why nothing was captured.


CLASSES_WITHOUT_WEIGHTS = re.compile(
    r"Performer|FastAttention|LinearAttention|Mamba(?!Out)|RWKV|Rwkv|FNet|Hyena|RetNet|Retention|DeltaNet|xLSTM"
)
"""Classes of layers that stand where attention would and compute no weights of queries over keys."""


_FEATURE_ATTENTION_CLASSES = re.compile("XCA|CrossCovariance|ChannelAtt")
"""Classes whose attention is between features: where there are as many features as tokens, shapes do not tell."""


def is_feature_attention(module: nn.Module) -> bool:
    """Whether a module computes attention between features, by the name of its class."""
    return bool(_FEATURE_ATTENTION_CLASSES.search(type(module).__name__))


def explain_empty_capture(model: nn.Module, ran: bool, other_softmaxes: Collection[str]) -> str:
    """Return why no attention was seen at all; `ran` says whether anything of the model ran in this thread."""
    name = type(model).__name__
    if program := _explain_non_python_model(model):
        return say(program, model=name)
    if not ran:
        return say(
            "Nothing was captured: nothing of this {model} ran inside the block, in its thread. Run the model there; "
            "what runs in another thread or process is not seen.",
            model=name,
        )
    found = (CLASSES_WITHOUT_WEIGHTS.search(type(module).__name__) for module in model.modules())
    if without := sorted({match[0] for match in found if match}):
        return say(
            "Nothing was captured: this {model} ran, but layers of {classes} have no attention weights.",
            model=name,
            classes=join_items(without[:MAX_NAMED_MODULES]),
        )
    if other_softmaxes:
        return say(
            "Nothing was captured: no attention was found in this {model}. A softmax ran in {modules}: if that is "
            "attention, name it: capture_attention(model, modules=[...]).",
            model=name,
            modules=join_items(map(path_text, sorted(other_softmaxes)[:MAX_NAMED_MODULES])),
        )
    return say(
        "Nothing was captured: this {model} ran, but called no softmax and no attention of torch. If a module returns "
        "attention weights, name it: capture_attention(model, modules=[...]).",
        model=name,
    )


def _explain_non_python_model(model: nn.Module) -> str:
    """The message on a model that does not run in Python; empty for any other."""
    for module in model.modules():
        if isinstance(module, torch.jit.ScriptModule):
            return to_say(
                "Nothing was captured: this {model} is scripted or traced by torch.jit, which runs past what can be "
                "observed. Capture the model that it was made of."
            )
        if isinstance(module, torch.fx.GraphModule):
            return to_say(
                "Nothing was captured: this {model} is an exported program or a traced graph, whose calls belong to "
                "no module. Capture the model that it was made of."
            )
    return ""


# What observing changed and left out: kept with a trace as codes and values, since its reader's language may differ.


Remark = tuple[str, Mapping[str, Any]]
"""A code of :data:`REMARK_MESSAGES` or :data:`REASON_MESSAGES`, and the values of its message; JSON as it stands."""
REMARKS_SETTING = "observed"
"""The setting of a trace that keeps the remarks on it."""
MAX_NAMED_MODULES = 8
"""Modules that are named of those that were left out."""
REMARK_MESSAGES = {
    "unchanged": to_say("The model computed these weights itself, and observing it changed nothing."),
    "fast-path": to_say(
        "Unobserved, torch would have taken the fused fast path of nn.TransformerEncoder or nn.MultiheadAttention; "
        "observed, its plain path ran: outputs of real tokens may differ in the last digits, those of padding more."
    ),
    "explicit": to_say(
        "Unobserved, a fused kernel would have run; weights times values were computed in its place, so that "
        "gradients reach the weights: outputs may differ in the last digits."
    ),
    "fused-dropout": to_say(
        "A fused kernel ran, as it does unobserved; the weights were computed beside it, before dropout."
    ),
    "fused": to_say(
        "A fused kernel ran, as it does unobserved; the weights were computed beside it, and weights times values "
        "differ from its output by at most {difference:.1e}."
    ),
    "several-texts": to_say(
        "{module} ran several times in one forward, each time on something else, as on two texts: the last is shown. "
        "Run the network on each alone to see the others."
    ),
    "side-by-side": to_say(
        "{module} ran several times in one forward, each time on something else, in turn with other layers: each is "
        "shown as a layer."
    ),
    "perhaps-texts": to_say(
        "{module} ran several times in one forward, and it cannot be told whether as several layers, on several texts "
        "or for several heads: each is shown as a layer."
    ),
    "not-laid-out": to_say(
        "Not recorded, because it cannot be laid out as samples, heads, queries and keys: softmax of {modules}."
    ),
    "not-understood": to_say("Not recorded, because its effect on the weights is not known: {modules}."),
}
"""What a remark on a capture says; `modules` is a list of (path, code of a reason, values), `module` a path."""
REASON_MESSAGES = {
    "axis": to_say("axis {axis} of {shape}"),
    "axis-heads": to_say("axis {axis} of {shape}, {heads} heads"),
    "over-features": to_say("attention of features over features, not of tokens over tokens"),
    "no-product": to_say("of one projection alone, as in linear attention: no product of queries and keys"),
    "several": to_say("several attentions in one call, of {first} and {second}"),
    "argument": to_say("{arguments} of {kernel}"),
    "lengths": to_say("its cumulative lengths of {kernel}"),
}
"""Why the attention of a module was left out."""
LEFT_OUT_MESSAGES = {"not-laid-out": to_say("{module} ({reason})"), "not-understood": to_say("{reason}, in {module}")}
"""How a module and the reason stand together."""


def remarks_text(remarks: Iterable[Remark]) -> str:
    """Return remarks in the reader's language. Raises KeyError, TypeError or ValueError for what is no remark."""
    return join_sentences(*(_remark_text(code, values) for code, values in remarks))


def read_saved_remarks(settings: Mapping[str, Any]) -> str:
    """Return what a saved trace, which nobody vouches for, says of its making; empty where it says nothing.

    A trace that has no remarks may have a sentence, which stands there in the language that it was written in.
    """
    try:
        return remarks_text(settings[REMARKS_SETTING])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError):
        effect = settings.get("observer_effect")
        return effect if isinstance(effect, str) else ""


def make_left_out_remark(code: str, reasons: Mapping[str, Remark]) -> Remark:
    """Return the remark on modules that were left out, by path."""
    return code, {"modules": [[path, *reason] for path, reason in sorted(reasons.items())][:MAX_NAMED_MODULES]}


def path_text(path: str) -> str:
    """Return the path of a module; the model's own is empty."""
    return path or say("the model itself")


def _remark_text(code: str, values: Mapping[str, Any]) -> str:
    if code not in LEFT_OUT_MESSAGES:
        named = {"module": path_text(values["module"])} if "module" in values else {}
        return say(REMARK_MESSAGES[code], **{**values, **named})
    return say(
        REMARK_MESSAGES[code],
        modules=join_items(
            _module_text(LEFT_OUT_MESSAGES[code], *one) for one in values["modules"][:MAX_NAMED_MODULES]
        ),
    )


def _module_text(place: str, path: str, code: str, values: Mapping[str, Any]) -> str:
    return say(place, module=path_text(path), reason=say(REASON_MESSAGES[code], **values))


# Large weights are stored behind each other, so that a map of all layers is a view of them and no copy.


MIN_STORED_BYTES = 2**20
"""Bytes from which weights are laid down behind each other; smaller ones are stacked in no time."""
MAX_BLOCK_BYTES = 2**30
"""Bytes of one block of memory. What is never written in it takes none."""
MAX_SPARE_BYTES = 2**28
"""Bytes of the largest block that is kept for the next capture once nobody reads it any more."""

_spare_blocks: deque[np.ndarray] = deque(maxlen=1)
"""Memory of a trace that is gone. Fresh memory costs more than what is written into it: its pages come one by one."""


def release_spare_memory() -> None:
    """Give the memory that no trace uses any more back to the system."""
    _spare_blocks.clear()


class _ReusableMemory:
    """Memory as an array's base: it is spare again when the last array that looks into it is gone."""

    def __init__(self, memory: np.ndarray) -> None:
        self.__array_interface__ = memory.__array_interface__
        if memory.nbytes <= MAX_SPARE_BYTES:
            weakref.finalize(self, _spare_blocks.append, memory).atexit = False
        else:
            self.memory = memory


def _allocate_uninitialized_array(shape: tuple[int, ...]) -> np.ndarray:
    """An array of float32 whose values are whatever stood in its memory."""
    try:
        spare = _spare_blocks.pop()  # at once, so that no other thread has it too
    except IndexError:
        spare = np.empty(0, np.float32)
    fits = spare.shape == shape
    return np.asarray(_ReusableMemory(spare if fits else np.empty(shape, np.float32)))


class LayerStore:
    """The weights of one capture, copied once, so that the model's own can go as soon as it has used them."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, ...], tuple[np.ndarray, Tensor, int]] = {}
        """Shape -> a block of memory with a row for each layer, the same as a tensor, and the rows that are taken."""

    def store_copy(self, weights: Tensor, layers: int) -> Tensor:
        """Return a copy of weights of which `layers` of this shape are expected; large ones lie behind each other."""
        size = weights.numel() * weights.element_size()
        if weights.device.type != "cpu" or weights.dtype is not torch.float32 or size < MIN_STORED_BYTES:
            return weights.clone()
        shape = tuple(weights.shape)
        block, rows, taken = self._open.get(shape, (None, None, 0))
        if block is None or rows is None or taken == len(block):
            block = _allocate_uninitialized_array((max(1, min(layers, MAX_BLOCK_BYTES // size)), *shape))
            rows, taken = torch.from_numpy(block), 0
        block[taken] = weights.detach().numpy()  # on one thread: many would wait for each other on a busy machine
        self._open[shape] = block, rows, taken + 1
        return rows[taken]


def stack_as_view(layers: Sequence[Tensor]) -> np.ndarray | None:
    """Return layers (H, Q, K) as (L, H, Q, K) without a copy where they lie evenly spaced in one block, else None."""
    first = layers[0]
    if first.device.type != "cpu" or first.dtype is not torch.float32:
        return None
    block = first.untyped_storage().data_ptr()
    if any(one.untyped_storage().data_ptr() != block or one.stride() != first.stride() for one in layers):
        return None
    places = [one.storage_offset() for one in layers]
    step = places[1] - places[0] if len(places) > 1 else first.numel()
    if step <= 0 or places != list(range(places[0], places[0] + step * len(places), step)):
        return None
    return first.as_strided((len(layers), *first.shape), (step, *first.stride())).numpy()
