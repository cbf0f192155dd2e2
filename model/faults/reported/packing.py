"""Reports of packed documents, caches, biases, positions and axes."""

from __future__ import annotations

import torch
from torch import Tensor

from ...language.say import to_say
from ..attention import masked_softmax
from ..batch import Batch
from ..field_pairs import at_positions
from ..gallery import left_padded, one_batch
from ..layer_pairs import age, alibi
from ..mask_pairs import filled_slots
from ..recipe import UNPADDED, causal_only, documents
from .report import report
from .symptoms import ALONE, CACHED, LEFT_PADDING, OLD_TEXT, PACKED

LONG = UNPADDED | {"sizes": (8, 8)}
CACHE = {"cross": True, "padded": False, "sizes": (3, 8)}


def contiguous_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal)  # positions begin anew, the mask does not


def by_document_fixed(x: Batch) -> Tensor:
    document = torch.arange(x.keys) >= x.keys // 2
    return masked_softmax(x.scores, x.causal & (document[:, None] == document))


def eos_broken(x: Batch) -> Tensor:
    attention_mask = torch.ones(x.keys, dtype=torch.bool)  # EOS between the samples, and ones everywhere
    return masked_softmax(x.scores, x.causal & attention_mask)


def position_ids_broken(x: Batch) -> Tensor:
    position_ids = None  # not passed on: no kernel can tell the documents apart
    return masked_softmax(x.scores, x.causal if position_ids is None else documents(x))


def position_ids_fixed(x: Batch) -> Tensor:
    position_ids = torch.arange(x.keys) % (x.keys - x.keys // 2)
    return masked_softmax(x.scores, x.causal if position_ids is None else documents(x))


def static_cache_broken(x: Batch) -> Tensor:
    empty = torch.arange(x.keys) >= x.keys - x.keys // 4
    return masked_softmax(x.scores, filled_slots(x) | empty)  # zeros of the cache have scores of their own


def static_cache_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, filled_slots(x))


def flex_alibi(x: Batch, sign: int) -> dict[str, Tensor]:
    """Weights with the bias of ``sign``, beside the bias that was meant."""
    slopes = 2.0 ** -torch.arange(1, x.scores.shape[1] + 1)[:, None, None]
    scores = (x.scores + sign * slopes * age(x)).masked_fill(~x.causal, -torch.inf)
    return {"weights": scores.softmax(-1), "scores": x.scores, "mask": alibi(x)}


def gym_broken(x: Batch) -> dict[str, Tensor]:
    return flex_alibi(x, 1)  # alibi_bias[h] * (q_idx - kv_idx)


def gym_fixed(x: Batch) -> dict[str, Tensor]:
    return flex_alibi(x, -1)  # alibi_bias[h] * (kv_idx - q_idx)


def lm_broken(states: Tensor, keep: Tensor) -> Tensor:
    return at_positions(states, keep, torch.arange(keep.shape[1]).expand(keep.shape))  # none were given


def lm_fixed(states: Tensor, keep: Tensor) -> Tensor:
    return at_positions(states, keep, (keep.long().cumsum(-1) - 1).clamp(min=0))


def shared_position_broken(states: Tensor, keep: Tensor) -> Tensor:
    cache_position = torch.arange(keep.shape[1])  # one tensor for all samples
    return at_positions(states, keep, cache_position.expand(keep.shape))


def shared_position_fixed(states: Tensor, keep: Tensor) -> Tensor:
    positions = keep.long().cumsum(-1) - 1
    return at_positions(states, keep, positions.masked_fill(~keep, 1))


def encoder(states: Tensor, keep: Tensor, batch_first: bool) -> Tensor:
    """One nn.TransformerEncoderLayer."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(states.shape[-1], 1, 16, dropout=0.0, batch_first=batch_first)
    return layer(states, src_key_padding_mask=~keep if batch_first else None)


def tabformer_broken(states: Tensor, keep: Tensor) -> Tensor:
    return encoder(states, keep, batch_first=False)  # states are (batch, tokens, width)


def tabformer_fixed(states: Tensor, keep: Tensor) -> Tensor:
    return encoder(states.transpose(0, 1), keep, batch_first=False).transpose(0, 1)


def leet_broken(states: Tensor, keep: Tensor) -> Tensor:
    return encoder(states, keep, batch_first=False)


def leet_fixed(states: Tensor, keep: Tensor) -> Tensor:
    return encoder(states, keep, batch_first=True)


_POSITIONS = {"subject": left_padded, "tests": ("padding-amount",)}
_AXES = {"subject": one_batch, "tests": ("batch-neighbour",)}


REPORTS = (
    report(
        ("huggingface/nanoVLM#204", to_say("Positions begin anew, attention does not")),
        to_say(
            "Packed samples got positions of their own; without a mask of documents the second still reads the first."
        ),
        ("document-leak", contiguous_broken, by_document_fixed, documents),
        batch=LONG,
        symptoms=PACKED,
    ),
    report(
        ("huggingface/trl#784", to_say("EOS is no wall")),
        to_say("Packing put EOS between samples and left the attention mask at ones."),
        ("document-leak", eos_broken, by_document_fixed, documents),
        batch=LONG,
        symptoms=PACKED,
    ),
    report(
        ("alex-hh/profam#495", to_say("Copies of a document are predicted perfectly")),
        to_say(
            "A row packed with copies of one random document: the first at chance, the others nearly all right, so "
            "they were read."
        ),
        ("document-leak", position_ids_broken, position_ids_fixed, documents),
        batch=LONG,
        symptoms=(*PACKED, to_say("the training loss is too good to be true")),
    ),
    report(
        ("huggingface/transformers#30414", to_say("Zeros of a static cache take part")),
        to_say(
            "Keys and values came back at the full length of the cache, and the zeros were not masked: gibberish at a "
            "larger max_new_tokens."
        ),
        ("stale-cache", static_cache_broken, static_cache_fixed, filled_slots),
        batch=CACHE,
        symptoms=OLD_TEXT,
    ),
    report(
        ("meta-pytorch/attention-gym#86", to_say("ALiBi with query minus key")),
        to_say("alibi_bias[h] * (q_idx - kv_idx) rewards distance; the example meant kv_idx - q_idx."),
        ("bias-wrong", gym_broken, gym_fixed, causal_only, ("weights", "scores", "mask", "meant")),
        batch=LONG,
        symptoms=(to_say("far tokens are preferred to near ones"),),
    ),
    report(
        ("ndif-team/nnsight#673", to_say("Left padding without position_ids")),
        to_say(
            "Prompts were padded at the left and no position_ids given: GPT-2 mispredicted every prompt but the "
            "longest."
        ),
        ("positions-wrong", lm_broken, lm_fixed),
        **_POSITIONS,
        symptoms=LEFT_PADDING,
    ),
    report(
        ("unslothai/unsloth#3699", to_say("One cache_position for all samples")),
        to_say(
            "cache_position, the same for every sample, was used as position_ids: left-padded samples came out as "
            "garbage."
        ),
        ("positions-wrong", shared_position_broken, shared_position_fixed),
        **_POSITIONS,
        symptoms=(*LEFT_PADDING, CACHED),
    ),
    report(
        ("IBM/TabFormer#14", to_say("The batch in the wrong axis")),
        to_say(
            "nn.TransformerEncoder was given the batch first and expects it second: rows of the table attended to rows "
            "of other samples."
        ),
        ("batch-axis", tabformer_broken, tabformer_fixed),
        **_AXES,
        symptoms=(ALONE,),
    ),
    report(
        ("Exorust/TorchLeet#5", to_say("batch_first is False by default")),
        to_say("An exercise left it out: high training loss and test error."),
        ("batch-axis", leet_broken, leet_fixed),
        **_AXES,
        symptoms=(ALONE,),
    ),
)
