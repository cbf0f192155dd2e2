"""The texts of the mask gallery: title, symptoms, explanation and source of every entry."""

from __future__ import annotations

from dataclasses import dataclass

from attenscope.language import say, to_say


@dataclass(frozen=True)
class EntryText:
    """The texts of one entry, in English; `said` returns them in the current language."""

    title: str
    symptoms: tuple[str, ...]
    """What a person notices first; searched beside the rest."""
    how: str
    met: str
    """Where it was seen, and whose notes say so."""
    fix: str = ""
    """A line to copy, where the catalogue's own does not fit."""

    def translate(self) -> EntryText:
        """Return the same in the current language."""
        return EntryText(say(self.title), tuple(map(say, self.symptoms)), say(self.how), say(self.met), self.fix)


NAN_LOSS = to_say("the loss is NaN")
BATCH_DEPENDENCE = to_say("the translation changes with its batch or the padding")
COPIES_NEXT_TOKEN = to_say("the model copies the next token")
LOSS_TOO_GOOD = to_say("the training loss is too good to be true")
POOR_TRANSLATION = to_say("the translation is poor though training went well")
WRONG_ROW_SUMS = to_say("rows do not sum to 1")
CACHE_CHANGES_OUTPUT = to_say("with a cache it writes something else")
FAILS_WHEN_OBSERVED = to_say("it works until somebody looks")
SILENT_QUALITY_LOSS = to_say("nothing is reported, the quality is merely low")

# The faults of the catalogue.


CATALOGUE_TEXTS: dict[str, EntryText] = {
    "inverted": EntryText(
        to_say("The mask is upside down"),
        (POOR_TRANSLATION, COPIES_NEXT_TOKEN, to_say("attention sits on padding"), to_say("the last row is uniform")),
        to_say(
            "A mask in which True keeps was handed to code in which True blocks. All weight lies on padding and on the "
            "future, none on what may be seen."
        ),
        to_say(
            "nn.MultiheadAttention blocks where True, F.scaled_dot_product_attention keeps where True: "
            "documentation of torch.nn.MultiheadAttention and F.scaled_dot_product_attention (torch 2.13)."
        ),
    ),
    "inverted-2": EntryText(
        to_say("The padding mask is upside down"),
        (
            POOR_TRANSLATION,
            BATCH_DEPENDENCE,
            to_say("attention sits on padding"),
            to_say("sentences without padding become NaN or zero"),
        ),
        to_say(
            "A key_padding_mask, where True means padding, was handed to an interface in which True means: may be seen."
        ),
        to_say(
            "The same two conventions: "
            "documentation of torch.nn.MultiheadAttention and F.scaled_dot_product_attention (torch 2.13)."
        ),
    ),
    "future-visible": EntryText(
        to_say("The causal mask was forgotten"),
        (COPIES_NEXT_TOKEN, LOSS_TOO_GOOD, to_say("it writes the same token again and again when it translates")),
        to_say(
            "The target mask was made of padding alone, trg != 0. In training every position reads its own answer, the "
            "next token; when translating there is none to read."
        ),
        to_say("The notes behind the preset shared_bpe: a decoder mask built from padding, without its causal part."),
    ),
    "diagonal-blocked": EntryText(
        to_say("No token sees itself"),
        (NAN_LOSS, to_say("the first token is NaN"), POOR_TRANSLATION),
        to_say(
            "torch.triu with offset 0 takes the diagonal too. Nobody sees their own position, and the first row has "
            "nothing left to see."
        ),
        to_say("triu(0) in place of triu(1), in several published implementations."),
    ),
    "causal-on-cross": EntryText(
        to_say("A causal mask on cross-attention"),
        (POOR_TRANSLATION, to_say("the end of the source is ignored"), to_say("early words are translated wrongly")),
        to_say(
            "One flag switched the causal mask on for both attentions of the decoder. The first target token then sees "
            "only the first source token."
        ),
        to_say("A flag meant for self-attention and used for cross-attention as well."),
    ),
    "padding-visible": EntryText(
        to_say("Padding can be seen"),
        (BATCH_DEPENDENCE, to_say("a bright stripe at the end of the sentence"), SILENT_QUALITY_LOSS),
        to_say(
            "memory_key_padding_mask was left out, so cross-attention spends weight on padding, and how much depends "
            "on the longest sentence of the batch."
        ),
        to_say(
            "nn.Transformer takes six masks and this one has no default made from the others: "
            "documentation of torch.nn.Transformer."
        ),
    ),
    "padding-swapped": EntryText(
        to_say("Source and target padding are exchanged"),
        (BATCH_DEPENDENCE, to_say("a stripe at the wrong place"), to_say("an error only for some batches")),
        to_say(
            "The columns are blocked where the other sentence ends. When both happen to be as long as each other, "
            "nothing shows."
        ),
        to_say("The source mask and the target mask swapped between encode and forward, silent when S = T."),
    ),
    "soft-mask": EntryText(
        to_say("The mask only tints"),
        (BATCH_DEPENDENCE, LOSS_TOO_GOOD, COPIES_NEXT_TOKEN, to_say("the mask seems to do nothing")),
        to_say(
            "Zeros and ones were added to the scores. That makes allowed cells a little likelier, by a factor of e, "
            "and blocks nothing."
        ),
        to_say(
            "Hugging Face models under eager attention add a boolean four-axis mask as zeros and ones "
            "(BERT and T5 of transformers 5.23)."
        ),
    ),
    "weak-fill": EntryText(
        to_say("The fill is too weak"),
        (to_say("a leak smaller than can be seen"), BATCH_DEPENDENCE, SILENT_QUALITY_LOSS),
        to_say(
            "Blocked scores became -50 in place of minus infinity. With large scores that is not low enough, and a "
            "little weight leaks through."
        ),
        to_say("Finite fills such as -100 or -1e4, chosen to be safe in half precision."),
    ),
    "fill-overflow": EntryText(
        to_say("The fill does not fit the number format"),
        (NAN_LOSS, to_say("NaN only in half precision"), to_say("it trains in float32 and not in float16")),
        to_say(
            "-1e9 is beyond float16, whose lowest number is -65504. Cast after the fill, it becomes minus infinity, "
            "and a row of nothing else is NaN."
        ),
        to_say("The notes behind the preset shared_bpe fill with -1e10, in float16 as well."),
    ),
    "double-fill": EntryText(
        to_say("Two fills on top of each other"),
        (to_say("the future shows with left padding only"), BATCH_DEPENDENCE, COPIES_NEXT_TOKEN),
        to_say(
            "Padding was filled with -1e9, then a causal mask of -1e9 was added. In a row whose keys are all blocked, "
            "those blocked once win over those blocked twice: the first row reads the future."
        ),
        to_say("A left-padded row came out as .25, 0, .25, .25, .25."),
    ),
    "empty-row": EntryText(
        to_say("A query without any key: NaN"),
        (NAN_LOSS, to_say("NaN with left padding")),
        to_say(
            "Left padding and a causal mask leave the first queries nothing. A softmax over nothing but minus infinity "
            "is 0/0."
        ),
        to_say("Batched generation pads at the left, and the causal mask meets the padding."),
    ),
    "empty-row-2": EntryText(
        to_say("A sample without any key: uniform"),
        (SILENT_QUALITY_LOSS, to_say("flat rows in the picture"), BATCH_DEPENDENCE),
        to_say(
            "One source sentence of the batch is empty, and the fill is finite: all keys are equally bad, so each "
            "query reads the mean of the padding."
        ),
        to_say("-1e9 in place of minus infinity hides the NaN and keeps the fault (keras, issue 21149)."),
    ),
    "wrong-axis": EntryText(
        to_say("(N, S) read as (L, S)"),
        (BATCH_DEPENDENCE, to_say("the same mask for every sentence"), to_say("it fails only for some batch sizes")),
        to_say(
            "A padding mask of shape (batch, keys) was used where (queries, keys) is expected. When batch and length "
            "are equal it broadcasts, and sentence i's padding masks query i of everyone."
        ),
        to_say("attn_mask is (L, S), key_padding_mask is (N, S): documentation of torch.nn.MultiheadAttention."),
    ),
    "wrong-axis-2": EntryText(
        to_say("Rows blocked in place of columns"),
        (to_say("dark rows in place of dark columns"), BATCH_DEPENDENCE),
        to_say(
            "The mask got its new axis at the wrong end: queries that are padding see nothing, and everybody sees the "
            "padding."
        ),
        to_say("mask[:, None, :, None] in place of mask[:, None, None, :]."),
    ),
    "head-order": EntryText(
        to_say("Heads use a neighbour's padding"),
        (BATCH_DEPENDENCE, to_say("some heads look odd")),
        to_say(
            "A mask for (batch * heads) was repeated batch after batch, but is read head after head within a sample."
        ),
        to_say("repeat in place of repeat_interleave on (N*H, L, S): documentation of torch.nn.MultiheadAttention."),
    ),
    "softmax-axis": EntryText(
        to_say("The softmax ran over the queries"),
        (WRONG_ROW_SUMS, to_say("columns sum to 1"), POOR_TRANSLATION),
        to_say("softmax(dim=2) is right on three axes and wrong on four: with a head axis it runs over the queries."),
        to_say("softmax(dim=2) kept while a head axis was added."),
    ),
    "transposed": EntryText(
        to_say("Keys are drawn as queries"),
        (WRONG_ROW_SUMS, to_say("the triangle points up"), to_say("columns sum to 1")),
        to_say("The attention is right and its picture is not: the two last axes were exchanged on the way."),
        to_say("Plots of attention in which rows and columns have no names."),
    ),
    "dropout-on": EntryText(
        to_say("Weights kept after dropout"),
        (WRONG_ROW_SUMS, to_say("holes in the picture"), to_say("the picture changes at every run")),
        to_say(
            "In training mode dropout zeroes some weights and scales the others up. What was stored is what the values "
            "were multiplied by, not what the softmax gave."
        ),
        to_say("The notes behind the preset torch_like return weights after dropout: rows summed to 1.11 and 0.73."),
    ),
    "applied-late": EntryText(
        to_say("The mask after the softmax"),
        (WRONG_ROW_SUMS, SILENT_QUALITY_LOSS, to_say("rows with blocked keys sum to less than 1")),
        to_say(
            "The weights were multiplied by the mask after the softmax, and not shared out again: what blocked keys "
            "had taken is lost, and early rows are nearly empty."
        ),
        to_say("attn = softmax(scores) * mask, in several hand-written attentions."),
    ),
    "mask-ignored": EntryText(
        to_say("The mask never arrived"),
        (COPIES_NEXT_TOKEN, LOSS_TOO_GOOD, BATCH_DEPENDENCE, to_say("the mask seems to do nothing")),
        to_say("A mask was given and never used: the weights are those of the bare scores."),
        to_say("is_causal of nn.MultiheadAttention is only a hint: documentation of torch.nn.MultiheadAttention."),
    ),
    "top-left-causal": EntryText(
        to_say("The triangle starts at the wrong corner"),
        (CACHE_CHANGES_OUTPUT, to_say("the newest token sees only the oldest")),
        to_say(
            "With a cache there are fewer queries than keys, and the newest query is the last. Aligned at the top "
            "left, the triangle lets it see only the oldest keys."
        ),
        to_say(
            "is_causal of F.scaled_dot_product_attention is aligned top left, FlashAttention bottom right since 2.1: "
            "their documentations."
        ),
    ),
    "window-off-by-one": EntryText(
        to_say("The window is one too wide"),
        (SILENT_QUALITY_LOSS, to_say("two libraries disagree by one key")),
        to_say(
            "One interface counts both ends of a window, another does not. The band is one key wider than it was meant."
        ),
        to_say("FlashAttention's windows include both ends: its documentation."),
    ),
    "window-missing": EntryText(
        to_say("The sliding window is missing"),
        (SILENT_QUALITY_LOSS, CACHE_CHANGES_OUTPUT, to_say("memory grows with the length")),
        to_say(
            "The model is trained with a window of a few keys, and one path of the code attends to everything before "
            "the query."
        ),
        to_say("Cached decoding, or another kernel, that ignores sliding_window."),
    ),
    "wrong-layer-pattern": EntryText(
        to_say("Local and global layers are exchanged"),
        (SILENT_QUALITY_LOSS, CACHE_CHANGES_OUTPUT, to_say("long texts are understood worse than short ones")),
        to_say(
            "Every other layer is meant to attend within a window. Counted from 1 in one place and from 0 in another, "
            "the windows sit in the layers that should see everything, and the reverse."
        ),
        to_say("Models with alternating layers, as Gemma 2: its layer_types in transformers."),
    ),
    "wrong-layer-pattern-2": EntryText(
        to_say("The global tokens of a sparse pattern are lost"),
        (SILENT_QUALITY_LOSS, to_say("the first token says nothing of the sentence")),
        to_say(
            "A window of a few keys is meant to be joined by a global token that sees everything and that everyone "
            "sees. Without it nothing crosses the sentence in one layer."
        ),
        to_say("global_attention_mask left out: documentation of Longformer in transformers."),
        "mask = window | first_key | first_query  # the window and its global tokens",
    ),
    "bias-wrong": EntryText(
        to_say("The distance bias has the wrong sign"),
        (SILENT_QUALITY_LOSS, POOR_TRANSLATION, to_say("far tokens are preferred to near ones")),
        to_say(
            "ALiBi lowers the score of a key in proportion to its distance. With the sign turned around the farthest "
            "key wins."
        ),
        to_say(
            "Slopes multiplied by j - i in one code and by i - j in another (Press et al. 2022, equation in section 3)."
        ),
        "bias = -slopes[:, None, None] * (i - j)  # a penalty that grows with the distance",
    ),
    "bias-wrong-2": EntryText(
        to_say("The position bias never arrives"),
        (SILENT_QUALITY_LOSS, to_say("word order does not matter")),
        to_say("The mask is applied and the bias beside it is not: the model cannot tell near from far."),
        to_say("A fused kernel called with is_causal=True in the place of the mask that carried the bias."),
    ),
    "scores-mismatch": EntryText(
        to_say("The scores are scaled twice"),
        (SILENT_QUALITY_LOSS, to_say("attention is nearly uniform")),
        to_say(
            "Queries that are divided by the root of the width already are divided again in the call: all differences "
            "of the scores shrink, and every key gets nearly the same weight."
        ),
        to_say("F.scaled_dot_product_attention called on scaled queries, without scale=1."),
        "out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)  # q is scaled already",
    ),
    "mask-shifted": EntryText(
        to_say("A boundary beside where it belongs"),
        (SILENT_QUALITY_LOSS, BATCH_DEPENDENCE, to_say("the first pad is seen")),
        to_say("The lengths count a token more than there is, BOS or EOS, so that one pad counts as real."),
        to_say("Lengths taken before or after special tokens are added."),
    ),
    "sample-order": EntryText(
        to_say("The mask of another sentence"),
        (BATCH_DEPENDENCE, POOR_TRANSLATION, to_say("it fails only with batches")),
        to_say("The sentences were put into another order, by length or for beams, and the padding mask was not."),
        to_say("pack_padded_sequence habits, and beam search that reorders the cache alone."),
    ),
    "stale-cache": EntryText(
        to_say("Empty slots of a cache are seen"),
        (CACHE_CHANGES_OUTPUT, POOR_TRANSLATION, to_say("old text shows up in new answers")),
        to_say(
            "A static cache has room for tokens to come. Their slots hold zeros, or an earlier conversation, and the "
            "mask leaves them open."
        ),
        to_say("Static caches of transformers (issue 30414)."),
    ),
    "document-leak": EntryText(
        to_say("Packed documents see each other"),
        (SILENT_QUALITY_LOSS, LOSS_TOO_GOOD, to_say("text from another document appears")),
        to_say(
            "Several texts share one row, and positions start again at each. The mask did not: the second text attends "
            "to the first."
        ),
        to_say("Packing for training with positions reset and one causal mask over the whole row."),
    ),
    "hole-inside": EntryText(
        to_say("A real word is taken for padding"),
        (to_say("one word is never looked at"), POOR_TRANSLATION),
        to_say(
            "The padding mask was made by comparing ids, and a real token has the id of padding, often because the end "
            "of sentence doubles as padding."
        ),
        to_say("pad_token = eos_token, a common setting for models that have no padding token."),
    ),
    "leak": EntryText(
        to_say("One cell is open"),
        (SILENT_QUALITY_LOSS, to_say("a leak smaller than can be seen")),
        to_say("No known pattern: a single cell that should be blocked has weight. The diagnosis says where."),
        to_say("Hand-edited masks."),
    ),
    "over-blocked": EntryText(
        to_say("A causal mask on an encoder"),
        (POOR_TRANSLATION, to_say("the start of a sentence never sees its end")),
        to_say(
            "An encoder may read the whole sentence; here each token sees only what came before. It trains, and worse."
        ),
        to_say("A decoder layer reused as an encoder layer."),
    ),
}

# All entries: the faults of the catalogue, then what was met in the field in another form.


ENTRY_TEXTS: dict[str, EntryText] = CATALOGUE_TEXTS | {
    "additive-read-as-keep": EntryText(
        to_say("An additive mask compared with zero"),
        (NAN_LOSS, COPIES_NEXT_TOKEN, to_say("the last row is NaN")),
        to_say(
            "In an additive mask 0 keeps. Code of another convention blocks where the mask is 0: exactly what may be "
            "seen. The last row of a causal mask is all 0, hence all NaN."
        ),
        to_say("masked_fill(mask == False, ...) given the output of generate_square_subsequent_mask."),
        "scores = scores + mask  # an additive mask is added, not compared",
    ),
    "docstring": EntryText(
        to_say("The docstring says the opposite"),
        (POOR_TRANSLATION, COPIES_NEXT_TOKEN),
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
        (NAN_LOSS, to_say("NaN after a few layers"), to_say("one NaN sentence in the batch")),
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
        (WRONG_ROW_SUMS, to_say("part of the attention is missing")),
        to_say(
            "A learned logit stands in the denominator of the softmax and belongs to no key, so a head can attend to "
            "nothing. What the rows lack is the sink's share."
        ),
        to_say("gpt-oss and softmax1; the row sums vary from row to row, and none is above 1."),
    ),
    "batch-axis": EntryText(
        to_say("Sentences of the batch attend to each other"),
        (BATCH_DEPENDENCE, SILENT_QUALITY_LOSS, to_say("works alone but not in a batch")),
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
        (BATCH_DEPENDENCE, to_say("left padding changes the answer"), to_say("works alone but not in a batch")),
        to_say(
            "The mask is right, and yet a left-padded sentence comes out otherwise: its first word has the position of "
            "the column, not 0. Only absolute positions feel it."
        ),
        to_say("Batched generation of models with learned positions when position_ids are left out."),
    ),
    "return-in-loop": EntryText(
        to_say("Six layers, and one runs"),
        (POOR_TRANSLATION, to_say("deeper models are no better"), to_say("training is suspiciously fast")),
        to_say(
            "return stands inside the loop over the layers. With a window of two keys, six layers should reach six "
            "tokens back; the picture shows what each output depends on."
        ),
        to_say("A published implementation: return indented one step too far."),
        "return states  # after the loop",
    ),
    "is-decoder": EntryText(
        to_say("A causal model that is not"),
        (COPIES_NEXT_TOKEN, LOSS_TOO_GOOD, CACHE_CHANGES_OUTPUT),
        to_say(
            "The class is named for causal language modelling; its mask is causal only with a flag that is off by "
            "default. Changing a later token moves earlier outputs."
        ),
        to_say("RoFormerForCausalLM of transformers with is_decoder=False, its default; found by changing a token."),
        "config.is_decoder = True",
    ),
    "observer": EntryText(
        to_say("Looking changes the result"),
        (FAILS_WHEN_OBSERVED, NAN_LOSS, to_say("NaN only with hooks or need_weights=True")),
        to_say(
            "For a row without any key nn.MultiheadAttention gives finite numbers with need_weights=False while "
            "gradients are on, and NaN with True. Asking for the weights breaks the model."
        ),
        to_say("nn.MultiheadAttention of torch 2.13, measured here."),
        "attn_mask = attn_mask & ~attn_mask.all(-1, keepdim=True)  # True blocks: leave no row without a key",
    ),
}
