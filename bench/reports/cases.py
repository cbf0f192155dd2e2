"""The reports: where each was made, what happened, and the masks in force and meant, in tokens drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attenscope.masks.softmax import softmax


class Draw:
    """Sizes, scores and padding of one case."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.tokens = int(self.random.integers(9, 14))
        self.i, self.j = np.arange(self.tokens)[:, None], np.arange(self.tokens)
        self.causal = self.j <= self.i
        self.every = np.ones((self.tokens, self.tokens), bool)
        pads = np.array([[0], [2], [3]])
        self.left = self.j >= pads
        self.right = self.j < self.tokens - pads
        self.right_padded = self.right[1:]

    def scores(self, *shape: int) -> np.ndarray:
        """Return scores of so many samples, layers or heads."""
        return self.random.normal(size=(*shape, self.tokens, self.tokens)).astype(np.float32)

    def weights(self, mask: np.ndarray, heads: int = 2) -> np.ndarray:
        """Return weights (B, H, Q, K) of a mask (Q, K) or (B, Q, K), or (B, L, H, Q, K) of (L, B, Q, K)."""
        mask = mask[None] if mask.ndim == 2 else mask
        own = mask.swapaxes(0, 1)[:, :, None] if mask.ndim == 4 else mask[:, None]
        scores = self.random.normal(size=(*own.shape[:-3], heads, *own.shape[-2:]))
        return softmax(np.where(own, scores, -np.inf)).astype(np.float32)


Case = tuple[dict[str, Any], dict[str, Any]]
"""The arrays broken, and fixed; ``meant`` among them."""


@dataclass(frozen=True)
class Report:
    """One report."""

    where: str
    """``owner/name#number`` on GitHub."""
    says: str
    """What happened, in our own words."""
    code: str
    """The cause, as the diagnosis should name it first."""
    make: Callable[[Draw], Case]
    words: str = ""
    """What its message must say besides."""
    also: tuple[str, ...] = field(default=())
    """Codes that would help as well, though they are not the cause."""


def _make_from_masks(
    broken: Callable[[Draw], np.ndarray], fixed: Callable[[Draw], np.ndarray], meant: str, keep: str = ""
) -> Callable[[Draw], Case]:
    """Return what makes the weights of two masks beside what is meant, and the padding of the side ``keep``."""

    def make(x: Draw) -> Case:
        given: dict[str, Any] = {"meant": meant} | ({"key_keep": getattr(x, keep)} if keep else {})
        return {"weights": x.weights(broken(x)), **given}, {"weights": x.weights(fixed(x)), **given}

    return make


def _open_padding(side: str, causal: bool = False, meant: str = "") -> Callable[[Draw], Case]:
    """Return what makes padding that every query sees."""
    return _make_from_masks(
        lambda x: np.broadcast_to(x.causal if causal else x.every, (3, x.tokens, x.tokens)),
        lambda x: (x.causal if causal else x.every) & getattr(x, side)[:, None],
        meant or ("causal" if causal else "padding"),
        side,
    )


def _open_cross_padding() -> Callable[[Draw], Case]:
    """Return what makes cross-attention of fewer queries that sees the padding of the source."""

    def make(x: Draw) -> Case:
        whole = np.ones((3, x.tokens - 4, x.tokens), bool)
        given = {"key_keep": x.right, "meant": "padding", "map": "cross"}
        return {"weights": x.weights(whole), **given}, {"weights": x.weights(whole & x.right[:, None]), **given}

    return make


def _change_window(wrong: int | None, width: int = 4) -> Callable[[Draw], Case]:
    """Return what makes a window of another width, or none, where ``width`` is meant."""
    return _make_from_masks(
        lambda x: x.causal & (x.i - x.j < (wrong or x.tokens)),
        lambda x: x.causal & (x.i - x.j < width),
        f"causal+window:{width}",
    )


def _join_documents(x: Draw) -> Case:
    document = x.j >= x.tokens // 2
    same = document[:, None] == document
    given = {"meant": f"causal+packed:{x.tokens // 2},{x.tokens - x.tokens // 2}"}
    return {"weights": x.weights(x.causal), **given}, {"weights": x.weights(x.causal & same), **given}


def _scale_scores(wrong: float) -> Callable[[Draw], Case]:
    """Return what makes the softmax of ``wrong`` times the scores that are given."""

    def make(x: Draw) -> Case:
        scores = 2 * x.scores(1, 3)
        given = {"scores": scores, "meant": "causal"}
        made = [softmax(np.where(x.causal, scale * scores, -np.inf)).astype(np.float32) for scale in (wrong, 1.0)]
        return {"weights": made[0], **given}, {"weights": made[1], **given}

    return make


def _change_softmax_axis(axis: int) -> Callable[[Draw], Case]:
    def make(x: Draw) -> Case:
        scores = x.scores(2, 3)
        turned = np.moveaxis(softmax(np.moveaxis(scores, axis, -1)), -1, axis)
        given = {"scores": scores, "meant": "full"}
        return {"weights": turned, **given}, {"weights": softmax(scores), **given}

    return make


def _align_top_left(queries: int) -> Callable[[Draw], Case]:
    """Return what makes causal masks of so many queries behind a cache, from the top left and from the bottom right."""

    def make(x: Draw) -> Case:
        wrong = np.tri(queries, x.tokens, dtype=bool)
        right = np.tri(queries, x.tokens, x.tokens - queries, dtype=bool)
        return ({"weights": x.weights(wrong), "meant": "causal"}, {"weights": x.weights(right), "meant": "causal"})

    return make


def _exchange_layers(wrong: tuple[str, ...], right: tuple[str, ...]) -> Callable[[Draw], Case]:
    """Return what makes layers of causal masks and windows of 3; ``right`` is meant."""

    def make(x: Draw) -> Case:
        kinds = {"causal": x.causal, "causal+window:3": x.causal & (x.i - x.j < 3)}
        made = [x.weights(np.stack([kinds[one] for one in each])[:, None]) for each in (wrong, right)]
        given = {"meant": " / ".join(right)}
        return {"weights": made[0], **given}, {"weights": made[1], **given}

    return make


def _overflow_fill(fill: float) -> Callable[[Draw], Case]:
    """Return what makes a fill that half precision turns into -inf, and a row of nothing but fills into NaN."""

    def make(x: Draw) -> Case:
        keep = x.left[1:]
        mask = np.where((x.causal & keep[:, None])[:, None], 0, fill).astype(np.float32)
        lost = softmax(x.scores(2, 2) + np.where(mask < 0, -np.inf, 0), nan_rows=True).astype(np.float16)
        sound = np.where(mask < 0, -65504.0, 0).astype(np.float32)
        kept = softmax(np.where(mask < 0, -np.inf, x.scores(2, 2))).astype(np.float16)
        given = {"key_keep": keep, "meant": "causal"}
        return {"weights": lost, "mask": mask, **given}, {"weights": kept, "mask": sound, **given}

    return make


def _make_nan_rows(keep_side: str = "left") -> Callable[[Draw], Case]:
    """Return what makes rows without a key NaN, and the right answer, zeros."""

    def make(x: Draw) -> Case:
        keep = getattr(x, keep_side)
        mask = (x.causal & keep[:, None])[:, None]
        masked = np.where(mask, x.scores(3, 2), -np.inf)
        given = {"key_keep": keep, "meant": "causal"}
        return ({"weights": softmax(masked, nan_rows=True), **given}, {"weights": softmax(masked), **given})

    return make


def _drop_late_bias(x: Draw) -> Case:
    scores, bias = x.scores(1, 3), -0.5 * np.abs(x.i - x.j).astype(np.float32)
    mask = np.where(x.causal, bias, -np.inf).astype(np.float32)
    step = x.tokens - 3
    late = np.where(x.i >= step, 0, bias)
    given = {"scores": scores, "mask": mask, "meant": x.causal}
    made = [softmax(np.where(x.causal, scores + one, -np.inf)) for one in (late, bias)]
    return {"weights": made[0], **given}, {"weights": made[1], **given}


def _add_padding_mask(x: Draw) -> Case:
    scores = x.scores(3, 2)
    keep = x.right[:, None, None]
    given = {"scores": scores, "key_keep": x.right, "meant": "padding"}
    return (
        {"weights": softmax(scores + keep), **given},
        {"weights": softmax(np.where(keep, scores, -np.inf)), **given},
    )


def _fill_faintly(fill: float) -> Callable[[Draw], Case]:
    """Return what makes padding filled with a number next to zero."""

    def make(x: Draw) -> Case:
        scores, keep = x.scores(3, 2), x.right[:, None, None]
        given = {"key_keep": x.right, "meant": "padding"}
        made = [softmax(np.where(keep, scores, one)).astype(np.float32) for one in (fill, -np.inf)]
        return {"weights": made[0], **given}, {"weights": made[1], **given}

    return make


def _unmask_later_steps(x: Draw) -> Case:
    keep = x.left[1:]
    step = x.tokens - 3
    given = {"key_keep": keep, "meant": "causal"}
    right = x.causal & keep[:, None]
    return {"weights": x.weights(x.causal & (keep[:, None] | (x.i >= step))), **given}, {
        "weights": x.weights(right),
        **given,
    }


def _mix_up_heads(x: Draw) -> Case:
    keep = x.right
    order = np.arange(3 * 2).reshape(3, 2) % 3
    scores = x.scores(3, 2)
    made = [softmax(np.where(one, scores, -np.inf)) for one in (keep[order][:, :, None], keep[:, None, None])]
    given = {"key_keep": keep, "meant": "padding"}
    return {"weights": made[0], **given}, {"weights": made[1], **given}


def _open_unfilled_slots(x: Draw) -> Case:
    filled = np.broadcast_to(x.j < x.tokens - 3, (1, x.tokens))
    right = x.j[None] < x.tokens - 3
    whole = np.ones((1, x.tokens), bool)
    given = {"key_keep": filled, "meant": "causal"}
    return {"weights": x.weights(whole), **given}, {"weights": x.weights(right), **given}


def _open_spans(*spans: tuple[int, int]) -> Callable[[Draw], np.ndarray]:
    """Return what makes a causal mask whose spans, counted from 0, see themselves in both directions."""

    def mask(x: Draw) -> np.ndarray:
        out = x.causal.copy()
        for first, end in spans:
            out[first:end, first:end] = True
        return out

    return mask


def _join_images(x: Draw) -> np.ndarray:
    image = ((x.j >= 1) & (x.j < 4)) | ((x.j >= 5) & (x.j < 8))
    return x.causal | (image[:, None] & image)


def _open_one_cell(x: Draw) -> Case:
    meant = x.causal.copy()
    at = x.tokens // 2
    meant[at + 1 :, at] = False  # nobody reads what this token reads out
    meant[at, at] = True
    wrong = meant.copy()
    wrong[at - 1, at] = True
    return {"mask": wrong, "meant": meant}, {"mask": meant, "meant": meant}


def _mask_after_softmax(x: Draw) -> Case:
    scores = x.scores(1, 2)
    given = {"scores": scores, "meant": "causal"}
    return (
        {"weights": softmax(scores) * x.causal, **given},
        {"weights": softmax(np.where(x.causal, scores, -np.inf)), **given},
    )


def _shift_padding(x: Draw) -> Case:
    keep = x.right[1:]
    moved = np.concatenate([np.zeros((2, 1), bool), keep[:, :-1]], -1) | (x.j == 0)
    given = {"key_keep": keep, "meant": "padding"}
    whole = np.broadcast_to(x.every, (2, x.tokens, x.tokens))
    return {"weights": x.weights(whole & moved[:, None]), **given}, {
        "weights": x.weights(whole & keep[:, None]),
        **given,
    }


def _count_padding_in_chunks(x: Draw) -> Case:
    keep = x.left[:2]
    place = x.j - np.array([[0], [2]])
    right = x.causal & (place[:, :, None] // 3 == place[:, None] // 3) & keep[:, None]
    wrong = x.causal & (x.i // 3 == x.j // 3) & keep[:, None]
    given = {"key_keep": keep, "meant": "causal+chunked:3"}
    return {"weights": x.weights(wrong), **given}, {"weights": x.weights(right), **given}


def _drop_window_of_step(sinks: int) -> Callable[[Draw], Case]:
    """Return what makes one decoding step that sees all of the cache, where a window beside sinks is meant."""

    def make(x: Draw) -> Case:
        right = ((x.tokens - 1 - x.j) < 4) | (x.j < sinks)
        given = {"meant": f"causal+window:4+sinks:{sinks}" if sinks else right[None]}
        return {"weights": x.weights(x.every[:1]), **given}, {"weights": x.weights(right[None]), **given}

    return make


def _mask_end_token(x: Draw) -> Case:
    """An end token inside a row, taken for padding by its id."""
    hole = np.ones((2, x.tokens), bool)
    hole[:, x.tokens // 2] = False
    causal = np.broadcast_to(x.causal, (2, x.tokens, x.tokens))
    closed = causal & (hole[:, None] | (x.i == x.j))
    given = {"meant": "causal"}
    return {"weights": x.weights(closed), "key_keep": hole, **given}, {"weights": x.weights(causal), **given}


_FUTURE = _make_from_masks(lambda x: x.every, lambda x: x.causal, "causal")
_CAUSAL_FOR_ALL = _make_from_masks(lambda x: x.causal, lambda x: x.every, "full")
_LOCAL, _GLOBAL = "causal+window:3", "causal"

REPORTS: tuple[Report, ...] = (
    Report(
        "huggingface/transformers#48748",
        "The default kernel of Doge was given no causal mask.",
        "future-visible",
        _FUTURE,
    ),
    Report(
        "rainmaker22/SMART#42", "The temporal causal mask is nowhere in the training code.", "future-visible", _FUTURE
    ),
    Report(
        "RVC-Boss/GPT-SoVITS#965",
        "triu with a diagonal one too high: each token sees the next one.",
        "future-visible",
        _make_from_masks(lambda x: x.j <= x.i + 1, lambda x: x.causal, "causal"),
    ),
    Report(
        "pbloem/former#10",
        "triu_indices with offset 0 hides the diagonal; the first row is NaN.",
        "diagonal-blocked",
        _make_from_masks(lambda x: x.j < x.i, lambda x: x.causal, "causal"),
    ),
    Report(
        "hkproj/pytorch-transformer#19",
        "The triangle of translation is that of training turned around.",
        "inverted",
        _make_from_masks(lambda x: x.j >= x.i, lambda x: x.causal, "causal"),
    ),
    Report(
        "octo-models/octo#75",
        "One observation sees a readout token that nobody should.",
        "leak",
        _open_one_cell,
        "queries",
    ),
    Report(
        "huggingface/transformers#26792",
        "Mistral's window kept one key too many.",
        "window-off-by-one",
        _change_window(5),
    ),
    Report(
        "zml/zml#763",
        "The left window of the kernel counts without the query itself.",
        "window-off-by-one",
        _change_window(5),
    ),
    Report(
        "mistralai/mistral-inference#137", "The window shows one column more.", "window-off-by-one", _change_window(5)
    ),
    Report("sgl-project/sglang#34273", "A kernel attends to one more key.", "window-off-by-one", _change_window(5)),
    Report(
        "vllm-project/vllm#3385",
        "The window is one key narrower than the model's.",
        "window-off-by-one",
        _change_window(3),
    ),
    Report("proger/hippogriff#7", "A negative window size means no window.", "window-missing", _change_window(None)),
    Report(
        "Blackwellboy/model-serving-minefield#107",
        "sliding_window is dropped by a gate.",
        "window-missing",
        _change_window(None),
    ),
    Report(
        "rajveer43/VeloxQuant-MLX#463", "One decoding step loses its window.", "window-missing", _drop_window_of_step(1)
    ),
    Report(
        "sgl-project/sglang#1106",
        "The window of decoding steps is not handed on.",
        "window-missing",
        _drop_window_of_step(0),
    ),
    Report(
        "jingyaogong/minimind-v#76",
        "Padding is left out of the loss alone.",
        "padding-visible",
        _open_padding("left", True),
    ),
    Report(
        "huggingface/transformers#36293", "The encoder's mask is ignored.", "padding-visible", _open_padding("right")
    ),
    Report(
        "ml-explore/mlx-lm#1906",
        "The padding at the left never reaches the mask.",
        "padding-visible",
        _open_padding("left", True),
    ),
    Report(
        "TransformerLensOrg/TransformerLens#999",
        "generate() masks nothing.",
        "padding-visible",
        _open_padding("left", True),
    ),
    Report(
        "turboderp/exllama#101",
        "Batches are padded with zeros, without a mask.",
        "padding-visible",
        _open_padding("left", True),
    ),
    Report(
        "huggingface/trl#344",
        "Every token counts as real, padding too.",
        "padding-visible",
        _open_padding("left", True),
    ),
    Report(
        "Lightning-AI/lit-llama#77",
        "Padding at the left receives attention.",
        "padding-visible",
        _open_padding("left", True),
    ),
    Report("ML-GSAI/LLaDA#90", "attn_mask=None beside padded input.", "padding-visible", _open_padding("left")),
    Report(
        "ai4sd/multiscale-byte-lm#29",
        "Padded encoder tokens are not ignored.",
        "padding-visible",
        _open_padding("right"),
    ),
    Report("vliu15/dialogue-seq2seq#29", "Attention has no padding masks.", "padding-visible", _open_padding("right")),
    Report(
        "SeanLee97/AnglE#89", "The padding mask of a decoder used as encoder.", "padding-visible", _open_padding("left")
    ),
    Report(
        "huggingface/transformers#47946",
        "encoder_attention_mask is set to None.",
        "padding-visible",
        _open_cross_padding(),
    ),
    Report(
        "huggingface/diffusers#1890",
        "Cross-attention sees the padded prompt.",
        "padding-visible",
        _open_cross_padding(),
    ),
    Report(
        "huggingface/transformers#30993", "Pads are opened with the prefix.", "padding-visible", _open_padding("left")
    ),
    Report(
        "OpenNMT/OpenNMT-py#2532",
        "The mask is applied in the first step alone.",
        "padding-visible",
        _unmask_later_steps,
        "from query",
    ),
    Report(
        "Shujun-He/RibonanzaNet#5",
        "Padding is filled with -1e-9.",
        "padding-visible",
        _fill_faintly(-1e-9),
        also=("weak-fill",),
    ),
    Report(
        "NTMC-Community/MatchZoo-py#163",
        "Padding is filled with -1e-7.",
        "padding-visible",
        _fill_faintly(-1e-7),
        also=("weak-fill",),
    ),
    Report(
        "DeepOpt-com/WrinkleFree-Monorepo#53",
        "Positions begin anew, attention does not.",
        "document-leak",
        _join_documents,
    ),
    Report("mit-han-lab/fastrl#14", "The mask of a packed row is all ones.", "document-leak", _join_documents),
    Report("unslothai/unsloth#1207", "Packed samples see each other.", "document-leak", _join_documents),
    Report("huggingface/transformers#46634", "A mask of ones switches packing off.", "document-leak", _join_documents),
    Report(
        "lucidrains/halonet-pytorch#6",
        "The mask of real pixels is filled.",
        "inverted",
        _make_from_masks(
            lambda x: x.every & ~x.right[1:, None], lambda x: x.every & x.right[1:, None], "padding", "right_padded"
        ),
    ),
    Report("mlverse/torch#1208", "A boolean padding mask is added.", "soft-mask", _add_padding_mask),
    Report("PetrochukM/PyTorch-NLP#2", "Softmax over the first axis.", "softmax-axis", _change_softmax_axis(0)),
    Report(
        "jadore801120/attention-is-all-you-need-pytorch#52",
        "Softmax over the queries.",
        "softmax-axis",
        _change_softmax_axis(2),
    ),
    Report("nerdai/llms-from-scratch-rs#30", "Softmax over the wrong axis.", "softmax-axis", _change_softmax_axis(2)),
    Report(
        "aladdinpersson/Machine-Learning-Collection#65",
        "Scaled by the width of all heads.",
        "scores-mismatch",
        _scale_scores(0.35),
        "times these scores",
    ),
    Report(
        "Graylab/DL4Proteins-notebooks#12",
        "Scaled by the embedding, not the head.",
        "scores-mismatch",
        _scale_scores(0.5),
        "times these scores",
    ),
    Report(
        "NVIDIA/Megatron-LM#848",
        "The local kernel multiplies another factor.",
        "scores-mismatch",
        _scale_scores(4.0),
        "times these scores",
    ),
    Report(
        "InternLM/xtuner#873",
        "softmax_scale is not handed on.",
        "scores-mismatch",
        _scale_scores(1.5),
        "times these scores",
    ),
    Report(
        "keras-team/keras-hub#2862",
        "ALiBi is zero in every decoding step.",
        "scores-mismatch",
        _drop_late_bias,
        "bias given is missing",
    ),
    Report("pytorch/pytorch#108108", "is_causal counts from the top left.", "top-left-causal", _align_top_left(3)),
    Report("pytorch/pytorch#103082", "is_causal with one query sees one key.", "top-left-causal", _align_top_left(1)),
    Report("onnx/onnx#8068", "A chunk of a prompt is aligned at the top left.", "top-left-causal", _align_top_left(4)),
    Report("huggingface/transformers#30437", "A static cache without its mask.", "stale-cache", _open_unfilled_slots),
    Report(
        "huggingface/transformers#30918",
        "A mask of ones opens the answer as well as the prefix.",
        "future-visible",
        _make_from_masks(lambda x: x.every, lambda x: x.causal | (x.j < 4), "prefix:4"),
    ),
    Report(
        "huggingface/transformers#39389",
        "The two directions of image tokens never arrive.",
        "over-blocked",
        _make_from_masks(lambda x: x.causal, _open_spans((2, 6)), "causal+span:3-6"),
        "in force: causal",
    ),
    Report(
        "Blaizzy/mlx-vlm#671",
        "Image tokens are masked as text.",
        "over-blocked",
        _make_from_masks(lambda x: x.causal, _open_spans((1, 4), (5, 8)), "causal+span:2-4+span:6-8"),
        "in force: causal",
    ),
    Report(
        "huggingface/transformers#38080",
        "All images see each other, later ones too.",
        "leak",
        _make_from_masks(_join_images, _open_spans((1, 4), (5, 8)), "causal+span:2-4+span:6-8"),
    ),
    Report(
        "huggingface/transformers#35896",
        "Windows in the other layers.",
        "wrong-layer-pattern",
        _exchange_layers((_GLOBAL, _LOCAL), (_LOCAL, _GLOBAL)),
    ),
    Report(
        "huggingface/transformers#40126",
        "No layer gets its window.",
        "wrong-layer-pattern",
        _exchange_layers((_GLOBAL, _GLOBAL), (_GLOBAL, _LOCAL)),
        also=("window-missing", "leak"),
    ),
    Report(
        "vllm-project/vllm#14896",
        "Interleaved windows are not noticed.",
        "wrong-layer-pattern",
        _exchange_layers((_LOCAL, _LOCAL), (_LOCAL, _GLOBAL)),
    ),
    Report("reczoo/FuxiCTR#130", "Padding repeated in the wrong order over heads.", "head-order", _mix_up_heads),
    Report("tatp22/linformer-pytorch#19", "-1e10 in half precision.", "fill-overflow", _overflow_fill(-1e10)),
    Report("google/flax#1527", "-1e10 in float16 gives NaN.", "fill-overflow", _overflow_fill(-1e10)),
    Report("pytorch/benchmark#794", "-1e9 overflows in half precision.", "fill-overflow", _overflow_fill(-1e9)),
    Report(
        "huggingface/transformers#17306", "The lowest number plus a score is -inf: NaN.", "empty-row", _make_nan_rows()
    ),
    Report("huggingface/transformers#25284", "Padding rows see nothing and become NaN.", "empty-row", _make_nan_rows()),
    Report("tracel-ai/burn#4697", "A row without a key is NaN.", "empty-row", _make_nan_rows()),
    Report("robertknight/rten#1321", "All scores -inf give NaN.", "empty-row", _make_nan_rows()),
    Report(
        "huggingface/transformers#40324",
        "Chunks count the padding.",
        "leak",
        _count_padding_in_chunks,
        "chunks",
        ("over-blocked",),
    ),
    Report("huggingface/transformers#45757", "The mask is padded at the other end.", "mask-shifted", _shift_padding),
    Report(
        "huggingface/transformers#39707",
        "The kernel is causal whatever is asked.",
        "over-blocked",
        _CAUSAL_FOR_ALL,
        "in force: causal; meant: every key",
    ),
    Report(
        "huggingface/transformers#46077",
        "An encoder still builds causal masks.",
        "over-blocked",
        _CAUSAL_FOR_ALL,
        "in force: causal; meant: every key",
    ),
    Report(
        "lucidrains/memory-compressed-attention#2",
        "The mask comes after the softmax.",
        "applied-late",
        _mask_after_softmax,
    ),
    Report("alibaba/Pai-Megatron-Patch#335", "The end token is masked as padding.", "hole-inside", _mask_end_token),
)
