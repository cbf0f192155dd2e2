"""The catalogue of faults in words: what each is called, how it shows, how it comes about, where it was met."""

from __future__ import annotations

from model.language.say import to_say

from .entry_text import BAD, BATCH, CACHE, COPIES, GOOD_LOSS, NAN, QUIET, SUMS, EntryText

CATALOGUE: dict[str, EntryText] = {
    "inverted": EntryText(
        to_say("The mask is upside down"),
        (BAD, COPIES, to_say("attention sits on padding"), to_say("the last row is uniform")),
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
        (BAD, BATCH, to_say("attention sits on padding"), to_say("sentences without padding become NaN or zero")),
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
        (COPIES, GOOD_LOSS, to_say("it writes the same token again and again when it translates")),
        to_say(
            "The target mask was made of padding alone, trg != 0. In training every position reads its own answer, the "
            "next token; when translating there is none to read."
        ),
        to_say("The notes behind the preset shared_bpe: a decoder mask built from padding, without its causal part."),
    ),
    "diagonal-blocked": EntryText(
        to_say("No token sees itself"),
        (NAN, to_say("the first token is NaN"), BAD),
        to_say(
            "torch.triu with offset 0 takes the diagonal too. Nobody sees their own position, and the first row has "
            "nothing left to see."
        ),
        to_say("triu(0) in place of triu(1), in several published implementations."),
    ),
    "causal-on-cross": EntryText(
        to_say("A causal mask on cross-attention"),
        (BAD, to_say("the end of the source is ignored"), to_say("early words are translated wrongly")),
        to_say(
            "One flag switched the causal mask on for both attentions of the decoder. The first target token then sees "
            "only the first source token."
        ),
        to_say("A flag meant for self-attention and used for cross-attention as well."),
    ),
    "padding-visible": EntryText(
        to_say("Padding can be seen"),
        (BATCH, to_say("a bright stripe at the end of the sentence"), QUIET),
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
        (BATCH, to_say("a stripe at the wrong place"), to_say("an error only for some batches")),
        to_say(
            "The columns are blocked where the other sentence ends. When both happen to be as long as each other, "
            "nothing shows."
        ),
        to_say("The source mask and the target mask swapped between encode and forward, silent when S = T."),
    ),
    "soft-mask": EntryText(
        to_say("The mask only tints"),
        (BATCH, GOOD_LOSS, COPIES, to_say("the mask seems to do nothing")),
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
        (to_say("a leak smaller than can be seen"), BATCH, QUIET),
        to_say(
            "Blocked scores became -100 in place of minus infinity. With large scores that is not low enough, and a "
            "little weight leaks through."
        ),
        to_say("Finite fills such as -100 or -1e4, chosen to be safe in half precision."),
    ),
    "fill-overflow": EntryText(
        to_say("The fill does not fit the number format"),
        (NAN, to_say("NaN only in half precision"), to_say("it trains in float32 and not in float16")),
        to_say(
            "-1e9 is beyond float16, whose lowest number is -65504. Cast after the fill, it becomes minus infinity, "
            "and a row of nothing else is NaN."
        ),
        to_say("The notes behind the preset shared_bpe fill with -1e10, in float16 as well."),
    ),
    "double-fill": EntryText(
        to_say("Two fills on top of each other"),
        (to_say("the future shows with left padding only"), BATCH, COPIES),
        to_say(
            "Padding was filled with -1e9, then a causal mask of -1e9 was added. In a row whose keys are all blocked, "
            "those blocked once win over those blocked twice: the first row reads the future."
        ),
        to_say("A left-padded row came out as .25, 0, .25, .25, .25."),
    ),
    "empty-row": EntryText(
        to_say("A query without any key: NaN"),
        (NAN, to_say("NaN with left padding")),
        to_say(
            "Left padding and a causal mask leave the first queries nothing. A softmax over nothing but minus infinity "
            "is 0/0."
        ),
        to_say("Batched generation pads at the left, and the causal mask meets the padding."),
    ),
    "empty-row-2": EntryText(
        to_say("A sample without any key: uniform"),
        (QUIET, to_say("flat rows in the picture"), BATCH),
        to_say(
            "One source sentence of the batch is empty, and the fill is finite: all keys are equally bad, so each "
            "query reads the mean of the padding."
        ),
        to_say("-1e9 in place of minus infinity hides the NaN and keeps the fault (keras, issue 21149)."),
    ),
    "wrong-axis": EntryText(
        to_say("(N, S) read as (L, S)"),
        (BATCH, to_say("the same mask for every sentence"), to_say("it fails only for some batch sizes")),
        to_say(
            "A padding mask of shape (batch, keys) was used where (queries, keys) is expected. When batch and length "
            "are equal it broadcasts, and sentence i's padding masks query i of everyone."
        ),
        to_say("attn_mask is (L, S), key_padding_mask is (N, S): documentation of torch.nn.MultiheadAttention."),
    ),
    "wrong-axis-2": EntryText(
        to_say("Rows blocked in place of columns"),
        (to_say("dark rows in place of dark columns"), BATCH),
        to_say(
            "The mask got its new axis at the wrong end: queries that are padding see nothing, and everybody sees the "
            "padding."
        ),
        to_say("mask[:, None, :, None] in place of mask[:, None, None, :]."),
    ),
    "head-order": EntryText(
        to_say("Heads use a neighbour's padding"),
        (BATCH, to_say("some heads look odd")),
        to_say(
            "A mask for (batch * heads) was repeated batch after batch, but is read head after head within a sample."
        ),
        to_say("repeat in place of repeat_interleave on (N*H, L, S): documentation of torch.nn.MultiheadAttention."),
    ),
    "softmax-axis": EntryText(
        to_say("The softmax ran over the queries"),
        (SUMS, to_say("columns sum to 1"), BAD),
        to_say("softmax(dim=2) is right on three axes and wrong on four: with a head axis it runs over the queries."),
        to_say("softmax(dim=2) kept while a head axis was added."),
    ),
    "transposed": EntryText(
        to_say("Keys are drawn as queries"),
        (SUMS, to_say("the triangle points up"), to_say("columns sum to 1")),
        to_say("The attention is right and its picture is not: the two last axes were exchanged on the way."),
        to_say("Plots of attention in which rows and columns have no names."),
    ),
    "dropout-on": EntryText(
        to_say("Weights kept after dropout"),
        (SUMS, to_say("holes in the picture"), to_say("the picture changes at every run")),
        to_say(
            "In training mode dropout zeroes some weights and scales the others up. What was stored is what the values "
            "were multiplied by, not what the softmax gave."
        ),
        to_say("The notes behind the preset torch_like return weights after dropout: rows summed to 1.11 and 0.73."),
    ),
    "applied-late": EntryText(
        to_say("The mask after the softmax"),
        (SUMS, QUIET, to_say("rows with blocked keys sum to less than 1")),
        to_say(
            "The weights were multiplied by the mask after the softmax, and not shared out again: what blocked keys "
            "had taken is lost, and early rows are nearly empty."
        ),
        to_say("attn = softmax(scores) * mask, in several hand-written attentions."),
    ),
    "mask-ignored": EntryText(
        to_say("The mask never arrived"),
        (COPIES, GOOD_LOSS, BATCH, to_say("the mask seems to do nothing")),
        to_say("A mask was given and never used: the weights are those of the bare scores."),
        to_say("is_causal of nn.MultiheadAttention is only a hint: documentation of torch.nn.MultiheadAttention."),
    ),
    "top-left-causal": EntryText(
        to_say("The triangle starts at the wrong corner"),
        (CACHE, to_say("the newest token sees only the oldest")),
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
        (QUIET, to_say("two libraries disagree by one key")),
        to_say(
            "One interface counts both ends of a window, another does not. The band is one key wider than it was meant."
        ),
        to_say("FlashAttention's windows include both ends: its documentation."),
    ),
    "window-missing": EntryText(
        to_say("The sliding window is missing"),
        (QUIET, CACHE, to_say("memory grows with the length")),
        to_say(
            "The model is trained with a window of a few keys, and one path of the code attends to everything before "
            "the query."
        ),
        to_say("Cached decoding, or another kernel, that ignores sliding_window."),
    ),
    "wrong-layer-pattern": EntryText(
        to_say("Local and global layers are exchanged"),
        (QUIET, CACHE, to_say("long texts are understood worse than short ones")),
        to_say(
            "Every other layer is meant to attend within a window. Counted from 1 in one place and from 0 in another, "
            "the windows sit in the layers that should see everything, and the reverse."
        ),
        to_say("Models with alternating layers, as Gemma 2: its layer_types in transformers."),
    ),
    "wrong-layer-pattern-2": EntryText(
        to_say("The global tokens of a sparse pattern are lost"),
        (QUIET, to_say("the first token says nothing of the sentence")),
        to_say(
            "A window of a few keys is meant to be joined by a global token that sees everything and that everyone "
            "sees. Without it nothing crosses the sentence in one layer."
        ),
        to_say("global_attention_mask left out: documentation of Longformer in transformers."),
        "mask = window | first_key | first_query  # the window and its global tokens",
    ),
    "bias-wrong": EntryText(
        to_say("The distance bias has the wrong sign"),
        (QUIET, BAD, to_say("far tokens are preferred to near ones")),
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
        (QUIET, to_say("word order does not matter")),
        to_say("The mask is applied and the bias beside it is not: the model cannot tell near from far."),
        to_say("A fused kernel called with is_causal=True in the place of the mask that carried the bias."),
    ),
    "mask-shifted": EntryText(
        to_say("A boundary beside where it belongs"),
        (QUIET, BATCH, to_say("the first pad is seen")),
        to_say("The lengths count a token more than there is, BOS or EOS, so that one pad counts as real."),
        to_say("Lengths taken before or after special tokens are added."),
    ),
    "sample-order": EntryText(
        to_say("The mask of another sentence"),
        (BATCH, BAD, to_say("it fails only with batches")),
        to_say("The sentences were put into another order, by length or for beams, and the padding mask was not."),
        to_say("pack_padded_sequence habits, and beam search that reorders the cache alone."),
    ),
    "stale-cache": EntryText(
        to_say("Empty slots of a cache are seen"),
        (CACHE, BAD, to_say("old text shows up in new answers")),
        to_say(
            "A static cache has room for tokens to come. Their slots hold zeros, or an earlier conversation, and the "
            "mask leaves them open."
        ),
        to_say("Static caches of transformers (issue 30414)."),
    ),
    "document-leak": EntryText(
        to_say("Packed documents see each other"),
        (QUIET, GOOD_LOSS, to_say("text from another document appears")),
        to_say(
            "Several texts share one row, and positions start again at each. The mask did not: the second text attends "
            "to the first."
        ),
        to_say("Packing for training with positions reset and one causal mask over the whole row."),
    ),
    "hole-inside": EntryText(
        to_say("A real word is taken for padding"),
        (to_say("one word is never looked at"), BAD),
        to_say(
            "The padding mask was made by comparing ids, and a real token has the id of padding, often because the end "
            "of sentence doubles as padding."
        ),
        to_say("pad_token = eos_token, a common setting for models that have no padding token."),
    ),
    "leak": EntryText(
        to_say("One cell is open"),
        (QUIET, to_say("a leak smaller than can be seen")),
        to_say("No known pattern: a single cell that should be blocked has weight. The diagnosis says where."),
        to_say("Hand-edited masks."),
    ),
    "over-blocked": EntryText(
        to_say("A causal mask on an encoder"),
        (BAD, to_say("the start of a sentence never sees its end")),
        to_say(
            "An encoder may read the whole sentence; here each token sees only what came before. It trains, and worse."
        ),
        to_say("A decoder layer reused as an encoder layer."),
    ),
}
