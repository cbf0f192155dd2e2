"""The whole gallery in words: the catalogue of faults, then what was met in the field in another guise."""

from __future__ import annotations

from model.language.say import to_say

from .catalogue_texts import CATALOGUE
from .entry_text import BAD, BATCH, CACHE, COPIES, GOOD_LOSS, NAN, OBSERVER, QUIET, SUMS, EntryText

TEXTS: dict[str, EntryText] = CATALOGUE | {
    "additive-read-as-keep": EntryText(
        to_say("An additive mask compared with zero"),
        (NAN, COPIES, to_say("the last row is NaN")),
        to_say(
            "In an additive mask 0 keeps. Code of another convention blocks where the mask is 0: exactly what may be "
            "seen. The last row of a causal mask is all 0, hence all NaN."
        ),
        to_say("masked_fill(mask == False, ...) given the output of generate_square_subsequent_mask."),
        "scores = scores + mask  # an additive mask is added, not compared",
    ),
    "docstring": EntryText(
        to_say("The docstring says the opposite"),
        (BAD, COPIES),
        to_say(
            "The function blocks where its mask is True; its docstring says True may attend. Whoever believes the "
            "docstring sees the future."
        ),
        to_say("A published implementation: 23% of the mass lay on the future."),
        "mask = ~allowed  # True blocks here, whatever the docstring says",
    ),
    "half-precision": EntryText(
        to_say("Half precision refuses the fill"),
        (to_say("value cannot be converted without overflow"), to_say("an error only in half precision")),
        to_say(
            "masked_fill on float16 scores with -1e10: torch stops with an error. Cast after the fill, it would have "
            "gone on with minus infinity."
        ),
        to_say("The notes behind the preset shared_bpe fill with -1e10."),
    ),
    "left-pads": EntryText(
        to_say("Two pads turn a sentence into NaN"),
        (NAN, to_say("NaN after a few layers"), to_say("one NaN sentence in the batch")),
        to_say(
            "In the first layer only the rows of the two pads are NaN. Their values are NaN from then on, and 0 * NaN "
            "is NaN: masked or not, they reach every row. Shown is the third layer."
        ),
        to_say("Left padding with minus infinity in models of several layers."),
    ),
    "pad-query": EntryText(
        to_say("Rows of padding (not a fault)"),
        (to_say("noisy rows at the end"), to_say("padding attends to words")),
        to_say(
            "A padding query attends like any other, and nobody reads its row. It is right to leave it; a picture "
            "should dim it."
        ),
        to_say("Every model that masks keys only, which is nearly all of them."),
    ),
    "extra-mass": EntryText(
        to_say("Rows that sum to less than 1 (not a fault)"),
        (SUMS, to_say("part of the attention is missing")),
        to_say(
            "A learned logit stands in the denominator of the softmax and belongs to no key, so a head can attend to "
            "nothing. What the rows lack is the sink's share."
        ),
        to_say("gpt-oss and softmax1; the row sums vary from row to row, and none is above 1."),
    ),
    "batch-axis": EntryText(
        to_say("Sentences of the batch attend to each other"),
        (BATCH, QUIET, to_say("works alone but not in a batch")),
        to_say(
            "nn.MultiheadAttention takes (tokens, batch, width) unless it is told batch_first=True. Given (batch, "
            "tokens, width) it attends over the batch: no token sees another token of its own sentence."
        ),
        to_say(
            "batch_first is False by default: "
            "documentation of torch.nn.MultiheadAttention and F.scaled_dot_product_attention (torch 2.13)."
        ),
    ),
    "positions-wrong": EntryText(
        to_say("Positions count the padding"),
        (BATCH, to_say("left padding changes the answer"), to_say("works alone but not in a batch")),
        to_say(
            "The mask is right, and yet a left-padded sentence comes out otherwise: its first word has the position of "
            "the column, not 0. Only absolute positions feel it."
        ),
        to_say("Batched generation of models with learned positions when position_ids are left out."),
    ),
    "return-in-loop": EntryText(
        to_say("Six layers, and one runs"),
        (BAD, to_say("deeper models are no better"), to_say("training is suspiciously fast")),
        to_say(
            "return stands inside the loop over the layers. With a window of two keys, six layers should reach six "
            "tokens back; the picture shows what each output depends on."
        ),
        to_say("A published implementation: return indented one step too far."),
        "return states  # after the loop",
    ),
    "is-decoder": EntryText(
        to_say("A causal model that is not"),
        (COPIES, GOOD_LOSS, CACHE),
        to_say(
            "The class is named for causal language modelling; its mask is causal only with a flag that is off by "
            "default. Changing a later token moves earlier outputs."
        ),
        to_say("RoFormerForCausalLM of transformers with is_decoder=False, its default; found by changing a token."),
        "config.is_decoder = True",
    ),
    "observer": EntryText(
        to_say("Looking changes the result"),
        (OBSERVER, NAN, to_say("NaN only with hooks or need_weights=True")),
        to_say(
            "For a row without any key nn.MultiheadAttention gives finite numbers with need_weights=False while "
            "gradients are on, and NaN with True. Asking for the weights breaks the model."
        ),
        to_say("nn.MultiheadAttention of torch 2.13, measured here."),
        "attn_mask = attn_mask & ~attn_mask.all(-1, keepdim=True)  # True blocks: leave no row without a key",
    ),
}
