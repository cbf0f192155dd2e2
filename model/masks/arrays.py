"""The arrays of one attention map in one form, their names in libraries, and tensors of torch as arrays."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from ..language import say, to_say
from .rule import build_meaning_mask
from .softmax import is_blocked
from .structure import recognise_structure

ARRAY_NAMES = ("weights", "scores", "masked_scores", "mask", "key_keep", "query_keep", "meant", "position_ids")
"""Names under which arrays are read."""
MaskWriting = Literal["keeps", "blocks", "added"]
"""How a mask is written where it comes from: True = may attend, True = blocked, or added to the scores."""
MAX_CELLS = 2**26
"""Largest number of weights that one diagnosis accepts."""


class DiagnosisError(ValueError):
    """Arrays that cannot be judged; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Arrays:
    """The arrays of one map in one form. Everything but ``weights`` may be missing."""

    weights: np.ndarray
    """(B, L, H, Q, K) floating; the softmax of the scores or the mask where none were given."""
    given: frozenset[str]
    """Names of the arrays that were given."""
    map: str = ""
    scores: np.ndarray | None = None
    """(B, L, H, Q, K), scaled, before the mask."""
    masked_scores: np.ndarray | None = None
    """(B, L, H, Q, K), after the mask."""
    bias: np.ndarray | None = None
    """(B, L, H, Q, K), a float mask as it was given; axes may be 1."""
    mask: np.ndarray | None = None
    """(B, L, H, Q, K) bool, True = may attend; axes may be 1."""
    meant: np.ndarray | None = None
    """(B, L, H, Q, K) bool, True = may attend; axes may be 1."""
    key_keep: np.ndarray | None = None
    """(B, K) bool, True = a real token."""
    query_keep: np.ndarray | None = None
    """(B, Q) bool, True = a real token."""
    position_ids: np.ndarray | None = None
    """(B, K) whole numbers: the positions that the model gave its keys."""
    writing: MaskWriting = "keeps"
    """How the mask was written, for fixes in the same convention; ``mask`` itself is True = may attend."""
    transposed: bool = False
    """Whether the weights came as (K, Q), by the shapes of the other arrays, and were transposed."""
    extra_keys: int = 0
    """How many of the last keys are known to be no tokens, such as a sink."""
    has_even_rows: bool = False
    """Whether the weights follow from a mask alone, which leaves each row one value besides zero."""
    over_batch: bool = False
    """Whether the weights are (T, H, B, B), by the shapes of the other arrays, which are left out then."""

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """B, L, H, Q, K."""
        b, layers, heads, queries, keys = self.weights.shape
        return b, layers, heads, queries, keys

    @property
    def self_or_cross(self) -> Literal["self", "cross", ""]:
        """The kind of attention where the name of the map, its shape or the two paddings tell it, else empty."""
        _, _, _, queries, keys = self.sizes
        if self.map:
            return "cross" if self.map == "cross" else "self"
        if queries > keys:
            return "cross"
        if self.query_keep is None or self.key_keep is None:
            return ""
        if not np.array_equal(self.query_keep, self.key_keep[:, -queries:]):
            return "cross"
        return "" if self.key_keep.all() or queries != keys else "self"

    @property
    def real_queries(self) -> np.ndarray:
        """(B, Q) bool: queries that are no padding as far as is given; in self-attention by the keys."""
        b, _, _, queries, keys = self.sizes
        if self.query_keep is not None:
            return self.query_keep
        if self.key_keep is not None and queries == keys and self.self_or_cross != "cross":
            return self.key_keep
        return np.ones((b, queries), bool)


def check_numeric_array(name: str, array: np.ndarray) -> np.ndarray:
    """Return the array of numbers or booleans. Raises DiagnosisError for any other, an empty or too large one."""
    if array.dtype.kind not in "biuf":
        raise DiagnosisError(
            say("{name} holds {kind} values; it must hold numbers or booleans.", name=name, kind=array.dtype)
        )
    if array.size == 0:
        raise DiagnosisError(say("{name} is empty: its shape is {shape}.", name=name, shape=array.shape))
    if array.ndim > 5 or array.size > MAX_CELLS:
        raise DiagnosisError(
            say(
                "{name} has the shape {shape}; at most five axes and {most:,} cells are read.",
                name=name,
                shape=array.shape,
                most=MAX_CELLS,
            )
        )
    return array


def broadcast_key_mask(keep: np.ndarray) -> np.ndarray:
    """Return (B, K) as (B, 1, 1, 1, K), which broadcasts to the weights."""
    return keep[:, None, None, None, :]


# Names under which libraries pass masks and weights: one table for paste, upload, command line and Python.


ArrayRole = Literal[
    "weights",
    "mask keeps",
    "mask blocks",
    "mask added",
    "scores",
    "masked_scores",
    "key_keep",
    "key_blocks",
    "query_keep",
    "meant",
    "position_ids",
    "cu_seqlens",
]
"""What an array is."""

PADDING_BLOCKS_NAMES = (
    *("key_padding_mask", "src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask"),
    *("encoder_padding_mask", "decoder_padding_mask"),
)
"""True or 1 is padding: torch, fairseq."""
PADDING_KEEPS_NAMES = ("encoder_attention_mask", "decoder_attention_mask")
"""Two axes, 1 is a real token: Hugging Face. With more axes they are masks."""
WEIGHT_NAMES = (
    *("attn", "attention", "attentions", "attn_weights", "attention_weights", "attn_probs", "attention_probs"),
    *("encoder_attentions", "decoder_attentions", "cross_attentions"),
)
SCORE_NAMES = ("attn_scores", "attention_scores")
MASK_NAMES = (
    "attn_mask",
    "attention_mask",
    "src_mask",
    "tgt_mask",
    "memory_mask",
    "attn_bias",
    "causal_mask",
    "padding_mask",
)
"""Some interfaces keep where these are True, others block: their values must tell."""
CUMULATIVE_LENGTH_NAMES = (
    *("cu_seqlens", "cu_seqlens_q", "cu_seqlens_k", "cu_seqlens_kv", "cu_seq_lens_q", "cu_seq_lens_k"),
    *("cu_seq_q", "cu_seq_k", "cumulative_seqlens"),
)
"""Where each packed document ends, 0 first: FlashAttention, transformers, torch's varlen_attn."""
CAPTURED_KEEP = "captured_keep"
"""Padding that a capture shows, True = a real token; used where no other padding is given."""
ARGUMENT_ROLES: dict[str, ArrayRole | None] = {
    **dict.fromkeys(PADDING_BLOCKS_NAMES, "key_blocks"),
    **dict.fromkeys(WEIGHT_NAMES, "weights"),
    **dict.fromkeys(SCORE_NAMES, "scores"),
    **dict.fromkeys(CUMULATIVE_LENGTH_NAMES, "cu_seqlens"),
    **dict.fromkeys((*PADDING_KEEPS_NAMES, *MASK_NAMES)),
}
"""By name; None where the values tell which of several roles it is."""


def is_known_array_name(name: str) -> bool:
    """Whether an array of this name is read."""
    return name in ARRAY_NAMES or name == CAPTURED_KEEP or name.lower() in ARGUMENT_ROLES


# Tensors of torch as arrays of numpy. Torch is not imported: a tensor is known by its methods.


def is_tensor(value: Any) -> bool:
    """Whether this is a tensor of torch."""
    return hasattr(value, "detach") and hasattr(value, "numel")


def tensor_to_array(name: str, tensor: Any) -> np.ndarray:
    """Return a dense tensor, on whatever device, as an array; bfloat16, which numpy lacks, is widened.

    A view may promise more cells than are held, so they are counted before anything is copied.

    Raises:
        DiagnosisError: for a tensor that is sparse, quantized, complex or too large.
    """
    if str(tensor.layout) != "torch.strided" or tensor.is_quantized or tensor.is_complex():
        raise DiagnosisError(
            say("{name} is not a plain array of numbers; give a dense tensor of real numbers.", name=name)
        )
    _check_cell_count(name, tensor.numel())
    plain = tensor.detach().cpu()
    return (plain.float() if str(plain.dtype).startswith(("torch.bfloat16", "torch.float8")) else plain).numpy()


def is_block_mask(value: Any) -> bool:
    """Whether this is a BlockMask of flex_attention."""
    return hasattr(value, "mask_mod") and hasattr(value, "kv_num_blocks")


def evaluate_block_mask(name: str, block_mask: Any) -> np.ndarray:
    """Return what the mask_mod of a BlockMask says at every cell, (B, H, Q, K) bool, True = may attend.

    Raises:
        DiagnosisError: for one whose function is lost, as that of a slice is, or that is too large.
    """
    _check_cell_count(name, math.prod(block_mask.shape))
    flex_attention = sys.modules[type(block_mask).__module__]
    try:
        device = block_mask.kv_num_blocks.device
        cells = flex_attention.create_mask(block_mask.mask_mod, *block_mask.shape, device=device)
    except (RuntimeError, TypeError, IndexError) as error:
        raise DiagnosisError(
            say("{name} is a BlockMask whose mask_mod cannot be evaluated: {error}.", name=name, error=error)
        ) from error
    return tensor_to_array(name, cells)


def compute_kernel_mask_cells(name: str, block_mask: Any, cells: np.ndarray) -> np.ndarray:
    """Return the mask (B, H, Q, K) that a kernel applies: ``cells`` of its mask_mod in the blocks listed as partial.

    Full blocks are computed without a look at the mask_mod, and blocks that are not listed are skipped.
    """
    rows, columns = block_mask.BLOCK_SIZE
    listed = [
        _expand_listed_blocks(name, *one, (rows, columns), cells.shape)
        for one in (
            (block_mask.kv_num_blocks, block_mask.kv_indices),
            (block_mask.full_kv_num_blocks, block_mask.full_kv_indices),
        )
    ]
    return (cells & listed[0]) | listed[1]


def _expand_listed_blocks(
    name: str, counts: Any, indices: Any, size: tuple[int, int], shape: tuple[int, ...]
) -> np.ndarray:
    """Return (B, H, Q, K) bool: the cells of the blocks that are listed by (B, H, rows) and (B, H, rows, columns)."""
    if counts is None:
        return np.zeros((), bool)
    counted, number = tensor_to_array(name, counts), tensor_to_array(name, indices)
    columns = number.shape[-1]
    marked = np.zeros((*number.shape[:-1], columns + 1), bool)
    used = np.where(np.arange(columns) < counted[..., None], number, columns)
    np.put_along_axis(marked, used.astype(np.int64), True, -1)
    blocks = marked[..., :columns]
    query, key = (np.minimum(np.arange(shape[at]) // size[at - 2], blocks.shape[at] - 1) for at in (2, 3))
    return blocks[..., query[:, None], key]


def stack_layer_tensors(name: str, layers: Sequence[Any]) -> np.ndarray:
    """Return (B, L, H, Q, K) from one tensor (B, H, Q, K) a layer, as Hugging Face returns attentions.

    Raises:
        DiagnosisError: for anything else in the list, and for tensors of different shapes.
    """
    if others := [layer for layer in layers if not is_tensor(layer)]:
        kind = type(others[0]).__name__
        raise DiagnosisError(
            say(
                "{name} is a list that holds {kind}; a list is read as one tensor for each layer.", name=name, kind=kind
            )
        )
    shapes = list(dict.fromkeys(tuple(layer.shape) for layer in layers))
    if len(shapes) > 1:
        raise DiagnosisError(
            say(
                "{name} has layers of different shapes, {one} and {other}; give them apart.",
                name=name,
                one=shapes[0],
                other=shapes[1],
            )
        )
    if len(shapes[0]) != 4:
        raise DiagnosisError(
            say(
                "{name} is a list of tensors of the shape {shape}; a list is read as one tensor for each layer, with "
                "the axes (batch, heads, queries, keys). Stack other lists into one tensor.",
                name=name,
                shape=shapes[0],
            )
        )
    _check_cell_count(name, sum(layer.numel() for layer in layers))
    return np.stack([tensor_to_array(name, layer) for layer in layers], axis=1)


def join_generation_steps(name: str, steps: Sequence[Sequence[Any]]) -> np.ndarray:
    """Return (B, L, H, Q, K) from the tuple of ``generate()``: for each step one tensor (B, H, q, k) a layer.

    The first step holds the prompt, each later one a new query; keys that a query came before are zero.

    Raises:
        DiagnosisError: for steps that do not follow each other.
    """
    made = [stack_layer_tensors(name, step) for step in steps]
    keys = max(step.shape[-1] for step in made)
    rows = sum(step.shape[-2] for step in made)
    if len({step.shape[:3] for step in made}) > 1 or rows * keys * made[0][..., 0, 0].size > MAX_CELLS:
        raise DiagnosisError(
            say("{name} has steps of different shapes, or too many of them; give one step.", name=name)
        )
    whole = [np.pad(step, [(0, 0)] * 4 + [(0, keys - step.shape[-1])]) for step in made]
    return np.concatenate(whole, axis=-2)


def _check_cell_count(name: str, cells: int) -> None:
    if cells > MAX_CELLS:
        raise DiagnosisError(
            say(
                "{name} has {cells:,} cells; at most {most:,} are read. Give fewer layers or samples.",
                name=name,
                cells=cells,
                most=MAX_CELLS,
            )
        )


# Roles: which array is which, by its name or its shape.

# The role of an array without a known name is guessed. A guess comes with how sure it is, and a person can overrule it.
# Conventions are compared by what the mask would mean in each: one that is causal in the first and "everything but the
# past" in the second was most likely written in the first.


ARRAY_ROLES: tuple[ArrayRole, ...] = get_args(ArrayRole)
ROLE_NAMES: dict[ArrayRole, str] = {
    "weights": to_say("attention weights"),
    "mask keeps": to_say("mask, True = may attend"),
    "mask blocks": to_say("mask, True = blocked"),
    "mask added": to_say("mask, added to the scores"),
    "scores": to_say("scores before the mask"),
    "masked_scores": to_say("scores after the mask"),
    "key_keep": to_say("key padding, True = a real token"),
    "key_blocks": to_say("key padding, True = padding"),
    "query_keep": to_say("query padding, True = a real token"),
    "meant": to_say("what was meant, True = may attend"),
    "position_ids": to_say("positions of the tokens"),
    "cu_seqlens": to_say("ends of packed documents"),
}
_MASK_VALUES_TEXT = to_say("A mask holds nothing but True and False, or 1 and 0.")
_PADDING_VALUES_TEXT = to_say("A key padding holds nothing but True and False, or 1 and 0.")
_BOOLEAN_ROLE_TEXTS: dict[ArrayRole, str] = {
    "mask keeps": _MASK_VALUES_TEXT,
    "mask blocks": _MASK_VALUES_TEXT,
    "key_keep": _PADDING_VALUES_TEXT,
    "key_blocks": _PADDING_VALUES_TEXT,
    "query_keep": to_say("A query padding holds nothing but True and False, or 1 and 0."),
    "meant": to_say("What was meant holds nothing but True and False, or 1 and 0."),
}
"""What is said of an array of such a role that holds other values."""
OPPOSITE_ROLES: dict[ArrayRole, ArrayRole] = {
    "mask keeps": "mask blocks",
    "mask blocks": "mask keeps",
    "key_keep": "key_blocks",
    "key_blocks": "key_keep",
}
"""The role of the same values read the other way around."""


@dataclass(frozen=True)
class RoleGuess:
    """One role, how sure it is (0 to 1), and why."""

    role: ArrayRole
    sure: float
    why: str
    """In the reader's language, to stand behind "since"."""
    by_name: bool = False
    """Whether its name says it."""


_PADDING_NAMES = ("attention_mask", "encoder_attention_mask", "decoder_attention_mask")
"""With two axes these are padding of Hugging Face, 1 being a real token."""
_ROLES_BY_NAME: dict[str, ArrayRole] = {
    "captured_keep": "key_keep",
    "position_ids": "position_ids",
    **{name: name for name in ("weights", "scores", "masked_scores", "key_keep", "query_keep", "meant")},
}


def guess_role(array: np.ndarray, name: str = "") -> RoleGuess:
    """Return what ``array`` most likely is, judged by its name, its values and its shape."""
    known = _ROLES_BY_NAME.get(name) or ARGUMENT_ROLES.get(name.lower())
    if known:
        return RoleGuess(known, 0.95, say("its name is {name}", name=name), by_name=True)
    if name.lower() in _PADDING_NAMES and array.ndim == 2 and array.shape[0] != array.shape[1]:
        return RoleGuess("key_keep", 0.95, say("its name is {name}: 1 is a real token", name=name), by_name=True)
    if name == "mask" and array.dtype.kind != "f":
        return RoleGuess("mask keeps", 0.9, say("its name is mask, which here means True = may attend"), by_name=True)
    if array.dtype.kind in "biu" and np.isin(array, (0, 1)).all():
        return _guess_boolean_role(array.astype(bool))
    return _guess_number_role(array.astype(np.float64))


def convert_to_role(array: np.ndarray, role: ArrayRole) -> tuple[str, np.ndarray]:
    """Return the name of the array in a diagnosis, and its values in the convention of a diagnosis.

    Raises:
        DiagnosisError: when the values cannot have this role.
    """
    if role == "mask added":
        return "mask", array.astype(np.float32) if array.dtype.kind != "f" else array
    if role in ("position_ids", "cu_seqlens"):
        return role, array
    if role in ("weights", "scores", "masked_scores"):
        return role, array.astype(np.float32) if array.dtype.kind in "iu" else array
    if not np.isin(array, (0, 1)).all():
        raise DiagnosisError(say(_BOOLEAN_ROLE_TEXTS[role]))
    name = {"key_blocks": "key_keep", "mask keeps": "mask", "mask blocks": "mask"}.get(role, role)
    return name, ~array.astype(bool) if role.endswith("blocks") else array.astype(bool)


def _guess_number_role(values: np.ndarray) -> RoleGuess:
    finite = values[np.isfinite(values)]
    blocked = is_blocked(values)
    if blocked.any():
        rest = values[~blocked]
        if not rest[np.isfinite(rest)].any():
            return RoleGuess("mask added", 0.99, say("it holds nothing but zeros and values that block"))
        return RoleGuess("masked_scores", 0.9, say("it holds scores beside values that block"))
    if np.isposinf(values).any() or (finite < 0).any():
        return RoleGuess("scores", 0.8, say("it holds values below zero, and none that blocks"))
    if np.isin(values, (0, 1)).all() and not (values.ndim > 1 and (values.sum(-1) == 1).all()):
        return _guess_zero_one_float_role(values)
    if values.ndim > 1 and _has_unit_sums(values):
        return RoleGuess("weights", 0.97, say("its rows or columns sum to 1"))
    return RoleGuess("weights", 0.7, say("its values are not negative"))


def _guess_zero_one_float_role(values: np.ndarray) -> RoleGuess:
    """Return the role of zeros and ones as floats: compared with 0 they are a mask; added they would block nothing."""
    found = _guess_boolean_role(values.astype(bool))
    why = say("{why}; added, zeros and ones would block nothing", why=found.why)
    return RoleGuess(found.role, min(found.sure, 0.55), why)


def _has_unit_sums(values: np.ndarray) -> bool:
    """Whether most sums that are no NaN are 1, along keys, queries or heads."""
    clean = np.nan_to_num(values)
    for axis in range(-1, -min(values.ndim, 3) - 1, -1):
        sums = clean.sum(axis)
        nonzero = sums > 0
        if nonzero.any() and np.mean(np.abs(sums[nonzero] - 1) < 0.02) > 0.6:
            return True
    return False


def _guess_boolean_role(values: np.ndarray) -> RoleGuess:
    """Return the role of booleans, or of whole numbers 0 and 1."""
    if values.ndim < 2 or _looks_like_padding(values):
        rows = np.atleast_2d(values)
        keeps = float(np.mean(rows[:, 0] | (rows.mean(-1) > 0.5)))
        role: ArrayRole = "key_keep" if keeps >= 0.5 else "key_blocks"
        sure = 0.5 + 0.3 * abs(2 * keeps - 1)
        why = say("each row is one run of real tokens and one of padding, and most tokens are real")
        return RoleGuess(role, sure, why)
    grids = values.reshape(-1, *values.shape[-2:])[:8]
    keep = float(np.mean([_rate_mask_plausibility(grid) for grid in grids]))
    block = float(np.mean([_rate_mask_plausibility(~grid) for grid in grids]))
    sure = max(keep, block) / max(keep + block, 1e-9)
    if keep >= block:
        return RoleGuess("mask keeps", sure, _mask_interpretation_text(grids[0]))
    return RoleGuess("mask blocks", sure, _mask_interpretation_text(~grids[0]))


def _mask_interpretation_text(allowed: np.ndarray) -> str:
    found = recognise_structure(allowed, np.broadcast_to(allowed.any(0), allowed.shape))
    if found is None or not found.is_plausible:
        return say("neither way does it read as a mask of a known kind, and this way more of it is allowed")
    return say("read this way it is {mask}", mask=found.words())


def _rate_mask_plausibility(allowed: np.ndarray) -> float:
    """Return how likely somebody would mean this (Q, K), 0 to 1."""
    if not allowed.any():
        return 0.02
    columns = np.broadcast_to(allowed.any(0), allowed.shape)
    found = recognise_structure(allowed, columns)
    if found is None or not found.is_plausible:
        return _CAUSAL_RATING if _hides_future(allowed) else 0.1 + 0.1 * float(allowed.any(-1).mean())
    return 1.0 if allowed.any(-1).all() else 0.7


_CAUSAL_RATING = 0.8
"""How likely somebody means a mask of no known family that hides the future, as of packed documents with gaps."""


def _hides_future(allowed: np.ndarray) -> bool:
    """Whether nothing above the diagonal of (T, T) is allowed, and most of the diagonal and cells below it are."""
    causal = np.tri(len(allowed), dtype=bool)
    if allowed.shape[0] != allowed.shape[1] or (allowed & ~causal).any():
        return False
    return 2 * np.diag(allowed).sum() > len(allowed) and bool(
        (allowed & causal & ~np.eye(len(allowed), dtype=bool)).any()
    )


def _looks_like_padding(values: np.ndarray) -> bool:
    """Whether each row of (B, K) is one run from an end, and they are not the staircase of a causal mask."""
    if values.ndim != 2 or len(values) == values.shape[1]:
        return False
    changes = (values[:, 1:] != values[:, :-1]).sum(-1)
    lengths = values.sum(-1)
    stairs = len(values) > 1 and abs(np.diff(lengths)).max() == 1 == abs(np.diff(lengths)).min()
    return bool((changes <= 1).all()) and not stairs


# From the names of libraries to those of a diagnosis.


MIN_SURENESS, MIN_AGREEMENT = 0.75, 0.8
"""A role guessed with less sureness is asked about, unless at least this part of its cells is as meant."""


def assign_roles(arrays: Mapping[str, np.ndarray], meant: str | None = None) -> tuple[dict[str, np.ndarray], bool]:
    """Return arrays of known names under the names of a diagnosis, and whether the mask came as True = blocked.

    ``meant``, a name, or the array ``meant`` tells the convention of a mask that reads both ways.

    Raises:
        DiagnosisError: for arrays that are none of numbers, or too large, for two of one role, and where the values do
            not tell which role it is.
    """
    found: dict[str, np.ndarray] = {}
    blocks = False
    for name, array in arrays.items():
        check_numeric_array(name, array)
        if name == CAPTURED_KEEP:
            continue
        if name in ARRAY_NAMES:
            role_name, values = name, array
        else:
            role = _find_role(name, array, meant or arrays.get("meant"))
            role_name, values = convert_to_role(array, role)
            blocks = blocks or role == "mask blocks"
        if role_name in found:
            raise DiagnosisError(
                say(
                    "{name} and another array are both read as {role}; leave one of them out.",
                    name=name,
                    role=role_name,
                )
            )
        found[role_name] = values
    if CAPTURED_KEEP in arrays:
        found.setdefault("key_keep", arrays[CAPTURED_KEEP])
    return found, blocks


def _find_role(name: str, array: np.ndarray, meant: str | np.ndarray | None) -> ArrayRole:
    fixed = ARGUMENT_ROLES[name.lower()]
    if fixed is not None:
        return fixed
    found = guess_role(array, name)
    if (
        found.sure < MIN_SURENESS
        and found.role in OPPOSITE_ROLES
        and (by_meaning := _find_role_by_meaning(array, found.role, meant))
    ):
        return by_meaning
    if found.sure < MIN_SURENESS and found.role in OPPOSITE_ROLES:
        raise DiagnosisError(
            say(
                "{name} could be a {one}, or a {other}: interfaces differ. Name it mask or key_keep, where True keeps.",
                name=name,
                one=say(ROLE_NAMES[found.role]),
                other=say(ROLE_NAMES[OPPOSITE_ROLES[found.role]]),
            )
        )
    return found.role


def _find_role_by_meaning(array: np.ndarray, role: ArrayRole, meant: str | np.ndarray | None) -> ArrayRole | None:
    """Return the role in which most cells of a mask are as meant, if there is one."""
    if meant is None or array.ndim < 2 or not role.startswith("mask"):
        return None
    cells = build_meaning_mask(meant, *array.shape[-2:]) if isinstance(meant, str) else np.asarray(meant, bool)
    try:
        agreement = float(np.mean(array.astype(bool) == cells))
    except ValueError:
        return None
    if max(agreement, 1 - agreement) < MIN_AGREEMENT:
        return None
    return "mask keeps" if agreement > 0.5 else "mask blocks"
