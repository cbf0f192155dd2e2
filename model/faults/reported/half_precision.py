"""Reports of rows that have no key left, and of fills in half precision."""

from __future__ import annotations

import torch
from torch import Tensor

from ...language.say import to_say
from ..attention import masked_softmax
from ..batch import Batch
from ..recipe import UNPADDED, causal_only
from .report import report, triangle
from .symptoms import HALF, NAN

CROSS = {"cross": True, "sizes": (5, 7)}


def bucketed(x: Batch) -> Tensor:
    """Return (B, 1, Q, K) bool: each token and the one before it, where they are real."""
    return (triangle(x) & ~triangle(x, -2)) & x.keep


def bucketed_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(~bucketed(x), -torch.inf).softmax(-1)  # padding has no key left


def bucketed_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, bucketed(x))


def second_head(x: Batch) -> Tensor:
    """Return (H, Q, K) bool: the first head may attend to nothing."""
    open_heads = torch.arange(x.scores.shape[1]) > 0
    return open_heads[:, None, None].expand(-1, x.queries, x.keys)


def closed_head_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(~second_head(x), -torch.inf).softmax(-1)


def closed_head_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, second_head(x))


def apex_broken(x: Batch) -> Tensor:
    return x.scores.half().masked_fill(x.allowed == 0, -1e10).softmax(-1)


def lowest_fixed(x: Batch) -> Tensor:
    scores = x.scores.half()
    return scores.masked_fill(~x.allowed, torch.finfo(scores.dtype).min).softmax(-1)


def fairseq_broken(x: Batch) -> Tensor:
    return x.scores.half().masked_fill(~x.causal, -1e8).softmax(-1)


def fairseq_fixed(x: Batch) -> Tensor:
    return x.scores.half().masked_fill(~x.causal, -1e4).softmax(-1)


def lerobot_broken(x: Batch) -> Tensor:
    big_neg = -2.3819763e38
    return x.scores.half().masked_fill(~x.allowed, big_neg).softmax(-1)


def amp_broken(x: Batch) -> dict[str, Tensor]:
    fill = torch.zeros(x.allowed.shape).masked_fill(~x.allowed, -1e15)
    masked = x.scores.half() + fill.half()  # -inf
    return {"weights": masked.softmax(-1), "scores": x.scores.half(), "masked_scores": masked, "mask": fill}


def amp_fixed(x: Batch) -> dict[str, Tensor]:
    fill = torch.zeros(x.allowed.shape).masked_fill(~x.allowed, torch.finfo(torch.float16).min)
    masked = x.scores.half() + fill.half()
    weights = masked.softmax(-1).masked_fill(~x.allowed.any(-1, keepdim=True), 0)
    return {"weights": weights, "scores": x.scores.half(), "masked_scores": masked, "mask": fill}


REPORTS = (
    report(
        ("pytorch/pytorch#41508", to_say("A band and padding leave nothing")),
        to_say(
            "Bucketed attention with a key_padding_mask: rows of padding have no key, their NaN reaches the shared "
            "weights through the gradients of the whole batch."
        ),
        ("empty-row", bucketed_broken, bucketed_fixed, bucketed),
        symptoms=NAN,
    ),
    report(
        ("pytorch/pytorch#160064", to_say("A head that is masked as a whole")),
        to_say("All is NaN with need_weights=True, and finite with False."),
        ("empty-row", closed_head_broken, closed_head_fixed, second_head),
        batch=UNPADDED | {"samples": (1, 1)},
        symptoms=(*NAN, to_say("it works until somebody looks")),
    ),
    report(
        ("NVIDIA/apex#1105", to_say("-1e10 in mixed precision")),
        to_say("masked_fill with -1e10 stops with an error in half precision."),
        ("fill-overflow", apex_broken, lowest_fixed),
        symptoms=HALF,
    ),
    report(
        ("facebookresearch/fairseq#3575", to_say("-1e8 in mixed precision")),
        to_say("The encoder's attn_mask was turned into -1e8, which float16 does not hold."),
        ("fill-overflow", fairseq_broken, fairseq_fixed, causal_only),
        batch=UNPADDED,
        symptoms=HALF,
    ),
    report(
        ("huggingface/lerobot#710", to_say("The lowest bfloat16 in float16")),
        to_say("The fill -2.38e38 fits bfloat16 and float32, and not float16, which autocast had chosen."),
        ("fill-overflow", lerobot_broken, lowest_fixed),
        symptoms=HALF,
    ),
    report(
        ("NVIDIA/apex#93", to_say("-1e15 becomes -inf, and the gradients NaN")),
        to_say(
            "Cast to half precision after the fill nothing stops it: the number is minus infinity, and rows of nothing "
            "else are NaN."
        ),
        ("fill-overflow", amp_broken, amp_fixed),
        batch={"side": "left"},
        symptoms=NAN,
    ),
)
