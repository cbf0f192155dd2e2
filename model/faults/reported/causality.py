"""Reports of causal masks that were lost on the way, or put where they do not belong."""

from __future__ import annotations

import torch
from torch import Tensor

from ...language.say import to_say
from ..attention import masked_softmax
from ..batch import Batch
from ..recipe import UNPADDED, causal_only, documents, padding_only
from .report import report, triangle
from .symptoms import COPIES, OTHER_TEXT

CACHE = {"cross": True, "padded": False, "sizes": (3, 7)}
CROSS = {"cross": True, "sizes": (5, 7)}


def xformers_attention(scores: Tensor, att_mask: Tensor | None, causal: Tensor) -> Tensor:
    """Apply the causal mask together with ``att_mask``, and only then."""
    if att_mask is not None:
        scores = scores.masked_fill(~(att_mask & causal), -torch.inf)
    return scores.softmax(-1)


def xformers_broken(x: Batch) -> Tensor:
    return xformers_attention(x.scores, None, x.causal)


def xformers_fixed(x: Batch) -> Tensor:
    return xformers_attention(x.scores, torch.ones(x.queries, x.keys, dtype=torch.bool), x.causal)


def keras_attention(scores: Tensor, causal: Tensor, fused: bool) -> Tensor:
    """Drop the mask where the kernel is causal by itself."""
    mask = None if fused else causal
    return scores.softmax(-1) if mask is None else masked_softmax(scores, mask)


def keras_broken(x: Batch) -> Tensor:
    return keras_attention(x.scores, x.causal, fused=True)  # then return_attention_scores takes the plain path


def keras_fixed(x: Batch) -> Tensor:
    return keras_attention(x.scores, x.causal, fused=False)


def doge_broken(x: Batch) -> Tensor:
    mask = None  # no padding: the mask is skipped, as is_causal will do
    dynamic = torch.zeros(x.keys)
    return (x.scores + (dynamic if mask is None else mask + dynamic)).softmax(-1)


def doge_fixed(x: Batch) -> Tensor:
    mask = torch.zeros(x.queries, x.keys).masked_fill(~x.causal, -torch.inf)
    dynamic = torch.zeros(x.keys)
    return (x.scores + mask + dynamic).softmax(-1)


def roformer_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep)  # the extended padding mask, also of a decoder


def roformer_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep & x.causal)


def block_diagonal_broken(x: Batch) -> Tensor:
    document = torch.arange(x.keys) >= x.keys // 2
    return masked_softmax(x.scores, document[:, None] == document)  # what .to(device) returned


def block_diagonal_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, documents(x))


def fairseq2_broken(x: Batch) -> Tensor:
    mask, is_causal = torch.zeros(x.queries + 2, x.keys + 2), True
    mask, is_causal = mask[: x.queries, : x.keys], False  # the flag is lost with the slice
    return masked_softmax(x.scores, x.causal if is_causal else mask == 0)


def fairseq2_fixed(x: Batch) -> Tensor:
    mask, is_causal = torch.zeros(x.queries + 2, x.keys + 2), True
    mask = mask[: x.queries, : x.keys]
    return masked_softmax(x.scores, x.causal if is_causal else mask == 0)


def speculative_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, triangle(x))  # no mask was passed, and is_causal starts at the top left


def speculative_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, triangle(x, x.keys - x.queries))


def varlen_broken(x: Batch) -> Tensor:
    query, key = torch.arange(x.queries)[:, None], torch.arange(x.keys)
    return masked_softmax(x.scores, key <= query)


def varlen_fixed(x: Batch) -> Tensor:
    query, key = torch.arange(x.queries)[:, None], torch.arange(x.keys)
    return masked_softmax(x.scores, key <= query + x.keys - x.queries)


def prefill_broken(x: Batch) -> Tensor:
    ends = [min(x.keys, position + 1) for position in range(x.queries)]
    return masked_softmax(x.scores, torch.arange(x.keys) < torch.tensor(ends)[:, None])


def prefill_fixed(x: Batch) -> Tensor:
    ends = [min(x.keys, position + 1 + x.keys - x.queries) for position in range(x.queries)]
    return masked_softmax(x.scores, torch.arange(x.keys) < torch.tensor(ends)[:, None])


def book_broken(x: Batch, is_causal: bool = True) -> Tensor:
    return masked_softmax(x.scores, x.keep & triangle(x) if is_causal else x.keep)  # meant for self-attention


def book_fixed(x: Batch, is_causal: bool = False) -> Tensor:
    return masked_softmax(x.scores, x.keep & triangle(x) if is_causal else x.keep)


def window_of(x: Batch, left: int, right: int) -> Tensor:
    """The window of FlashAttention: inclusive ends, -1 for none, aligned at the bottom right."""
    offset = torch.arange(x.keys) - torch.arange(x.queries)[:, None] - (x.keys - x.queries)
    return ((offset >= -left) | (left < 0)) & ((offset <= right) | (right < 0))


def engine_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep & window_of(x, -1, 0))  # set for self-attention, passed to both


def engine_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep & window_of(x, -1, -1))


REPORTS = (
    report(
        ("facebookresearch/xformers#103", to_say("No causal mask unless another is passed")),
        to_say("The causal mask was applied together with att_mask; without one it was skipped."),
        ("future-visible", xformers_broken, xformers_fixed, causal_only),
        batch=UNPADDED,
        symptoms=COPIES,
    ),
    report(
        ("keras-team/keras#23038", to_say("use_causal_mask is dropped where scores are returned")),
        to_say(
            "The mask was left to the fused kernel, and dropout, return_attention_scores or other shapes took the "
            "plain path, which had none."
        ),
        ("future-visible", keras_broken, keras_fixed, causal_only),
        batch=UNPADDED,
        symptoms=COPIES,
    ),
    report(
        ("huggingface/transformers#48770", to_say("A model with a mask of its own loses the causal one")),
        to_say(
            "Without padding the causal mask is skipped, as sdpa can make it; Doge passes a dynamic mask instead, "
            "which is not causal."
        ),
        ("future-visible", doge_broken, doge_fixed, causal_only),
        batch=UNPADDED,
        symptoms=(*COPIES, to_say("only under sdpa")),
    ),
    report(
        ("huggingface/transformers#48745", to_say("Four decoders with an encoder's mask")),
        to_say(
            "RoFormer, BigBird, RemBERT and MegatronBERT for causal language modelling saw the tokens after each "
            "position; the loss on random tokens fell to zero."
        ),
        ("future-visible", roformer_broken, roformer_fixed),
        symptoms=(*COPIES, to_say("loss goes to zero")),
    ),
    report(
        ("facebookresearch/xformers#1185", to_say("Moving a mask to the device changes it")),
        to_say(
            "BlockDiagonalCausalMask.to() returned a BlockDiagonalMask: still one block a document, no longer causal."
        ),
        ("future-visible", block_diagonal_broken, block_diagonal_fixed, documents),
        batch=UNPADDED | {"sizes": (8, 8)},
        symptoms=COPIES,
    ),
    report(
        ("facebookresearch/fairseq2#59", to_say("A slice loses the flag")),
        to_say("Slicing the self-attention mask dropped the flag that says it is causal."),
        ("future-visible", fairseq2_broken, fairseq2_fixed, causal_only),
        batch=UNPADDED,
        symptoms=COPIES,
    ),
    report(
        ("huggingface/transformers#30311", to_say("Speculative decoding without its mask")),
        to_say("Several new tokens beside a cache, and no mask passed: is_causal of sdpa is aligned at the top left."),
        ("top-left-causal", speculative_broken, speculative_fixed, causal_only),
        batch=CACHE,
        symptoms=OTHER_TEXT,
    ),
    report(
        ("Dao-AILab/flash-attention#282", to_say("Query i sees key i, whatever is cached")),
        to_say(
            "With more keys than queries the causal argument counted both from 0. Since 2.1 it is aligned at the end."
        ),
        ("top-left-causal", varlen_broken, varlen_fixed, causal_only),
        batch=CACHE,
        symptoms=OTHER_TEXT,
    ),
    report(
        ("gittensor-ai-lab/sparkinfer#3", to_say("A prefill kernel that forgets the cached keys")),
        to_say("The last key of a query was its own number in the chunk: the cached context at the end was cut off."),
        ("top-left-causal", prefill_broken, prefill_fixed, causal_only),
        batch=CACHE,
        symptoms=OTHER_TEXT,
    ),
    report(
        ("onlybooks/llm#4", to_say("is_causal at the wrong attention")),
        to_say("The flag of the decoder's self-attention was passed to its cross-attention, and not to itself."),
        ("causal-on-cross", book_broken, book_fixed, padding_only),
        batch=CROSS,
        symptoms=(to_say("the end of the source is ignored"),),
    ),
    report(
        ("NVIDIA/TransformerEngine#629", to_say("A window that makes cross-attention causal")),
        to_say("A causal decoder layer set window_size = (-1, 0) and gave it to both of its attentions."),
        ("causal-on-cross", engine_broken, engine_fixed, padding_only),
        batch=CROSS,
        symptoms=(to_say("the end of the source is ignored"),),
    ),
)
