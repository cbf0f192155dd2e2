"""Reported bugs of padding, packing, caches, biases, positions and axes, and the list of all reports."""

from __future__ import annotations

import torch
from torch import Tensor

from ..language import to_say
from .attention_bug_pairs import Batch, filled_slots_mask, masked_softmax
from .exhibits import make_encoder_subject, make_left_padded_subject
from .fault_generators import (
    LEFT_PADDED_BATCH,
    UNPADDED_BATCH,
    causal_and_padding_mask,
    causal_only_mask,
    document_mask,
    padding_only_mask,
)
from .model_bug_pairs import attend_with_absolute_positions, causal_alibi_bias, key_distances
from .reported_causal_bugs import (
    ALONE_SYMPTOM,
    BATCH_SYMPTOMS,
    CAUSALITY_REPORTS,
    IMAGE_REPORTS,
    KV_CACHE_SYMPTOM,
    LEFT_PADDING_SYMPTOMS,
    OLD_TEXT_SYMPTOMS,
    PACKING_SYMPTOMS,
    PADDING_REPORT_ARGUMENTS,
    WINDOW_REPORTS,
    Report,
    make_report,
)
from .reported_mask_value_bugs import CONVENTION_REPORTS, HALF_PRECISION_REPORTS

# Reports of padding: seen, of another sample, or one token off.


CROSS_BATCH = {"cross": True, "sizes": (5, 7)}


def story_model_padding_visible_broken(x: Batch) -> Tensor:
    return x.scores.softmax(-1)  # attention(query, encoder_a, encoder_b): no padding mask among them


def story_model_padding_visible_fixed(x: Batch) -> Tensor:
    return x.scores.masked_fill(~x.keep, -torch.inf).softmax(-1)


def left_padded_decoder_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal)  # enough for padding at the right


def left_padded_decoder_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal & x.keep)


def attend_to_memory(scores: Tensor, lengths: Tensor | None) -> Tensor:
    """Attention to a memory of such lengths."""
    if lengths is None:
        return scores.softmax(-1)
    keep = torch.arange(scores.shape[-1]) < lengths[:, None]
    return masked_softmax(scores, keep[:, None, None, :])


def addons_memory_length_broken(x: Batch) -> Tensor:
    memory_sequence_length = x.key_keep.sum(-1)  # noqa: F841 stored, and never used
    return attend_to_memory(x.scores, None)


def addons_memory_length_fixed(x: Batch) -> Tensor:
    return attend_to_memory(x.scores, x.key_keep.sum(-1))


def flatten_heads(x: Batch) -> Tensor:
    """The scores as (N*H, L, S), batch-major."""
    return x.scores.flatten(0, 1)


def lighthouse_head_order_broken(x: Batch) -> Tensor:
    mask = x.keep[:, 0].repeat(x.scores.shape[1], 1, 1)  # M0, M1, M0, M1
    return masked_softmax(flatten_heads(x), mask).view_as(x.scores)


def lighthouse_head_order_fixed(x: Batch) -> Tensor:
    mask = x.keep[:, 0].repeat_interleave(x.scores.shape[1], 0)  # M0, M0, M1, M1
    return masked_softmax(flatten_heads(x), mask).view_as(x.scores)


def clip4clip_head_order_broken(x: Batch) -> Tensor:
    grid = x.keep[:, 0] & x.keep.new_ones(x.queries, 1)
    return masked_softmax(flatten_heads(x), grid.repeat(x.scores.shape[1], 1, 1)).view_as(x.scores)


def clip4clip_head_order_fixed(x: Batch) -> Tensor:
    grid = x.keep[:, 0] & x.keep.new_ones(x.queries, 1)
    return masked_softmax(flatten_heads(x), grid.repeat_interleave(x.scores.shape[1], dim=0)).view_as(x.scores)


def attend_head_major(x: Batch, mask: Tensor) -> Tensor:
    """Attention over scores laid out head by head: sample 0 head 0, sample 1 head 0, ..."""
    scores = x.scores.transpose(0, 1)
    return masked_softmax(scores.flatten(0, 1), mask).view_as(scores).transpose(0, 1)


def keras_tutorial_head_order_broken(x: Batch) -> Tensor:
    return attend_head_major(x, x.keep[:, 0].repeat_interleave(x.scores.shape[1], 0))


def keras_tutorial_head_order_fixed(x: Batch) -> Tensor:
    return attend_head_major(x, x.keep[:, 0].repeat(x.scores.shape[1], 1, 1))


EXAMPLE_EOS_ID, EXAMPLE_WORD_ID = 2, 5


def onnx_eos_as_padding_broken(x: Batch) -> Tensor:
    ids = torch.where(x.key_keep, EXAMPLE_WORD_ID, EXAMPLE_EOS_ID)
    ids[:, 1] = EXAMPLE_EOS_ID  # an end of sentence inside the prompt; padding has the same id
    return masked_softmax(x.scores, (ids != EXAMPLE_EOS_ID)[:, None, None, :])


def onnx_eos_as_padding_fixed(x: Batch) -> Tensor:
    ids = torch.where(x.key_keep, EXAMPLE_WORD_ID, EXAMPLE_EOS_ID)
    ids[:, 1] = EXAMPLE_EOS_ID
    last = (ids != EXAMPLE_EOS_ID).int().flip(-1).argmax(-1)  # from the end: how much is padding
    return masked_softmax(x.scores, (torch.arange(x.keys) < x.keys - last[:, None])[:, None, None, :])


def qwen_last_token_blocked_broken(x: Batch) -> Tensor:
    real = torch.arange(x.keys) < x.key_keep.sum(-1, keepdim=True) - 1  # EOS is the padding id
    return masked_softmax(x.scores, real[:, None, None, :])


def qwen_last_token_blocked_fixed(x: Batch) -> Tensor:
    real = torch.arange(x.keys) < x.key_keep.sum(-1, keepdim=True)
    return masked_softmax(x.scores, real[:, None, None, :])


PADDING_REPORTS = (
    make_report(
        ("facebookresearch/fairseq#318", to_say("Stories that read the padding of their prompt")),
        to_say("The attention between encoder and decoder of the story model had no key_padding_mask."),
        ("padding-visible", story_model_padding_visible_broken, story_model_padding_visible_fixed),
        **PADDING_REPORT_ARGUMENTS,
        batch=CROSS_BATCH,
        symptoms=BATCH_SYMPTOMS,
    ),
    make_report(
        ("facebookresearch/fairseq#537", to_say("A decoder that is padded at the left")),
        to_say(
            "The decoder's self-attention took the causal mask alone. It hides padding at the right, and none at the "
            "left."
        ),
        ("padding-visible", left_padded_decoder_broken, left_padded_decoder_fixed, causal_and_padding_mask),
        needs=("weights", "key_keep", "meant"),
        batch=LEFT_PADDED_BATCH | {"sizes": (6, 6)},
        symptoms=BATCH_SYMPTOMS,
    ),
    make_report(
        ("tensorflow/addons#133", to_say("Lengths that are taken and not used")),
        to_say(
            "Scores were not masked even when memory_sequence_length was passed, and the tests expected the wrong mean."
        ),
        ("padding-visible", addons_memory_length_broken, addons_memory_length_fixed),
        **PADDING_REPORT_ARGUMENTS,
        batch=CROSS_BATCH,
        symptoms=BATCH_SYMPTOMS,
    ),
    make_report(
        ("line/lighthouse#77", to_say("repeat tiles, repeat_interleave does not")),
        to_say(
            "A three-axis mask for nn.MultiheadAttention was made by repeat in five models: heads used another "
            "sample's padding."
        ),
        ("head-order", lighthouse_head_order_broken, lighthouse_head_order_fixed),
        **PADDING_REPORT_ARGUMENTS,
        symptoms=BATCH_SYMPTOMS,
    ),
    make_report(
        ("ArrowLuo/CLIP4Clip#22", to_say("Heads with the mask of another video")),
        to_say("The mask of text and video was repeated batch after batch for the heads."),
        ("head-order", clip4clip_head_order_broken, clip4clip_head_order_fixed),
        **PADDING_REPORT_ARGUMENTS,
        symptoms=BATCH_SYMPTOMS,
    ),
    make_report(
        ("lsdefine/attention-is-all-you-need-keras#36", to_say("Heads first, masks sample by sample")),
        to_say(
            "The heads were put before the samples, and the mask was repeated as if they came after: here "
            "repeat_interleave is the wrong one."
        ),
        ("head-order", keras_tutorial_head_order_broken, keras_tutorial_head_order_fixed),
        **PADDING_REPORT_ARGUMENTS,
        symptoms=BATCH_SYMPTOMS,
    ),
    make_report(
        ("microsoft/onnxruntime-genai#1694", to_say("An end of sentence inside the prompt")),
        to_say("For models whose padding id is that of EOS, every EOS of the input was taken for padding."),
        ("hole-inside", onnx_eos_as_padding_broken, onnx_eos_as_padding_fixed, padding_only_mask, ("weights", "meant")),
        symptoms=(to_say("one word is never looked at"),),
    ),
    make_report(
        ("QwenLM/Qwen#1080", to_say("EOS is padding, so EOS is masked")),
        to_say(
            "pad_token = eos_token, and a mask made of ids: the end of each sentence is masked with the padding after "
            "it, and the model does not learn when to stop."
        ),
        ("mask-shifted", qwen_last_token_blocked_broken, qwen_last_token_blocked_fixed),
        **PADDING_REPORT_ARGUMENTS,
        batch=CROSS_BATCH,
        symptoms=(to_say("it never stops"),),
    ),
)

# Reports of packed documents, caches, biases, positions and axes.


LONG_BATCH = UNPADDED_BATCH | {"sizes": (8, 8)}
CACHED_BATCH = {"cross": True, "padded": False, "sizes": (3, 8)}


def packed_causal_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal)  # positions begin anew, the mask does not


def packed_documents_fixed(x: Batch) -> Tensor:
    document = torch.arange(x.keys) >= x.keys // 2
    return masked_softmax(x.scores, x.causal & (document[:, None] == document))


def eos_separator_leak_broken(x: Batch) -> Tensor:
    attention_mask = torch.ones(x.keys, dtype=torch.bool)  # EOS between the samples, and ones everywhere
    return masked_softmax(x.scores, x.causal & attention_mask)


def packed_position_ids_broken(x: Batch) -> Tensor:
    position_ids = None  # not passed on: no kernel can tell the documents apart
    return masked_softmax(x.scores, x.causal if position_ids is None else document_mask(x))


def packed_position_ids_fixed(x: Batch) -> Tensor:
    position_ids = torch.arange(x.keys) % (x.keys - x.keys // 2)
    return masked_softmax(x.scores, x.causal if position_ids is None else document_mask(x))


def static_cache_empty_slots_broken(x: Batch) -> Tensor:
    empty = torch.arange(x.keys) >= x.keys - x.keys // 4
    return masked_softmax(x.scores, filled_slots_mask(x) | empty)  # zeros of the cache have scores of their own


def static_cache_empty_slots_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, filled_slots_mask(x))


def attend_with_alibi(x: Batch, sign: int) -> dict[str, Tensor]:
    """Weights with the bias of ``sign``, beside the bias that was meant."""
    slopes = 2.0 ** -torch.arange(1, x.scores.shape[1] + 1)[:, None, None]
    scores = (x.scores + sign * slopes * key_distances(x)).masked_fill(~x.causal, -torch.inf)
    return {"weights": scores.softmax(-1), "scores": x.scores, "mask": causal_alibi_bias(x)}


def attention_gym_alibi_sign_broken(x: Batch) -> dict[str, Tensor]:
    return attend_with_alibi(x, 1)  # alibi_bias[h] * (q_idx - kv_idx)


def attention_gym_alibi_sign_fixed(x: Batch) -> dict[str, Tensor]:
    return attend_with_alibi(x, -1)  # alibi_bias[h] * (kv_idx - q_idx)


def nnsight_left_pad_positions_broken(states: Tensor, keep: Tensor) -> Tensor:
    return attend_with_absolute_positions(
        states, keep, torch.arange(keep.shape[1]).expand(keep.shape)
    )  # none were given


def nnsight_left_pad_positions_fixed(states: Tensor, keep: Tensor) -> Tensor:
    return attend_with_absolute_positions(states, keep, (keep.long().cumsum(-1) - 1).clamp(min=0))


def shared_cache_position_broken(states: Tensor, keep: Tensor) -> Tensor:
    cache_position = torch.arange(keep.shape[1])  # one tensor for all samples
    return attend_with_absolute_positions(states, keep, cache_position.expand(keep.shape))


def shared_cache_position_fixed(states: Tensor, keep: Tensor) -> Tensor:
    positions = keep.long().cumsum(-1) - 1
    return attend_with_absolute_positions(states, keep, positions.masked_fill(~keep, 1))


def run_encoder_layer(states: Tensor, keep: Tensor, batch_first: bool) -> Tensor:
    """One nn.TransformerEncoderLayer."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(states.shape[-1], 1, 16, dropout=0.0, batch_first=batch_first)
    return layer(states, src_key_padding_mask=~keep if batch_first else None)


def tabformer_batch_axis_broken(states: Tensor, keep: Tensor) -> Tensor:
    return run_encoder_layer(states, keep, batch_first=False)  # states are (batch, tokens, width)


def tabformer_batch_axis_fixed(states: Tensor, keep: Tensor) -> Tensor:
    return run_encoder_layer(states.transpose(0, 1), keep, batch_first=False).transpose(0, 1)


def torchleet_batch_axis_broken(states: Tensor, keep: Tensor) -> Tensor:
    return run_encoder_layer(states, keep, batch_first=False)


def torchleet_batch_axis_fixed(states: Tensor, keep: Tensor) -> Tensor:
    return run_encoder_layer(states, keep, batch_first=True)


_POSITIONS_ARGUMENTS = {"subject": make_left_padded_subject, "tests": ("padding-amount",)}
_BATCH_AXIS_ARGUMENTS = {"subject": make_encoder_subject, "tests": ("batch-neighbour",)}


PACKING_REPORTS = (
    make_report(
        ("huggingface/nanoVLM#204", to_say("Positions begin anew, attention does not")),
        to_say(
            "Packed samples got positions of their own; without a mask of documents the second still reads the first."
        ),
        ("document-leak", packed_causal_broken, packed_documents_fixed, document_mask),
        batch=LONG_BATCH,
        symptoms=PACKING_SYMPTOMS,
    ),
    make_report(
        ("huggingface/trl#784", to_say("EOS is no wall")),
        to_say("Packing put EOS between samples and left the attention mask at ones."),
        ("document-leak", eos_separator_leak_broken, packed_documents_fixed, document_mask),
        batch=LONG_BATCH,
        symptoms=PACKING_SYMPTOMS,
    ),
    make_report(
        ("alex-hh/profam#495", to_say("Copies of a document are predicted perfectly")),
        to_say(
            "A row packed with copies of one random document: the first at chance, the others nearly all right, so "
            "they were read."
        ),
        ("document-leak", packed_position_ids_broken, packed_position_ids_fixed, document_mask),
        batch=LONG_BATCH,
        symptoms=(*PACKING_SYMPTOMS, to_say("the training loss is too good to be true")),
    ),
    make_report(
        ("huggingface/transformers#30414", to_say("Zeros of a static cache take part")),
        to_say(
            "Keys and values came back at the full length of the cache, and the zeros were not masked: gibberish at a "
            "larger max_new_tokens."
        ),
        ("stale-cache", static_cache_empty_slots_broken, static_cache_empty_slots_fixed, filled_slots_mask),
        batch=CACHED_BATCH,
        symptoms=OLD_TEXT_SYMPTOMS,
    ),
    make_report(
        ("meta-pytorch/attention-gym#86", to_say("ALiBi with query minus key")),
        to_say("alibi_bias[h] * (q_idx - kv_idx) rewards distance; the example meant kv_idx - q_idx."),
        (
            "bias-wrong",
            attention_gym_alibi_sign_broken,
            attention_gym_alibi_sign_fixed,
            causal_only_mask,
            ("weights", "scores", "mask", "meant"),
        ),
        batch=LONG_BATCH,
        symptoms=(to_say("far tokens are preferred to near ones"),),
    ),
    make_report(
        ("ndif-team/nnsight#673", to_say("Left padding without position_ids")),
        to_say(
            "Prompts were padded at the left and no position_ids given: GPT-2 mispredicted every prompt but the "
            "longest."
        ),
        ("positions-wrong", nnsight_left_pad_positions_broken, nnsight_left_pad_positions_fixed),
        **_POSITIONS_ARGUMENTS,
        symptoms=LEFT_PADDING_SYMPTOMS,
    ),
    make_report(
        ("unslothai/unsloth#3699", to_say("One cache_position for all samples")),
        to_say(
            "cache_position, the same for every sample, was used as position_ids: left-padded samples came out as "
            "garbage."
        ),
        ("positions-wrong", shared_cache_position_broken, shared_cache_position_fixed),
        **_POSITIONS_ARGUMENTS,
        symptoms=(*LEFT_PADDING_SYMPTOMS, KV_CACHE_SYMPTOM),
    ),
    make_report(
        ("IBM/TabFormer#14", to_say("The batch in the wrong axis")),
        to_say(
            "nn.TransformerEncoder was given the batch first and expects it second: rows of the table attended to rows "
            "of other samples."
        ),
        ("batch-axis", tabformer_batch_axis_broken, tabformer_batch_axis_fixed),
        **_BATCH_AXIS_ARGUMENTS,
        symptoms=(ALONE_SYMPTOM,),
    ),
    make_report(
        ("Exorust/TorchLeet#5", to_say("batch_first is False by default")),
        to_say("An exercise left it out: high training loss and test error."),
        ("batch-axis", torchleet_batch_axis_broken, torchleet_batch_axis_fixed),
        **_BATCH_AXIS_ARGUMENTS,
        symptoms=(ALONE_SYMPTOM,),
    ),
)

# All reports, in the order in which the gallery shows them.


_ALL = (
    *CONVENTION_REPORTS,
    *CAUSALITY_REPORTS,
    *PADDING_REPORTS,
    *HALF_PRECISION_REPORTS,
    *WINDOW_REPORTS,
    *PACKING_REPORTS,
    *IMAGE_REPORTS,
)
REPORTS: dict[str, Report] = {report.name: report for report in _ALL}
"""By name."""
