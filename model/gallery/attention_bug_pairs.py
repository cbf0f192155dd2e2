"""Broken and fixed pairs of one attention call, and the random batches of scores that they are run on."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..masks.softmax import PaddingSide, lengths_to_keep_mask


@dataclass(frozen=True, eq=False)
class Batch:
    """Scores and padding of one attention call, as a model would have them just before its mask."""

    scores: Tensor
    """(B, H, Q, K), scaled, before any mask."""
    key_keep: Tensor
    """(B, K) bool, True = a real token."""
    query_keep: Tensor
    """(B, Q) bool, True = a real token."""

    @property
    def queries(self) -> int:
        return self.scores.shape[-2]

    @property
    def keys(self) -> int:
        return self.scores.shape[-1]

    @property
    def keep(self) -> Tensor:
        """(B, 1, 1, K) bool: the padding mask."""
        return self.key_keep[:, None, None, :]

    @property
    def causal(self) -> Tensor:
        """(Q, K) bool: the causal mask, aligned at the newest token."""
        return torch.ones(self.queries, self.keys, dtype=torch.bool).tril(self.keys - self.queries)

    @property
    def allowed(self) -> Tensor:
        """(B, 1, Q, K) bool: the causal mask and the padding mask."""
        return self.causal & self.keep


def make_real_token_mask(lengths: Tensor, size: int, side: PaddingSide = "right") -> Tensor:
    """Return (B, size) bool, True = a real token, from (B,) lengths."""
    return torch.from_numpy(lengths_to_keep_mask(lengths.numpy(), size, side))


def random_batch(
    generator: torch.Generator,
    *,
    cross: bool = False,
    samples: tuple[int, int] = (1, 4),
    heads: tuple[int, int] = (1, 4),
    sizes: tuple[int, int] = (3, 12),
    padded: bool = True,
    side: PaddingSide = "right",
    sharpness: float = 1.0,
    empty: bool = False,
) -> Batch:
    """Return sentences of random lengths; with ``padded`` at least one sample has padding among its keys.

    ``samples``, ``heads`` and ``sizes`` (of queries, and for ``cross`` of keys) are the smallest and largest number;
    with ``empty`` the last sample has no key at all.
    """

    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator))

    b, h, queries = number(*samples), number(*heads), number(*sizes)
    keys = number(*sizes) if cross else queries
    lengths = _random_lengths(generator, b, keys, padded)
    if empty:
        lengths[-1] = 0
    key_keep = make_real_token_mask(lengths, keys, side)
    query_keep = (
        make_real_token_mask(_random_lengths(generator, b, queries, padded), queries, side) if cross else key_keep
    )
    q = torch.randn(b, h, queries, 16, generator=generator)
    k = torch.randn(b, h, keys, 16, generator=generator)
    return Batch(sharpness * q @ k.transpose(-2, -1) / 4, key_keep, query_keep)


def _random_lengths(generator: torch.Generator, samples: int, size: int, padded: bool) -> Tensor:
    if not padded:
        return torch.full((samples,), size)
    lengths = torch.randint(1, size + 1, (samples,), generator=generator)
    lengths[0] = torch.randint(1, size, (), generator=generator)
    return lengths


# Correct attention weights from scores and a mask.


def masked_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Fill with -inf, take the softmax over the keys, give zeros where no key is allowed."""
    weights = scores.masked_fill(~allowed, -torch.inf).softmax(-1)
    return weights.masked_fill(~allowed.any(-1, keepdim=True), 0.0)


def compute_sdpa_weights(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the weights of F.scaled_dot_product_attention: with values = identity its output is its weights."""
    batch, heads, queries, keys = scores.shape
    identity = torch.eye(keys).expand(batch, heads, keys, keys)
    pick = torch.eye(queries).expand(batch, heads, queries, queries)  # query i times "keys" gives scores[i]
    return F.scaled_dot_product_attention(pick, scores.transpose(-2, -1), identity, attn_mask=mask, scale=1.0)


# Masks that allow the wrong cells.
#
# Each function takes a :class:`Batch` and returns the weights (B, H, Q, K), or the arrays by name where the
# fault is not in the weights alone. Functions come in pairs, ``x_broken`` and ``x_fixed``, of a few lines as they
# stand in real models.


# inverted: a keep-mask handed to an API in which True blocks
def inverted_mask_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(x.allowed, -1e9).softmax(-1)


def inverted_mask_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.allowed)


def inverted_padding_broken(x: Batch) -> Tensor:
    return compute_sdpa_weights(x.scores, ~x.keep)  # this API keeps where True


def inverted_padding_fixed(x: Batch) -> Tensor:
    return compute_sdpa_weights(x.scores, x.keep)


# future-visible: trg_mask = trg != 0 alone
def future_visible_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep)


def future_visible_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep & x.causal)


# diagonal-blocked: triu with offset 0
def diagonal_blocked_broken(x: Batch) -> Tensor:
    blocked = torch.ones(x.queries, x.keys).triu(0).bool()
    return x.scores.masked_fill(blocked | ~x.keep, -torch.inf).softmax(-1)


def diagonal_blocked_fixed(x: Batch) -> Tensor:
    blocked = torch.ones(x.queries, x.keys).triu(1).bool()
    return x.scores.masked_fill(blocked | ~x.keep, -torch.inf).softmax(-1)


# causal-on-cross: the decoder's flag used for cross-attention as well
def causal_on_cross_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, torch.ones(x.queries, x.keys, dtype=torch.bool).tril() & x.keep)


def causal_on_cross_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep)


# padding-visible: memory_key_padding_mask forgotten
def padding_visible_broken(x: Batch) -> Tensor:
    return x.scores.softmax(-1)


def padding_visible_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep)


# padding-swapped: the target's lengths for the source's columns
def query_key_padding_swapped_broken(x: Batch) -> Tensor:
    lengths = x.query_keep.sum(-1)
    return masked_softmax(x.scores, (torch.arange(x.keys) < lengths[:, None])[:, None, None, :])


def query_key_padding_swapped_fixed(x: Batch) -> Tensor:
    lengths = x.key_keep.sum(-1)
    return masked_softmax(x.scores, (torch.arange(x.keys) < lengths[:, None])[:, None, None, :])


# wrong-axis: (N, S) read as (L, S), silent when N = L
def padding_mask_axis_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.key_keep)


def padding_mask_axis_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.key_keep[:, None, None, :])


def padding_on_query_rows_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.key_keep[:, None, :, None].expand(x.scores.shape))


# head-order: repeat for repeat_interleave
def head_order_broken(x: Batch) -> Tensor:
    heads = x.scores.shape[1]
    mask = x.keep[:, 0].repeat(heads, 1, 1)
    return masked_softmax(x.scores.flatten(0, 1), mask.expand(-1, x.queries, -1)).view_as(x.scores)


def head_order_fixed(x: Batch) -> Tensor:
    heads = x.scores.shape[1]
    mask = x.keep[:, 0].repeat_interleave(heads, 0)
    return masked_softmax(x.scores.flatten(0, 1), mask.expand(-1, x.queries, -1)).view_as(x.scores)


# top-left-causal: fewer queries than keys, as with a cache
def top_left_causal_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, torch.ones(x.queries, x.keys, dtype=torch.bool).tril())


def top_left_causal_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, torch.ones(x.queries, x.keys, dtype=torch.bool).tril(x.keys - x.queries))


WINDOW = 3


# window-off-by-one: an inclusive end taken for an exclusive one
def window_off_by_one_broken(x: Batch) -> Tensor:
    age = torch.arange(x.queries)[:, None] - torch.arange(x.keys)
    return masked_softmax(x.scores, (age >= 0) & (age <= WINDOW))


def window_off_by_one_fixed(x: Batch) -> Tensor:
    age = torch.arange(x.queries)[:, None] - torch.arange(x.keys)
    return masked_softmax(x.scores, (age >= 0) & (age < WINDOW))


# document-leak: two documents in one row, positions start again and the mask does not
def document_leak_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal)


def document_leak_fixed(x: Batch) -> Tensor:
    document = torch.arange(x.keys) >= x.keys // 2
    return masked_softmax(x.scores, x.causal & (document[:, None] == document))


# hole-inside: a real token has the padding id
def pad_id_inside_text_broken(x: Batch) -> Tensor:
    ids = torch.where(x.key_keep, 5, 0)
    ids[:, 1] = 0  # a real token whose id is that of padding
    return masked_softmax(x.scores, (ids != 0)[:, None, None, :])


def pad_id_inside_text_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep)


# leak: one cell open by accident
def single_cell_leak_broken(x: Batch) -> Tensor:
    allowed = x.allowed.clone()
    allowed[0, ..., 0, 2] = True
    return masked_softmax(x.scores, allowed)


def single_cell_leak_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.allowed)


# over-blocked: a causal mask on an encoder
def needless_causal_mask_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep & x.causal)


def needless_causal_mask_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep)


# window-missing: a sliding window that one path of the code forgets
def window_missing_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal)


# mask-shifted: the lengths count a token that the ids do not have
def padding_length_plus_one_broken(x: Batch) -> Tensor:
    lengths = x.key_keep.sum(-1) + 1
    return masked_softmax(x.scores, (torch.arange(x.keys) < lengths[:, None])[:, None, None, :])


# sample-order: the batch is sorted by length, the mask is not
def sample_order_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep.roll(1, 0))


# stale-cache: a static cache, the last slots of which are not filled yet
def filled_slots_mask(x: Batch) -> Tensor:
    """Return (Q, K) bool, causal up to the newest of the filled slots, three in four."""
    filled = x.keys - x.keys // 4
    position = torch.arange(x.queries)[:, None] + filled - x.queries
    return torch.arange(x.keys) <= position


def stale_cache_broken(x: Batch) -> Tensor:
    unfilled = torch.arange(x.keys) >= x.keys - x.keys // 4
    return masked_softmax(x.scores, filled_slots_mask(x) | unfilled)


def stale_cache_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, filled_slots_mask(x))


# Masks applied in the wrong way, and faults of the softmax and after it.


# soft-mask: zeros and ones added to the scores
def float_mask_added_broken(x: Batch) -> Tensor:
    return compute_sdpa_weights(x.scores, x.allowed.float().expand(x.scores.shape))


def float_mask_added_fixed(x: Batch) -> Tensor:
    return compute_sdpa_weights(x.scores, x.allowed.expand(x.scores.shape))


# weak-fill: a finite fill that extreme scores reach
def weak_fill_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(~x.allowed, -50.0).softmax(-1)


def weak_fill_fixed(x: Batch) -> Tensor:
    return x.scores.masked_fill(~x.allowed, -torch.inf).softmax(-1)


# fill-overflow: -1e9 cast to float16
def fill_overflow_broken(x: Batch) -> dict[str, Tensor]:
    bias = torch.zeros(x.allowed.shape).masked_fill(~x.allowed, -1e9)
    masked = x.scores.half() + bias.half()
    return {"weights": masked.softmax(-1), "scores": x.scores.half(), "masked_scores": masked, "mask": bias}


def fill_overflow_fixed(x: Batch) -> dict[str, Tensor]:
    bias = torch.zeros(x.allowed.shape).masked_fill(~x.allowed, torch.finfo(torch.float16).min)
    masked = x.scores.half() + bias.half()
    weights = masked.softmax(-1).masked_fill(~x.allowed.any(-1, keepdim=True), 0)
    return {"weights": weights, "scores": x.scores.half(), "masked_scores": masked, "mask": bias}


# double-fill: the padding is filled, then the causal mask is added
def double_fill_broken(x: Batch) -> dict[str, Tensor]:
    future = torch.full((x.queries, x.keys), -1e9).triu(1)
    masked = x.scores.masked_fill(~x.keep, -1e9) + future
    return {"weights": masked.softmax(-1), "masked_scores": masked}


def double_fill_fixed(x: Batch) -> dict[str, Tensor]:
    return {
        "weights": masked_softmax(x.scores, x.allowed),
        "masked_scores": x.scores.masked_fill(~x.allowed, -torch.inf),
    }


# empty-row: left padding and causal together
def empty_row_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(~x.allowed, -torch.inf).softmax(-1)  # NaN


def empty_row_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.allowed)


# empty-row: a source sentence without any token, and a finite fill
def empty_row_uniform_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(~x.keep, -1e9).softmax(-1)  # uniform over the padding


def empty_row_uniform_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep)


# softmax-axis: softmax(dim=2) on four dimensions
def softmax_axis_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(~x.allowed, -1e9).softmax(2)


def softmax_axis_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.allowed)


# transposed: the picture has its axes exchanged
def transposed_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.allowed).transpose(-2, -1)


def transposed_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.allowed)


# dropout-on: weights kept after dropout, in training mode
def dropout_on_broken(x: Batch) -> Tensor:
    return F.dropout(masked_softmax(x.scores, x.allowed), 0.2, training=True)


def dropout_on_fixed(x: Batch) -> Tensor:
    return F.dropout(masked_softmax(x.scores, x.allowed), 0.2, training=False)


# applied-late: multiplied into the weights
def mask_after_softmax_broken(x: Batch) -> Tensor:
    return x.scores.softmax(-1) * x.causal


def mask_after_softmax_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal)


# extra-mass: a learned logit in the denominator that belongs to no key
def attend_with_zero_sink(x: Batch) -> Tensor:
    scores = x.scores.masked_fill(~x.causal, -torch.inf)
    return torch.cat([scores, torch.zeros_like(scores[..., :1])], -1).softmax(-1)[..., :-1]


# mask-ignored: accepted as an argument, never used
def mask_ignored_broken(x: Batch) -> dict[str, Tensor]:
    return {"weights": x.scores.softmax(-1), "scores": x.scores, "mask": x.allowed}


def mask_ignored_fixed(x: Batch) -> dict[str, Tensor]:
    return {"weights": masked_softmax(x.scores, x.allowed), "scores": x.scores, "mask": x.allowed}
