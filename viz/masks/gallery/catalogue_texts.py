"""The catalogue of faults in words: what each is called, how it shows, how it comes about, where it was met."""

from __future__ import annotations

from .entry_text import BAD, BATCH, CACHE, COPIES, GOOD_LOSS, NAN, QUIET, SUMS, TORCH, EntryText

CATALOGUE: dict[str, EntryText] = {
    "inverted": EntryText(
        "The mask is upside down",
        (BAD, COPIES, "attention sits on padding", "the last row is uniform"),
        "A mask in which True keeps was handed to code in which True blocks. All weight lies on padding and on the "
        "future, none on what may be seen.",
        f"nn.MultiheadAttention blocks where True, F.scaled_dot_product_attention keeps where True: {TORCH}.",
    ),
    "inverted-2": EntryText(
        "The padding mask is upside down",
        (BAD, BATCH, "attention sits on padding", "sentences without padding become NaN or zero"),
        "A key_padding_mask, where True means padding, was handed to an interface in which True means: may be seen.",
        f"The same two conventions: {TORCH}.",
    ),
    "future-visible": EntryText(
        "The causal mask was forgotten",
        (COPIES, GOOD_LOSS, "it writes the same token again and again when it translates"),
        "The target mask was made of padding alone, trg != 0. In training every position reads its own answer, the "
        "next token; when translating there is none to read.",
        "The notes behind the preset shared_bpe: a decoder mask built from padding, without its causal part.",
    ),
    "diagonal-blocked": EntryText(
        "No token sees itself",
        (NAN, "the first token is NaN", BAD),
        "torch.triu with offset 0 takes the diagonal too. Nobody sees their own position, and the first row has "
        "nothing left to see.",
        "triu(0) in place of triu(1), in several published implementations.",
    ),
    "causal-on-cross": EntryText(
        "A causal mask on cross-attention",
        (BAD, "the end of the source is ignored", "early words are translated wrongly"),
        "One flag switched the causal mask on for both attentions of the decoder. The first target token then sees "
        "only the first source token.",
        "A flag meant for self-attention and used for cross-attention as well.",
    ),
    "padding-visible": EntryText(
        "Padding can be seen",
        (BATCH, "a bright stripe at the end of the sentence", QUIET),
        "memory_key_padding_mask was left out, so cross-attention spends weight on padding, and how much depends on "
        "the longest sentence of the batch.",
        "nn.Transformer takes six masks and this one has no default made from the others: "
        "documentation of torch.nn.Transformer.",
    ),
    "padding-swapped": EntryText(
        "Source and target padding are exchanged",
        (BATCH, "a stripe at the wrong place", "an error only for some batches"),
        "The columns are blocked where the other sentence ends. When both happen to be as long as each other, nothing "
        "shows.",
        "The source mask and the target mask swapped between encode and forward, silent when S = T.",
    ),
    "soft-mask": EntryText(
        "The mask only tints",
        (BATCH, GOOD_LOSS, COPIES, "the mask seems to do nothing"),
        "Zeros and ones were added to the scores. That makes allowed cells a little likelier, by a factor of e, and "
        "blocks nothing.",
        "Hugging Face models under eager attention add a boolean four-axis mask as zeros and ones "
        "(BERT and T5 of transformers 5.23).",
    ),
    "weak-fill": EntryText(
        "The fill is too weak",
        ("a leak smaller than can be seen", BATCH, QUIET),
        "Blocked scores became -100 in place of minus infinity. With large scores that is not low enough, and a little "
        "weight leaks through.",
        "Finite fills such as -100 or -1e4, chosen to be safe in half precision.",
    ),
    "fill-overflow": EntryText(
        "The fill does not fit the number format",
        (NAN, "NaN only in half precision", "it trains in float32 and not in float16"),
        "-1e9 is beyond float16, whose lowest number is -65504. Cast after the fill, it becomes minus infinity, and a "
        "row of nothing else is NaN.",
        "The notes behind the preset shared_bpe fill with -1e10, in float16 as well.",
    ),
    "double-fill": EntryText(
        "Two fills on top of each other",
        ("the future shows with left padding only", BATCH, COPIES),
        "Padding was filled with -1e9, then a causal mask of -1e9 was added. In a row whose keys are all blocked, "
        "those blocked once win over those blocked twice: the first row reads the future.",
        "A left-padded row came out as .25, 0, .25, .25, .25.",
    ),
    "empty-row": EntryText(
        "A query without any key: NaN",
        (NAN, "NaN with left padding"),
        "Left padding and a causal mask leave the first queries nothing. A softmax over nothing but minus infinity is "
        "0/0.",
        "Batched generation pads at the left, and the causal mask meets the padding.",
    ),
    "empty-row-2": EntryText(
        "A sample without any key: uniform",
        (QUIET, "flat rows in the picture", BATCH),
        "One source sentence of the batch is empty, and the fill is finite: all keys are equally bad, so each query "
        "reads the mean of the padding.",
        "-1e9 in place of minus infinity hides the NaN and keeps the fault (keras, issue 21149).",
    ),
    "wrong-axis": EntryText(
        "(N, S) read as (L, S)",
        (BATCH, "the same mask for every sentence", "it fails only for some batch sizes"),
        "A padding mask of shape (batch, keys) was used where (queries, keys) is expected. When batch and length are "
        "equal it broadcasts, and sentence i's padding masks query i of everyone.",
        "attn_mask is (L, S), key_padding_mask is (N, S): documentation of torch.nn.MultiheadAttention.",
    ),
    "wrong-axis-2": EntryText(
        "Rows blocked in place of columns",
        ("dark rows in place of dark columns", BATCH),
        "The mask got its new axis at the wrong end: queries that are padding see nothing, and everybody sees the "
        "padding.",
        "mask[:, None, :, None] in place of mask[:, None, None, :].",
    ),
    "head-order": EntryText(
        "Heads use a neighbour's padding",
        (BATCH, "some heads look odd"),
        "A mask for (batch * heads) was repeated batch after batch, but is read head after head within a sample.",
        "repeat in place of repeat_interleave on (N*H, L, S): documentation of torch.nn.MultiheadAttention.",
    ),
    "softmax-axis": EntryText(
        "The softmax ran over the queries",
        (SUMS, "columns sum to 1", BAD),
        "softmax(dim=2) is right on three axes and wrong on four: with a head axis it runs over the queries.",
        "softmax(dim=2) kept while a head axis was added.",
    ),
    "transposed": EntryText(
        "Keys are drawn as queries",
        (SUMS, "the triangle points up", "columns sum to 1"),
        "The attention is right and its picture is not: the two last axes were exchanged on the way.",
        "Plots of attention in which rows and columns have no names.",
    ),
    "dropout-on": EntryText(
        "Weights kept after dropout",
        (SUMS, "holes in the picture", "the picture changes at every run"),
        "In training mode dropout zeroes some weights and scales the others up. What was stored is what the values "
        "were multiplied by, not what the softmax gave.",
        "The notes behind the preset torch_like return weights after dropout: rows summed to 1.11 and 0.73.",
    ),
    "applied-late": EntryText(
        "The mask after the softmax",
        (SUMS, QUIET, "rows with blocked keys sum to less than 1"),
        "The weights were multiplied by the mask after the softmax, and not shared out again: what blocked keys had "
        "taken is lost, and early rows are nearly empty.",
        "attn = softmax(scores) * mask, in several hand-written attentions.",
    ),
    "mask-ignored": EntryText(
        "The mask never arrived",
        (COPIES, GOOD_LOSS, BATCH, "the mask seems to do nothing"),
        "A mask was given and never used: the weights are those of the bare scores.",
        "is_causal of nn.MultiheadAttention is only a hint: documentation of torch.nn.MultiheadAttention.",
    ),
    "top-left-causal": EntryText(
        "The triangle starts at the wrong corner",
        (CACHE, "the newest token sees only the oldest"),
        "With a cache there are fewer queries than keys, and the newest query is the last. Aligned at the top left, "
        "the triangle lets it see only the oldest keys.",
        "is_causal of F.scaled_dot_product_attention is aligned top left, FlashAttention bottom right since 2.1: "
        "their documentations.",
    ),
    "window-off-by-one": EntryText(
        "The window is one too wide",
        (QUIET, "two libraries disagree by one key"),
        "One interface counts both ends of a window, another does not. The band is one key wider than it was meant.",
        "FlashAttention's windows include both ends: its documentation.",
    ),
    "window-missing": EntryText(
        "The sliding window is missing",
        (QUIET, CACHE, "memory grows with the length"),
        "The model is trained with a window of a few keys, and one path of the code attends to everything before the "
        "query.",
        "Cached decoding, or another kernel, that ignores sliding_window.",
    ),
    "wrong-layer-pattern": EntryText(
        "Local and global layers are exchanged",
        (QUIET, CACHE, "long texts are understood worse than short ones"),
        "Every other layer is meant to attend within a window. Counted from 1 in one place and from 0 in another, the "
        "windows sit in the layers that should see everything, and the reverse.",
        "Models with alternating layers, as Gemma 2: its layer_types in transformers.",
    ),
    "wrong-layer-pattern-2": EntryText(
        "The global tokens of a sparse pattern are lost",
        (QUIET, "the first token says nothing of the sentence"),
        "A window of a few keys is meant to be joined by a global token that sees everything and that everyone sees. "
        "Without it nothing crosses the sentence in one layer.",
        "global_attention_mask left out: documentation of Longformer in transformers.",
        "mask = window | first_key | first_query  # the window and its global tokens",
    ),
    "bias-wrong": EntryText(
        "The distance bias has the wrong sign",
        (QUIET, BAD, "far tokens are preferred to near ones"),
        "ALiBi lowers the score of a key in proportion to its distance. With the sign turned around the farthest key "
        "wins.",
        "Slopes multiplied by j - i in one code and by i - j in another (Press et al. 2022, equation in section 3).",
        "bias = -slopes[:, None, None] * (i - j)  # a penalty that grows with the distance",
    ),
    "bias-wrong-2": EntryText(
        "The position bias never arrives",
        (QUIET, "word order does not matter"),
        "The mask is applied and the bias beside it is not: the model cannot tell near from far.",
        "A fused kernel called with is_causal=True in the place of the mask that carried the bias.",
    ),
    "mask-shifted": EntryText(
        "A boundary beside where it belongs",
        (QUIET, BATCH, "the first pad is seen"),
        "The lengths count a token more than there is, BOS or EOS, so that one pad counts as real.",
        "Lengths taken before or after special tokens are added.",
    ),
    "sample-order": EntryText(
        "The mask of another sentence",
        (BATCH, BAD, "it fails only with batches"),
        "The sentences were put into another order, by length or for beams, and the padding mask was not.",
        "pack_padded_sequence habits, and beam search that reorders the cache alone.",
    ),
    "stale-cache": EntryText(
        "Empty slots of a cache are seen",
        (CACHE, BAD, "old text shows up in new answers"),
        "A static cache has room for tokens to come. Their slots hold zeros, or an earlier conversation, and the mask "
        "leaves them open.",
        "Static caches of transformers (issue 30414).",
    ),
    "document-leak": EntryText(
        "Packed documents see each other",
        (QUIET, GOOD_LOSS, "text from another document appears"),
        "Several texts share one row, and positions start again at each. The mask did not: the second text attends to "
        "the first.",
        "Packing for training with positions reset and one causal mask over the whole row.",
    ),
    "hole-inside": EntryText(
        "A real word is taken for padding",
        ("one word is never looked at", BAD),
        "The padding mask was made by comparing ids, and a real token has the id of padding, often because the end "
        "of sentence doubles as padding.",
        "pad_token = eos_token, a common setting for models that have no padding token.",
    ),
    "leak": EntryText(
        "One cell is open",
        (QUIET, "a leak smaller than can be seen"),
        "No known pattern: a single cell that should be blocked has weight. The diagnosis says where.",
        "Hand-edited masks.",
    ),
    "over-blocked": EntryText(
        "A causal mask on an encoder",
        (BAD, "the start of a sentence never sees its end"),
        "An encoder may read the whole sentence; here each token sees only what came before. It trains, and worse.",
        "A decoder layer reused as an encoder layer.",
    ),
}
