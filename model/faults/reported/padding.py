"""Reports of padding: seen, of another sample, or one token off."""

from __future__ import annotations

import torch
from torch import Tensor

from ...language.say import to_say
from ..attention import masked_softmax
from ..batch import Batch
from ..recipe import LEFT_PADDED, causal_and_padding, padding_only
from .report import PADDED, report
from .symptoms import BATCH

CROSS = {"cross": True, "sizes": (5, 7)}


def story_broken(x: Batch) -> Tensor:
    return x.scores.softmax(-1)  # attention(query, encoder_a, encoder_b): no padding mask among them


def story_fixed(x: Batch) -> Tensor:
    return x.scores.masked_fill(~x.keep, -torch.inf).softmax(-1)


def left_padded_decoder_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal)  # enough for padding at the right


def left_padded_decoder_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal & x.keep)


def memory(scores: Tensor, lengths: Tensor | None) -> Tensor:
    """Attention to a memory of such lengths."""
    if lengths is None:
        return scores.softmax(-1)
    keep = torch.arange(scores.shape[-1]) < lengths[:, None]
    return masked_softmax(scores, keep[:, None, None, :])


def addons_broken(x: Batch) -> Tensor:
    memory_sequence_length = x.key_keep.sum(-1)  # noqa: F841 stored, and never used
    return memory(x.scores, None)


def addons_fixed(x: Batch) -> Tensor:
    return memory(x.scores, x.key_keep.sum(-1))


def per_head(x: Batch) -> Tensor:
    """The scores as (N*H, L, S), batch-major."""
    return x.scores.flatten(0, 1)


def lighthouse_broken(x: Batch) -> Tensor:
    mask = x.keep[:, 0].repeat(x.scores.shape[1], 1, 1)  # M0, M1, M0, M1
    return masked_softmax(per_head(x), mask).view_as(x.scores)


def lighthouse_fixed(x: Batch) -> Tensor:
    mask = x.keep[:, 0].repeat_interleave(x.scores.shape[1], 0)  # M0, M0, M1, M1
    return masked_softmax(per_head(x), mask).view_as(x.scores)


def clip4clip_broken(x: Batch) -> Tensor:
    grid = x.keep[:, 0] & x.keep.new_ones(x.queries, 1)
    return masked_softmax(per_head(x), grid.repeat(x.scores.shape[1], 1, 1)).view_as(x.scores)


def clip4clip_fixed(x: Batch) -> Tensor:
    grid = x.keep[:, 0] & x.keep.new_ones(x.queries, 1)
    return masked_softmax(per_head(x), grid.repeat_interleave(x.scores.shape[1], dim=0)).view_as(x.scores)


def head_major(x: Batch, mask: Tensor) -> Tensor:
    """Attention over scores laid out head by head: sample 0 head 0, sample 1 head 0, ..."""
    scores = x.scores.transpose(0, 1)
    return masked_softmax(scores.flatten(0, 1), mask).view_as(scores).transpose(0, 1)


def keras_tutorial_broken(x: Batch) -> Tensor:
    return head_major(x, x.keep[:, 0].repeat_interleave(x.scores.shape[1], 0))


def keras_tutorial_fixed(x: Batch) -> Tensor:
    return head_major(x, x.keep[:, 0].repeat(x.scores.shape[1], 1, 1))


EOS, WORD = 2, 5


def onnx_broken(x: Batch) -> Tensor:
    ids = torch.where(x.key_keep, WORD, EOS)
    ids[:, 1] = EOS  # an end of sentence inside the prompt; padding has the same id
    return masked_softmax(x.scores, (ids != EOS)[:, None, None, :])


def onnx_fixed(x: Batch) -> Tensor:
    ids = torch.where(x.key_keep, WORD, EOS)
    ids[:, 1] = EOS
    last = (ids != EOS).int().flip(-1).argmax(-1)  # from the end: how much is padding
    return masked_softmax(x.scores, (torch.arange(x.keys) < x.keys - last[:, None])[:, None, None, :])


def qwen_broken(x: Batch) -> Tensor:
    real = torch.arange(x.keys) < x.key_keep.sum(-1, keepdim=True) - 1  # EOS is the padding id
    return masked_softmax(x.scores, real[:, None, None, :])


def qwen_fixed(x: Batch) -> Tensor:
    real = torch.arange(x.keys) < x.key_keep.sum(-1, keepdim=True)
    return masked_softmax(x.scores, real[:, None, None, :])


REPORTS = (
    report(
        ("facebookresearch/fairseq#318", to_say("Stories that read the padding of their prompt")),
        to_say("The attention between encoder and decoder of the story model had no key_padding_mask."),
        ("padding-visible", story_broken, story_fixed),
        **PADDED,
        batch=CROSS,
        symptoms=BATCH,
    ),
    report(
        ("facebookresearch/fairseq#537", to_say("A decoder that is padded at the left")),
        to_say(
            "The decoder's self-attention took the causal mask alone. It hides padding at the right, and none at the "
            "left."
        ),
        ("padding-visible", left_padded_decoder_broken, left_padded_decoder_fixed, causal_and_padding),
        needs=("weights", "key_keep", "meant"),
        batch=LEFT_PADDED | {"sizes": (6, 6)},
        symptoms=BATCH,
    ),
    report(
        ("tensorflow/addons#133", to_say("Lengths that are taken and not used")),
        to_say(
            "Scores were not masked even when memory_sequence_length was passed, and the tests expected the wrong mean."
        ),
        ("padding-visible", addons_broken, addons_fixed),
        **PADDED,
        batch=CROSS,
        symptoms=BATCH,
    ),
    report(
        ("line/lighthouse#77", to_say("repeat tiles, repeat_interleave does not")),
        to_say(
            "A three-axis mask for nn.MultiheadAttention was made by repeat in five models: heads used another "
            "sample's padding."
        ),
        ("head-order", lighthouse_broken, lighthouse_fixed),
        **PADDED,
        symptoms=BATCH,
    ),
    report(
        ("ArrowLuo/CLIP4Clip#22", to_say("Heads with the mask of another video")),
        to_say("The mask of text and video was repeated batch after batch for the heads."),
        ("head-order", clip4clip_broken, clip4clip_fixed),
        **PADDED,
        symptoms=BATCH,
    ),
    report(
        ("lsdefine/attention-is-all-you-need-keras#36", to_say("Heads first, masks sample by sample")),
        to_say(
            "The heads were put before the samples, and the mask was repeated as if they came after: here "
            "repeat_interleave is the wrong one."
        ),
        ("head-order", keras_tutorial_broken, keras_tutorial_fixed),
        **PADDED,
        symptoms=BATCH,
    ),
    report(
        ("microsoft/onnxruntime-genai#1694", to_say("An end of sentence inside the prompt")),
        to_say("For models whose padding id is that of EOS, every EOS of the input was taken for padding."),
        ("hole-inside", onnx_broken, onnx_fixed, padding_only, ("weights", "meant")),
        symptoms=(to_say("one word is never looked at"),),
    ),
    report(
        ("QwenLM/Qwen#1080", to_say("EOS is padding, so EOS is masked")),
        to_say(
            "pad_token = eos_token, and a mask made of ids: the end of each sentence is masked with the padding after "
            "it, and the model does not learn when to stop."
        ),
        ("mask-shifted", qwen_broken, qwen_fixed),
        **PADDED,
        batch=CROSS,
        symptoms=(to_say("it never stops"),),
    ),
)
