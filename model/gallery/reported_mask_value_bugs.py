"""Reported bugs of inverted masks, fill values, softmax axes, empty rows and half precision."""

from __future__ import annotations

import torch
from torch import Tensor

from ..language import to_say
from .attention_bug_pairs import Batch, compute_sdpa_weights, masked_softmax
from .fault_generators import UNPADDED_BATCH, causal_only_mask, padding_only_mask
from .reported_causal_bugs import (
    ALONE_SYMPTOM,
    HALF_PRECISION_SYMPTOMS,
    NAN_SYMPTOMS,
    PADDING_REPORT_ARGUMENTS,
    lower_triangle_mask,
    make_report,
)

# Reports of masks read the other way around, of fills that are no fills, and of softmaxes over another axis.


INVERTED_SYMPTOMS = (to_say("it learns nothing"), to_say("the last row is NaN"), to_say("attention sits on the future"))


def llms_from_scratch_inverted_broken(x: Batch) -> Tensor:
    mask = torch.ones(x.queries, x.keys).triu(1).bool()  # True = the future
    return compute_sdpa_weights(x.scores, mask)


def llms_from_scratch_inverted_fixed(x: Batch) -> Tensor:
    mask = torch.ones(x.queries, x.keys).triu(1).bool()
    return compute_sdpa_weights(x.scores, ~mask)


def additive_causal_mask(x: Batch) -> Tensor:
    """The causal mask as it is added: 0 keeps, the lowest number blocks."""
    return torch.zeros(x.queries, x.keys).masked_fill(~x.causal, torch.finfo(torch.float32).min)


def llama4_additive_as_bool_broken(x: Batch) -> Tensor:
    return compute_sdpa_weights(x.scores, additive_causal_mask(x).bool())  # 0 becomes False, which blocks


def llama4_additive_as_bool_fixed(x: Batch) -> Tensor:
    return compute_sdpa_weights(x.scores, additive_causal_mask(x))


def x_transformers_inverted_padding_broken(x: Batch) -> Tensor:
    mask = ~x.keep  # True = not to be attended to
    return compute_sdpa_weights(x.scores, mask)


def x_transformers_inverted_padding_fixed(x: Batch) -> Tensor:
    return compute_sdpa_weights(x.scores, x.keep)


def same_map_element_mask(x: Batch) -> Tensor:
    """Return (Q, K) bool: the points of one map element, half of the points each."""
    element = torch.arange(x.keys) >= x.keys // 2
    return element[:, None] == element


def gemap_inverted_mask_broken(x: Batch) -> Tensor:
    attn_mask = same_map_element_mask(x)  # nn.MultiheadAttention fills where True
    return x.scores.masked_fill(attn_mask, -torch.inf).softmax(-1)


def gemap_inverted_mask_fixed(x: Batch) -> Tensor:
    attn_mask = ~same_map_element_mask(x)
    return x.scores.masked_fill(attn_mask, -torch.inf).softmax(-1)


def label_attention_inverted_padding_broken(x: Batch) -> Tensor:
    mask = (~x.keep).expand(x.scores.shape)
    return compute_sdpa_weights(x.scores, mask)


def label_attention_inverted_padding_fixed(x: Batch) -> Tensor:
    return compute_sdpa_weights(x.scores, x.keep.expand(x.scores.shape))


def gluonts_tiny_fill_broken(x: Batch) -> Tensor:
    return (x.scores - 1e-9 * (~x.keep)).softmax(-1)  # 1e-9, not 1e9


def gluonts_tiny_fill_fixed(x: Batch) -> Tensor:
    return (x.scores - 1e9 * (~x.keep)).softmax(-1)


def tiny_fill_broken(x: Batch, e: float = 1e-12) -> Tensor:
    return x.scores.masked_fill(x.keep == 0, -e).softmax(-1)


def tiny_fill_fixed(x: Batch) -> Tensor:
    return x.scores.masked_fill(x.keep == 0, -torch.inf).softmax(-1)


def good_features_multiplied_mask_broken(x: Batch) -> Tensor:
    return (x.scores * x.keep).softmax(-1)  # a score of 0 still takes its share


def good_features_multiplied_mask_fixed(x: Batch) -> Tensor:
    return x.scores.masked_fill(~x.keep, -torch.inf).softmax(-1)


def timm_mask_after_softmax_broken(x: Batch) -> Tensor:
    return x.scores.softmax(-1).masked_fill(~x.causal, 0.0)


def timm_mask_after_softmax_fixed(x: Batch) -> Tensor:
    return x.scores.masked_fill(~x.causal, -torch.inf).softmax(-1)


def fastnlp_softmax_axis_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(~x.allowed, -1e9).softmax(2)  # right on three axes


def fastnlp_softmax_axis_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.allowed)


def unet_softmax_axis_broken(x: Batch) -> Tensor:
    scores = x.scores.permute(0, 2, 3, 1)  # (batch, i, j, head)
    return scores.softmax(1).permute(0, 3, 1, 2)


def unet_softmax_axis_fixed(x: Batch) -> Tensor:
    scores = x.scores.permute(0, 2, 3, 1)
    return scores.softmax(2).permute(0, 3, 1, 2)


def full_mask(x: Batch) -> Tensor:
    """Return (Q, K) bool, all True."""
    return torch.ones(x.queries, x.keys, dtype=torch.bool)


def fused_needless_causal_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep & lower_triangle_mask(x))


def fused_needless_causal_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep)


CONVENTION_REPORTS = (
    make_report(
        ("rasbt/LLMs-from-scratch#1062", to_say("True meant the future")),
        to_say(
            "A boolean causal mask, True at the future, went into F.scaled_dot_product_attention, which keeps where "
            "True. A test that changes a future token would have shown it."
        ),
        ("inverted", llms_from_scratch_inverted_broken, llms_from_scratch_inverted_fixed, causal_only_mask),
        batch=UNPADDED_BATCH,
        symptoms=INVERTED_SYMPTOMS,
    ),
    make_report(
        ("huggingface/transformers#38094", to_say("An additive mask cast to booleans")),
        to_say("In Llama 4 the additive mask, 0 or the lowest number, was cast to booleans for sdpa: 0 becomes False."),
        ("inverted", llama4_additive_as_bool_broken, llama4_additive_as_bool_fixed, causal_only_mask),
        batch=UNPADDED_BATCH,
        symptoms=INVERTED_SYMPTOMS,
    ),
    make_report(
        ("lucidrains/x-transformers#160", to_say("The fused path wants the mask the other way around")),
        to_say("The explicit path filled where the mask is True, the flash path kept there."),
        (
            "inverted",
            x_transformers_inverted_padding_broken,
            x_transformers_inverted_padding_fixed,
            padding_only_mask,
            ("weights", "key_keep"),
        ),
        batch={"samples": (2, 4)},
        symptoms=(to_say("only with flash attention"),),
    ),
    make_report(
        ("cnzzx/GeMap#1", to_say("A mask of groups upside down")),
        to_say(
            "The mask that should keep the points of one element together said True for them, which "
            "nn.MultiheadAttention blocks."
        ),
        ("inverted", gemap_inverted_mask_broken, gemap_inverted_mask_fixed, same_map_element_mask),
        batch=UNPADDED_BATCH,
    ),
    make_report(
        ("InseeFrLab/torchTextClassifiers#92", to_say("Labels attend to the padding alone")),
        to_say(
            "The padding mask of the attention from labels to tokens was inverted before "
            "F.scaled_dot_product_attention."
        ),
        (
            "inverted",
            label_attention_inverted_padding_broken,
            label_attention_inverted_padding_fixed,
            padding_only_mask,
            ("weights", "key_keep"),
        ),
        batch={"cross": True, "samples": (2, 4), "sizes": (5, 7)},
        symptoms=INVERTED_SYMPTOMS,
    ),
    make_report(
        ("awslabs/gluonts#1401", to_say("1e-9 in place of 1e9")),
        to_say("The number added to blocked scores was a billionth, not a billion: nothing was blocked."),
        ("padding-visible", gluonts_tiny_fill_broken, gluonts_tiny_fill_fixed),
        **PADDING_REPORT_ARGUMENTS,
        symptoms=(to_say("the mask seems to do nothing"),),
    ),
    make_report(
        ("hyunwoongko/transformer#10", to_say("A fill of nearly zero")),
        to_say("Blocked scores were filled with minus epsilon. A score of 0 is an ordinary score."),
        ("padding-visible", tiny_fill_broken, tiny_fill_fixed),
        **PADDING_REPORT_ARGUMENTS,
    ),
    make_report(
        ("georg-wolflein/good-features#1", to_say("Scores multiplied by the mask")),
        to_say(
            "Multiplying makes blocked scores 0, and the softmax of 0 is not 0. With a batch of one, without padding, "
            "nothing shows."
        ),
        ("padding-visible", good_features_multiplied_mask_broken, good_features_multiplied_mask_fixed),
        **PADDING_REPORT_ARGUMENTS,
        symptoms=(ALONE_SYMPTOM,),
    ),
    make_report(
        ("huggingface/pytorch-image-models#2236", to_say("The mask after the softmax")),
        to_say("EVA's attention took the softmax first and masked its result."),
        (
            "applied-late",
            timm_mask_after_softmax_broken,
            timm_mask_after_softmax_fixed,
            causal_only_mask,
            ("weights", "meant"),
        ),
        batch=UNPADDED_BATCH,
        symptoms=(to_say("rows do not sum to 1"),),
    ),
    make_report(
        ("FudanNLP/fastNLP#254", to_say("softmax(2), with a head axis")),
        to_say("softmax over axis 2 is over the keys of three axes, and over the queries of four."),
        ("softmax-axis", fastnlp_softmax_axis_broken, fastnlp_softmax_axis_fixed),
        symptoms=(to_say("columns sum to 1"),),
    ),
    make_report(
        ("labmlai/annotated_deep_learning_paper_implementations#146", to_say("A U-Net's softmax over the queries")),
        to_say(
            "With scores laid out (batch, i, j, head) the softmax ran over i. The images hardly changed, which is why "
            "nobody saw it."
        ),
        ("softmax-axis", unet_softmax_axis_broken, unet_softmax_axis_fixed, full_mask),
        batch=UNPADDED_BATCH,
        symptoms=(to_say("columns sum to 1"), to_say("nothing is reported")),
    ),
    make_report(
        ("huggingface/transformers#36150", to_say("is_causal=False has no effect")),
        to_say(
            "A Llama made bidirectional by is_causal=False stayed causal, as the mask that sdpa was given is causal "
            "anyway."
        ),
        ("over-blocked", fused_needless_causal_broken, fused_needless_causal_fixed, padding_only_mask),
        symptoms=(to_say("the start of a sentence never sees its end"),),
    ),
)

# Reports of rows that have no key left, and of fills in half precision.


CROSS_BATCH = {"cross": True, "sizes": (5, 7)}


def two_token_band_mask(x: Batch) -> Tensor:
    """Return (B, 1, Q, K) bool: each token and the one before it, where they are real."""
    return (lower_triangle_mask(x) & ~lower_triangle_mask(x, -2)) & x.keep


def band_padding_empty_rows_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(~two_token_band_mask(x), -torch.inf).softmax(-1)  # padding has no key left


def band_padding_empty_rows_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, two_token_band_mask(x))


def fully_blocked_head_mask(x: Batch) -> Tensor:
    """Return (H, Q, K) bool: the first head may attend to nothing."""
    open_heads = torch.arange(x.scores.shape[1]) > 0
    return open_heads[:, None, None].expand(-1, x.queries, x.keys)


def fully_blocked_head_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(~fully_blocked_head_mask(x), -torch.inf).softmax(-1)


def fully_blocked_head_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, fully_blocked_head_mask(x))


def apex_half_fill_overflow_broken(x: Batch) -> Tensor:
    return x.scores.half().masked_fill(x.allowed == 0, -1e10).softmax(-1)


def lowest_fill_fixed(x: Batch) -> Tensor:
    scores = x.scores.half()
    return scores.masked_fill(~x.allowed, torch.finfo(scores.dtype).min).softmax(-1)


def fairseq_half_fill_broken(x: Batch) -> Tensor:
    return x.scores.half().masked_fill(~x.causal, -1e8).softmax(-1)


def fairseq_half_fill_fixed(x: Batch) -> Tensor:
    return x.scores.half().masked_fill(~x.causal, -1e4).softmax(-1)


def lerobot_half_fill_broken(x: Batch) -> Tensor:
    big_neg = -2.3819763e38
    return x.scores.half().masked_fill(~x.allowed, big_neg).softmax(-1)


def amp_fill_overflow_broken(x: Batch) -> dict[str, Tensor]:
    fill = torch.zeros(x.allowed.shape).masked_fill(~x.allowed, -1e15)
    masked = x.scores.half() + fill.half()  # -inf
    return {"weights": masked.softmax(-1), "scores": x.scores.half(), "masked_scores": masked, "mask": fill}


def amp_fill_overflow_fixed(x: Batch) -> dict[str, Tensor]:
    fill = torch.zeros(x.allowed.shape).masked_fill(~x.allowed, torch.finfo(torch.float16).min)
    masked = x.scores.half() + fill.half()
    weights = masked.softmax(-1).masked_fill(~x.allowed.any(-1, keepdim=True), 0)
    return {"weights": weights, "scores": x.scores.half(), "masked_scores": masked, "mask": fill}


HALF_PRECISION_REPORTS = (
    make_report(
        ("pytorch/pytorch#41508", to_say("A band and padding leave nothing")),
        to_say(
            "Bucketed attention with a key_padding_mask: rows of padding have no key, their NaN reaches the shared "
            "weights through the gradients of the whole batch."
        ),
        ("empty-row", band_padding_empty_rows_broken, band_padding_empty_rows_fixed, two_token_band_mask),
        symptoms=NAN_SYMPTOMS,
    ),
    make_report(
        ("pytorch/pytorch#160064", to_say("A head that is masked as a whole")),
        to_say("All is NaN with need_weights=True, and finite with False."),
        ("empty-row", fully_blocked_head_broken, fully_blocked_head_fixed, fully_blocked_head_mask),
        batch=UNPADDED_BATCH | {"samples": (1, 1)},
        symptoms=(*NAN_SYMPTOMS, to_say("it works until somebody looks")),
    ),
    make_report(
        ("NVIDIA/apex#1105", to_say("-1e10 in mixed precision")),
        to_say("masked_fill with -1e10 stops with an error in half precision."),
        ("fill-overflow", apex_half_fill_overflow_broken, lowest_fill_fixed),
        symptoms=HALF_PRECISION_SYMPTOMS,
    ),
    make_report(
        ("facebookresearch/fairseq#3575", to_say("-1e8 in mixed precision")),
        to_say("The encoder's attn_mask was turned into -1e8, which float16 does not hold."),
        ("fill-overflow", fairseq_half_fill_broken, fairseq_half_fill_fixed, causal_only_mask),
        batch=UNPADDED_BATCH,
        symptoms=HALF_PRECISION_SYMPTOMS,
    ),
    make_report(
        ("huggingface/lerobot#710", to_say("The lowest bfloat16 in float16")),
        to_say("The fill -2.38e38 fits bfloat16 and float32, and not float16, which autocast had chosen."),
        ("fill-overflow", lerobot_half_fill_broken, lowest_fill_fixed),
        symptoms=HALF_PRECISION_SYMPTOMS,
    ),
    make_report(
        ("NVIDIA/apex#93", to_say("-1e15 becomes -inf, and the gradients NaN")),
        to_say(
            "Cast to half precision after the fill nothing stops it: the number is minus infinity, and rows of nothing "
            "else are NaN."
        ),
        ("fill-overflow", amp_fill_overflow_broken, amp_fill_overflow_fixed),
        batch={"side": "left"},
        symptoms=NAN_SYMPTOMS,
    ),
)
