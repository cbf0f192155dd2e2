"""The gallery in words: what each fault is called, how it shows, how it comes about, where it was met."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    """What is said of one entry."""

    title: str
    symptoms: tuple[str, ...]
    """What a person notices first; searched beside the rest."""
    how: str
    met: str
    """Where it was seen, and whose notes say so."""
    fix: str = ""
    """A line to copy, where the catalogue's own does not fit."""


NAN = "the loss is NaN"
BATCH = "the translation changes with its batch or the padding"
COPIES = "the model copies the next token"
GOOD_LOSS = "the training loss is too good to be true"
BAD = "the translation is poor though training went well"
SUMS = "rows do not sum to 1"
CACHE = "with a cache it writes something else"
OBSERVER = "it works until somebody looks"
QUIET = "nothing is reported, the quality is merely low"

TORCH = "documentation of torch.nn.MultiheadAttention and F.scaled_dot_product_attention (torch 2.13)"

WORDS: dict[str, Words] = {
    "inverted": Words(
        "The mask is upside down",
        (BAD, COPIES, "attention sits on padding", "the last row is uniform"),
        "A mask in which True keeps was handed to code in which True blocks. All weight lies on padding and on the "
        "future, none on what may be seen.",
        f"nn.MultiheadAttention blocks where True, F.scaled_dot_product_attention keeps where True: {TORCH}.",
    ),
    "inverted-2": Words(
        "The padding mask is upside down",
        (BAD, BATCH, "attention sits on padding", "sentences without padding become NaN or zero"),
        "A key_padding_mask, where True means padding, was handed to an interface in which True means: may be seen.",
        f"The same two conventions: {TORCH}.",
    ),
    "future-visible": Words(
        "The causal mask was forgotten",
        (COPIES, GOOD_LOSS, "it writes the same token again and again when it translates"),
        "The target mask was made of padding alone, trg != 0. In training every position reads its own answer, the "
        "next token; when translating there is none to read.",
        "The notes behind the preset shared_bpe: a decoder mask built from padding, without its causal part.",
    ),
    "diagonal-blocked": Words(
        "No token sees itself",
        (NAN, "the first token is NaN", BAD),
        "torch.triu with offset 0 takes the diagonal too. Nobody sees their own position, and the first row has "
        "nothing left to see.",
        "triu(0) in place of triu(1), in several published implementations.",
    ),
    "causal-on-cross": Words(
        "A causal mask on cross-attention",
        (BAD, "the end of the source is ignored", "early words are translated wrongly"),
        "One flag switched the causal mask on for both attentions of the decoder. The first target token then sees "
        "only the first source token.",
        "A flag meant for self-attention and used for cross-attention as well.",
    ),
    "padding-visible": Words(
        "Padding can be seen",
        (BATCH, "a bright stripe at the end of the sentence", QUIET),
        "memory_key_padding_mask was left out, so cross-attention spends weight on padding, and how much depends on "
        "the longest sentence of the batch.",
        "nn.Transformer takes six masks and this one has no default made from the others: "
        "documentation of torch.nn.Transformer.",
    ),
    "padding-swapped": Words(
        "Source and target padding are exchanged",
        (BATCH, "a stripe at the wrong place", "an error only for some batches"),
        "The columns are blocked where the other sentence ends. When both happen to be as long as each other, nothing "
        "shows.",
        "The source mask and the target mask swapped between encode and forward, silent when S = T.",
    ),
    "soft-mask": Words(
        "The mask only tints",
        (BATCH, GOOD_LOSS, COPIES, "the mask seems to do nothing"),
        "Zeros and ones were added to the scores. That makes allowed cells a little likelier, by a factor of e, and "
        "blocks nothing.",
        "Hugging Face models under eager attention add a boolean four-axis mask as zeros and ones "
        "(BERT and T5 of transformers 5.23).",
    ),
    "weak-fill": Words(
        "The fill is too weak",
        ("a leak smaller than can be seen", BATCH, QUIET),
        "Blocked scores became -100 in place of minus infinity. With large scores that is not low enough, and a little "
        "weight leaks through.",
        "Finite fills such as -100 or -1e4, chosen to be safe in half precision.",
    ),
    "fill-overflow": Words(
        "The fill does not fit the number format",
        (NAN, "NaN only in half precision", "it trains in float32 and not in float16"),
        "-1e9 is beyond float16, whose lowest number is -65504. Cast after the fill, it becomes minus infinity, and a "
        "row of nothing else is NaN.",
        "The notes behind the preset shared_bpe fill with -1e10, in float16 as well.",
    ),
    "double-fill": Words(
        "Two fills on top of each other",
        ("the future shows with left padding only", BATCH, COPIES),
        "Padding was filled with -1e9, then a causal mask of -1e9 was added. In a row whose keys are all blocked, "
        "those blocked once win over those blocked twice: the first row reads the future.",
        "A left-padded row came out as .25, 0, .25, .25, .25.",
    ),
    "empty-row": Words(
        "A query without any key: NaN",
        (NAN, "NaN with left padding"),
        "Left padding and a causal mask leave the first queries nothing. A softmax over nothing but minus infinity is "
        "0/0.",
        "Batched generation pads at the left, and the causal mask meets the padding.",
    ),
    "empty-row-2": Words(
        "A query without any key: uniform",
        (QUIET, "flat rows in the picture", BATCH),
        "The same with a finite fill: all keys are equally bad, so each gets the same weight, future and padding "
        "included.",
        "-1e9 in place of minus infinity hides the NaN and keeps the fault.",
    ),
    "wrong-axis": Words(
        "(N, S) read as (L, S)",
        (BATCH, "the same mask for every sentence", "it fails only for some batch sizes"),
        "A padding mask of shape (batch, keys) was used where (queries, keys) is expected. When batch and length are "
        "equal it broadcasts, and sentence i's padding masks query i of everyone.",
        "attn_mask is (L, S), key_padding_mask is (N, S): documentation of torch.nn.MultiheadAttention.",
    ),
    "wrong-axis-2": Words(
        "Rows blocked in place of columns",
        ("dark rows in place of dark columns", BATCH),
        "The mask got its new axis at the wrong end: queries that are padding see nothing, and everybody sees the "
        "padding.",
        "mask[:, None, :, None] in place of mask[:, None, None, :].",
    ),
    "head-order": Words(
        "Heads use a neighbour's padding",
        (BATCH, "some heads look odd"),
        "A mask for (batch * heads) was repeated batch after batch, but is read head after head within a sample.",
        "repeat in place of repeat_interleave on (N*H, L, S): documentation of torch.nn.MultiheadAttention.",
    ),
    "softmax-axis": Words(
        "The softmax ran over the queries",
        (SUMS, "columns sum to 1", BAD),
        "softmax(dim=2) is right on three axes and wrong on four: with a head axis it runs over the queries.",
        "softmax(dim=2) kept while a head axis was added.",
    ),
    "transposed": Words(
        "Keys are drawn as queries",
        (SUMS, "the triangle points up", "columns sum to 1"),
        "The attention is right and its picture is not: the two last axes were exchanged on the way.",
        "Plots of attention in which rows and columns have no names.",
    ),
    "dropout-on": Words(
        "Weights kept after dropout",
        (SUMS, "holes in the picture", "the picture changes at every run"),
        "In training mode dropout zeroes some weights and scales the others up. What was stored is what the values "
        "were multiplied by, not what the softmax gave.",
        "The notes behind the preset torch_like return weights after dropout: rows summed to 1.11 and 0.73.",
    ),
    "mask-ignored": Words(
        "The mask never arrived",
        (COPIES, GOOD_LOSS, BATCH, "the mask seems to do nothing"),
        "A mask was given and never used: the weights are those of the bare scores.",
        "is_causal of nn.MultiheadAttention is only a hint: documentation of torch.nn.MultiheadAttention.",
    ),
    "top-left-causal": Words(
        "The triangle starts at the wrong corner",
        (CACHE, "the newest token sees only the oldest"),
        "With a cache there are fewer queries than keys, and the newest query is the last. Aligned at the top left, "
        "the triangle lets it see only the oldest keys.",
        "is_causal of F.scaled_dot_product_attention is aligned top left, FlashAttention bottom right since 2.1: "
        "their documentations.",
    ),
    "window-off-by-one": Words(
        "The window is one too wide",
        (QUIET, "two libraries disagree by one key"),
        "One interface counts both ends of a window, another does not. The band is one key wider than it was meant.",
        "FlashAttention's windows include both ends: its documentation.",
    ),
    "document-leak": Words(
        "Packed documents see each other",
        (QUIET, GOOD_LOSS, "text from another document appears"),
        "Several texts share one row, and positions start again at each. The mask did not: the second text attends to "
        "the first.",
        "Packing for training with positions reset and one causal mask over the whole row.",
    ),
    "hole-inside": Words(
        "A real word is taken for padding",
        ("one word is never looked at", BAD),
        "The padding mask was made by comparing ids, and a real token has the id of padding, often because the end "
        "of sentence doubles as padding.",
        "pad_token = eos_token, a common setting for models that have no padding token.",
    ),
    "leak": Words(
        "One cell is open",
        (QUIET, "a leak smaller than can be seen"),
        "No known pattern: a single cell that should be blocked has weight. The diagnosis says where.",
        "Hand-edited masks.",
    ),
    "over-blocked": Words(
        "A causal mask on an encoder",
        (BAD, "the start of a sentence never sees its end"),
        "An encoder may read the whole sentence; here each token sees only what came before. It trains, and worse.",
        "A decoder layer reused as an encoder layer.",
    ),
    "additive-read-as-keep": Words(
        "An additive mask compared with zero",
        (NAN, COPIES, "the last row is NaN"),
        "In an additive mask 0 keeps. Code of another convention blocks where the mask is 0: exactly what may be seen. "
        "The last row of a causal mask is all 0, hence all NaN.",
        "masked_fill(mask == False, ...) given the output of generate_square_subsequent_mask.",
        "scores = scores + mask  # an additive mask is added, not compared",
    ),
    "docstring": Words(
        "The docstring says the opposite",
        (BAD, COPIES),
        "The function blocks where its mask is True; its docstring says True may attend. Whoever believes the "
        "docstring sees the future.",
        "A published implementation: 23% of the mass lay on the future.",
        "mask = ~allowed  # True blocks here, whatever the docstring says",
    ),
    "half-precision": Words(
        "Half precision refuses the fill",
        ("value cannot be converted without overflow", "an error only in half precision"),
        "masked_fill on float16 scores with -1e10: torch stops with an error. Cast after the fill, it would have gone "
        "on with minus infinity.",
        "The notes behind the preset shared_bpe fill with -1e10.",
    ),
    "left-pads": Words(
        "Two pads turn a sentence into NaN",
        (NAN, "NaN after a few layers", "one NaN sentence in the batch"),
        "In the first layer only the rows of the two pads are NaN. Their values are NaN from then on, and 0 * NaN is "
        "NaN: masked or not, they reach every row. Shown is the third layer.",
        "Left padding with minus infinity in models of several layers.",
    ),
    "pad-query": Words(
        "Rows of padding (not a fault)",
        ("noisy rows at the end", "padding attends to words"),
        "A padding query attends like any other, and nobody reads its row. It is right to leave it; a picture should "
        "dim it.",
        "Every model that masks keys only, which is nearly all of them.",
    ),
    "return-in-loop": Words(
        "Six layers, and one runs",
        (BAD, "deeper models are no better", "training is suspiciously fast"),
        "return stands inside the loop over the layers. With a window of two keys, six layers should reach six tokens "
        "back; the picture shows what each output depends on.",
        "A published implementation: return indented one step too far.",
        "return states  # after the loop",
    ),
    "is-decoder": Words(
        "A causal model that is not",
        (COPIES, GOOD_LOSS, CACHE),
        "The class is named for causal language modelling; its mask is causal only with a flag that is off by "
        "default. Changing a later token moves earlier outputs.",
        "RoFormerForCausalLM of transformers with is_decoder=False, its default; found by changing a token.",
        "config.is_decoder = True",
    ),
    "observer": Words(
        "Looking changes the result",
        (OBSERVER, NAN, "NaN only with hooks or need_weights=True"),
        "For a row without any key nn.MultiheadAttention gives finite numbers with need_weights=False while gradients "
        "are on, and NaN with True. Asking for the weights breaks the model.",
        "nn.MultiheadAttention of torch 2.13, measured here.",
        "attn_mask = attn_mask & ~attn_mask.all(-1, keepdim=True)  # True blocks: leave no row without a key",
    ),
}
