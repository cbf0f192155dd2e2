"""The arrays of one attention map in one form, their names in libraries, and tensors of torch as arrays."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..language import say

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


def expand_to_columns(keep: np.ndarray) -> np.ndarray:
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
CAPTURED_KEEP = "captured_keep"
"""Padding that a capture shows, True = a real token; used where no other padding is given."""
ARGUMENT_ROLES: dict[str, ArrayRole | None] = {
    **dict.fromkeys(PADDING_BLOCKS_NAMES, "key_blocks"),
    **dict.fromkeys(WEIGHT_NAMES, "weights"),
    **dict.fromkeys(SCORE_NAMES, "scores"),
    **dict.fromkeys((*PADDING_KEEPS_NAMES, *MASK_NAMES)),
}
"""By name; None where the values tell which of several roles it is."""


def is_known_argument(name: str) -> bool:
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
    """Return a BlockMask opened to its cells, (B, H, Q, K) bool, True = may attend, by its mask_mod.

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
