"""More reports, rebuilt before the rules had been read and run once: the first answers stand in ``reports.md``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attenscope.masks.softmax import softmax
from bench.reports.cases import Case, Draw, Report

WINDOW, IMAGE = 4, (2, 8)
"""Keys of a window, and an image that is longer."""


def _invert_for_sdpa(x: Draw) -> Case:
    """``triu(1)``, True where blocked, handed to a call that keeps where True."""
    return {"weights": x.weights(~x.causal), "meant": "causal"}, {"weights": x.weights(x.causal), "meant": "causal"}


def _lose_causal_keep_padding(x: Draw) -> Case:
    keep = x.right[:, None]
    given = {"key_keep": x.right, "meant": "causal"}
    return (
        {"weights": x.weights(x.every & keep, 4), **given},
        {"weights": x.weights(x.causal & keep, 4), **given},
    )


def _open_step(queries: int) -> Callable[[Draw], Case]:
    """Return what makes a step of so many queries that sees all of the cache and of itself."""

    def make(x: Draw) -> Case:
        right = x.causal[-queries:]
        return (
            {"weights": x.weights(np.ones_like(right)), "meant": "causal"},
            {"weights": x.weights(right), "meant": "causal"},
        )

    return make


def _align_chunk_top_left(x: Draw) -> Case:
    chunk = 5
    wrong, right = np.tri(chunk, x.tokens, dtype=bool), x.causal[-chunk:]
    return {"weights": x.weights(wrong, 4), "meant": right}, {"weights": x.weights(right, 4), "meant": right}


def _mask_padding_by_query(x: Draw) -> Case:
    """``unsqueeze(3)`` in place of ``unsqueeze(2)``, and a fill of -10000, which leaves rows of pads as they were."""
    scores, keep = x.scores(3, 2), x.right
    by_query = np.broadcast_to(keep[:, None, :, None], (3, 1, x.tokens, x.tokens))
    by_key = np.broadcast_to(keep[:, None, None], (3, 1, x.tokens, x.tokens))
    given = {"key_keep": keep, "meant": "padding"}
    made = [softmax(np.where(one, scores, scores * 0 - 1e4)).astype(np.float32) for one in (by_query, by_key)]
    return {"weights": made[0], "mask": by_query, **given}, {"weights": made[1], "mask": by_key, **given}


def _fill_after_softmax(x: Draw) -> Case:
    """The weights themselves are filled with -inf."""
    scores, keep = x.scores(3, 2), x.right[:, None, None]
    given = {"key_keep": x.right, "meant": "padding"}
    return (
        {"weights": np.where(keep, softmax(scores), -np.inf).astype(np.float32), **given},
        {"weights": softmax(np.where(keep, scores, -np.inf)).astype(np.float32), **given},
    )


def _widen_window(x: Draw) -> Case:
    keep = x.left[:, None]
    given = {"key_keep": x.left, "meant": f"causal+window:{WINDOW}"}
    wrong, right = (x.causal & (x.i - x.j < width) & keep for width in (WINDOW + 1, WINDOW))
    return {"weights": x.weights(wrong), **given}, {"weights": x.weights(right), **given}


def _lose_every_window(x: Draw) -> Case:
    band = x.causal & (x.i - x.j < WINDOW)
    given = {"meant": f"causal+window:{WINDOW} / causal"}
    wrong, right = (np.stack([first, x.causal] * 2)[:, None] for first in (x.causal, band))
    return {"weights": x.weights(wrong), **given}, {"weights": x.weights(right), **given}


def _join_three_documents(x: Draw) -> Case:
    lengths = (3, 4, x.tokens - 7)
    document = np.repeat(np.arange(3), lengths)
    given = {"meant": f"causal+packed:{','.join(map(str, lengths))}"}
    right = x.causal & (document[:, None] == document)
    return {"weights": x.weights(x.causal, 4), **given}, {"weights": x.weights(right, 4), **given}


def _change_alibi(factor: float, heads: int = 4) -> Callable[[Draw], Case]:
    """Return what makes ALiBi whose slopes are so many times those that are given."""

    def make(x: Draw) -> Case:
        scores = x.scores(1, heads)
        slopes = 2.0 ** -(8 * (np.arange(heads) + 1) / heads)
        bias = (-slopes[:, None, None] * (x.i - x.j)).astype(np.float32)
        mask = np.where(x.causal, bias, -np.inf).astype(np.float32)[None]
        given = {"scores": scores, "mask": mask, "meant": "causal"}
        made = [softmax(np.where(x.causal, scores + one * bias, -np.inf)).astype(np.float32) for one in (factor, 1.0)]
        return {"weights": made[0], **given}, {"weights": made[1], **given}

    return make


def _invert_label_attention(x: Draw) -> Case:
    labels, keep = 5, x.right[1:]
    whole = np.ones((2, labels, x.tokens), bool)
    given = {"key_keep": keep, "meant": "padding", "map": "cross"}
    return (
        {"weights": x.weights(whole & ~keep[:, None]), **given},
        {"weights": x.weights(whole & keep[:, None]), **given},
    )


def _lengthen_prefix(x: Draw) -> Case:
    prefix = 4
    right = x.causal | (x.j < prefix)
    wrong = x.causal | (x.j < prefix + 1)
    return {"weights": x.weights(wrong), "meant": right}, {"weights": x.weights(right), "meant": right}


def _image(x: Draw) -> np.ndarray:
    inside = (x.j >= IMAGE[0]) & (x.j < IMAGE[1])
    return inside[:, None] & inside


def _image_in_window(x: Draw) -> np.ndarray:
    return (x.causal | _image(x)) & (np.abs(x.i - x.j) < WINDOW)


def _meant_image(broken: Callable[[Draw], np.ndarray]) -> Callable[[Draw], Case]:
    """Return what makes an image in a windowed layer, where both directions end at the window."""

    def make(x: Draw) -> Case:
        right = _image_in_window(x)
        return {"weights": x.weights(broken(x)), "meant": right}, {"weights": x.weights(right), "meant": right}

    return make


def _append_draft_keys(x: Draw) -> Case:
    """Keys of a draft step stand behind the tokens: each query may see its own, and a 0/1 block was appended."""
    n, document = x.tokens, x.j >= x.tokens // 2
    tokens = x.causal & (document[:, None] == document)
    eye = np.eye(n, dtype=bool)
    right = np.concatenate([tokens, eye], -1)
    fill = np.where(right, 0, -np.inf).astype(np.float32)
    wrong = fill.copy()
    wrong[:, n:] = eye
    scores = x.random.normal(size=(1, 2, n, 2 * n)).astype(np.float32)
    made = [softmax(scores + one).astype(np.float32) for one in (wrong, fill)]
    return {"weights": made[0], "mask": wrong, "meant": right}, {"weights": made[1], "mask": fill, "meant": right}


def _tile_beams(x: Draw) -> Case:
    """Sources repeated one after the other for beams that stand side by side."""
    beams = 2
    own, other = np.repeat(x.right, beams, 0), np.tile(x.right, (beams, 1))
    whole = np.ones((3 * beams, 4, x.tokens), bool)
    given = {"key_keep": own, "meant": "padding", "map": "cross"}
    return (
        {"weights": x.weights(whole & other[:, None]), **given},
        {"weights": x.weights(whole & own[:, None]), **given},
    )


def _leave_regions_open(x: Draw) -> Case:
    """The last shifted window of an image holds four regions, which nothing parts."""
    row, column = np.divmod(np.arange(16), 4)
    region = (row >= 2) * 2 + (column >= 2)
    right = region[:, None] == region
    scores = x.random.normal(size=(1, 3, 16, 16)).astype(np.float32)
    made = [softmax(np.where(one, scores, -np.inf)).astype(np.float32) for one in (np.ones((16, 16), bool), right)]
    return {"weights": made[0], "meant": right}, {"weights": made[1], "meant": right}


def _coarsen_blocks(x: Draw) -> Case:
    """A noisy half beside a clean one, in blocks of 2; the mask is dense by blocks of 4."""
    n = 8
    at = np.arange(2 * n)
    clean, block = at >= n, at % n // 2
    own = (block[:, None] == block) & (clean[:, None] == clean)
    earlier = clean[None] & ((block[:, None] > block) | (clean[:, None] & (block[:, None] >= block)))
    right = own | earlier
    wrong = right.reshape(4, 4, 4, 4).any((1, 3)).repeat(4, 0).repeat(4, 1)
    scores = x.random.normal(size=(1, 2, 2 * n, 2 * n)).astype(np.float32)
    made = [softmax(np.where(one, scores, -np.inf)).astype(np.float32) for one in (wrong, right)]
    return {"weights": made[0], "meant": right}, {"weights": made[1], "meant": right}


def _leave_out_scale(x: Draw) -> Case:
    scores, keep = x.scores(3, 2), x.right[:, None, None]
    given = {"scores": scores, "key_keep": x.right, "meant": "padding"}
    made = [softmax(np.where(keep, factor * scores, -np.inf)).astype(np.float32) for factor in (8.0, 1.0)]
    return {"weights": made[0], **given}, {"weights": made[1], **given}


def _leave_out_softcap(x: Draw) -> Case:
    raw = 6 * x.scores(1, 4)
    capped = (5 * np.tanh(raw / 5)).astype(np.float32)
    given: dict[str, Any] = {"scores": capped, "meant": "causal"}
    made = [softmax(np.where(x.causal, one, -np.inf)).astype(np.float32) for one in (raw, capped)]
    return {"weights": made[0], **given}, {"weights": made[1], **given}


def _count_unwritten_slots(x: Draw) -> Case:
    """A chunk of 4 queries behind 3 keys in a cache of which the rest is not written yet."""
    start, chunk = 3, 4
    q = np.arange(chunk)[:, None]
    right, wrong = x.j <= start + q, x.j <= x.tokens - chunk + q
    given = {"key_keep": (x.j < start + chunk)[None], "meant": right}
    return {"weights": x.weights(wrong), **given}, {"weights": x.weights(right), **given}


def _leave_dropout_on(x: Draw) -> Case:
    keep = x.right[:, None]
    sound = x.weights(x.every & keep, 4)
    dropped = sound * (x.random.random(sound.shape) >= 0.2) / 0.8
    given = {"key_keep": x.right, "meant": "padding"}
    return {"weights": dropped.astype(np.float32), **given}, {"weights": sound, **given}


def _tile_key_heads(x: Draw) -> Case:
    """Four heads of queries, two of keys: heads 1 and 2 read the keys of the other group."""
    scores, others = x.scores(1, 4), x.scores(1, 4)
    wrong = scores.copy()
    wrong[:, 1:3] = others[:, 1:3]
    given = {"scores": scores, "meant": "causal"}
    made = [softmax(np.where(x.causal, one, -np.inf)).astype(np.float32) for one in (wrong, scores)]
    return {"weights": made[0], **given}, {"weights": made[1], **given}


def _add_patch_mask(x: Draw) -> Case:
    """Patches of an image, the last of them padding, and a 0/1 mask where 0 and -inf are expected."""
    scores, keep = x.scores(2, 2), x.right_padded
    added = np.broadcast_to(keep[:, None, None], (2, 1, x.tokens, x.tokens)).astype(np.float32)
    fill = np.where(added > 0, 0, -np.inf).astype(np.float32)
    given = {"key_keep": keep, "meant": "padding"}
    made = [softmax(scores + one).astype(np.float32) for one in (added, fill)]
    return {"weights": made[0], "mask": added, **given}, {"weights": made[1], "mask": fill, **given}


UNSEEN: tuple[Report, ...] = (
    Report("rasbt/LLMs-from-scratch#1062", "A mask of blocked cells for SDPA.", "inverted", _invert_for_sdpa),
    Report(
        "keras-team/keras#23038",
        "With dropout the causal mask is dropped, not the padding.",
        "future-visible",
        _lose_causal_keep_padding,
    ),
    Report("Mikyx-1/TinyLLM#18", "A prompt is read with a cache and no mask.", "future-visible", _open_step(5)),
    Report(
        "gittensor-ai-lab/sparkinfer#3",
        "A chunk of a prompt is aligned at its own start.",
        "top-left-causal",
        _align_chunk_top_left,
    ),
    Report(
        "hyunwoongko/transformer#40",
        "unsqueeze(3): padding is masked by query.",
        "wrong-axis",
        _mask_padding_by_query,
        also=("padding-visible", "mask-ignored"),
    ),
    Report(
        "huggingface/pytorch-image-models#2236",
        "The weights, not the scores, are filled with -inf.",
        "applied-late",
        _fill_after_softmax,
    ),
    Report(
        "huggingface/transformers#39408",
        "The window of the kernel counts one key more.",
        "window-off-by-one",
        _widen_window,
    ),
    Report(
        "keras-team/keras-hub#2186",
        "The fused path never sees the window.",
        "wrong-layer-pattern",
        _lose_every_window,
        also=("window-missing",),
    ),
    Report("huggingface/nanoVLM#204", "Packed samples see each other.", "document-leak", _join_three_documents),
    Report(
        "meta-pytorch/attention-gym#86",
        "ALiBi with its sign turned around.",
        "bias-wrong",
        _change_alibi(-1.0),
        also=("scores-mismatch",),
    ),
    Report(
        "paiml/aprender#2143",
        "The slopes of ALiBi are one factor too steep.",
        "bias-wrong",
        _change_alibi(4.0),
        also=("scores-mismatch",),
    ),
    Report(
        "InseeFrLab/torchTextClassifiers#92",
        "Labels attend to the padding of a text alone.",
        "inverted",
        _invert_label_attention,
    ),
    Report(
        "bigscience-workshop/Megatron-DeepSpeed#167",
        "The prefix is one token too long.",
        "leak",
        _lengthen_prefix,
        also=("future-visible", "mask-shifted"),
    ),
    Report(
        "vllm-project/vllm#47217",
        "An image longer than the window is causal.",
        "over-blocked",
        _meant_image(lambda x: x.causal & (x.i - x.j < WINDOW)),
    ),
    Report(
        "huggingface/transformers#46850",
        "An image is seen across the window.",
        "leak",
        _meant_image(lambda x: (x.causal & (x.i - x.j < WINDOW)) | _image(x)),
        also=("window-missing",),
    ),
    Report(
        "vllm-project/speculators#897",
        "A 0/1 block is appended to an additive mask.",
        "leak",
        _append_draft_keys,
        also=("soft-mask", "future-visible", "document-leak"),
    ),
    Report(
        "jadore801120/attention-is-all-you-need-pytorch#28",
        "Sources tiled, beams repeated.",
        "sample-order",
        _tile_beams,
    ),
    Report(
        "huggingface/pytorch-image-models#2438",
        "Regions of a shifted window see each other.",
        "leak",
        _leave_regions_open,
        also=("mask-ignored", "document-leak"),
    ),
    Report(
        "kuleshov-group/bd3lms#23",
        "Block diffusion with the block size of the kernel.",
        "leak",
        _coarsen_blocks,
        also=("future-visible",),
    ),
    Report("mlc-ai/mlc-llm#3426", "1/sqrt(d) is left out.", "scores-mismatch", _leave_out_scale),
    Report("vllm-project/vllm-metal#665", "Scores are not capped.", "scores-mismatch", _leave_out_softcap),
    Report(
        "GeeeekExplorer/nano-vllm#213",
        "A chunk counts slots of the cache that are not written yet.",
        "stale-cache",
        _count_unwritten_slots,
        also=("future-visible", "leak"),
    ),
    Report("idiap/fast-transformers#131", "Weights taken in training mode.", "dropout-on", _leave_dropout_on),
    Report("ekzhang/jax-js#180", "Heads of keys are tiled, not repeated.", "scores-mismatch", _tile_key_heads),
    Report(
        "quic/efficient-transformers#1159",
        "A 0/1 mask of patches is added.",
        "soft-mask",
        _add_patch_mask,
    ),
)
