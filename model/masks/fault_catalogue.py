"""The catalogue of faults: how severe each is, which arrays show it, what it looks like, and the line that fixes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..language import to_say

Severity = Literal["error", "warning", "info"]
"""How much harm a finding does where it is true."""
Level = Literal["certain", "likely", "information"]
"""How much is known. ``certain``: what was stated or given contradicts what took effect; ``likely``: it would, if the
mask were meant as it usually is; ``information``: nothing is wrong."""


@dataclass(frozen=True)
class Fault:
    """One entry of the catalogue."""

    severity: Severity
    needs: tuple[str, ...]
    """The arrays without which nothing can be said; ``a|b`` stands for either. ``meant`` may also be proposed
    from ``mask``, unless it is listed here."""
    looks: str
    """A message, without the end of its sentence: what went wrong and how it shows."""
    fix: str
    """A line of code that can be copied, or NOTHING_TO_FIX."""


NOTHING_TO_FIX = to_say("nothing to fix")
"""In the place of a line of code, where what was found is right as it is."""

FAULTS: dict[str, Fault] = {
    "inverted": Fault(
        "error",
        ("weights|mask", "meant|mask|key_keep"),
        to_say("blocked cells have weight and allowed cells have none: the mask is inverted"),
        "mask = ~mask  # nn.MultiheadAttention blocks where True, F.scaled_dot_product_attention keeps where True",
    ),
    "future-visible": Fault(
        "error",
        ("weights|mask", "meant|mask"),
        to_say("queries attend to keys after their own position: the causal part of the mask is missing"),
        "mask = mask & torch.ones(Q, K, dtype=torch.bool).tril(K - Q)  # True = may attend",
    ),
    "diagonal-blocked": Fault(
        "error",
        ("weights|mask",),
        to_say("no query may attend to its own position, and the first row has no key left"),
        "blocked = torch.ones(T, T, dtype=torch.bool).triu(1)  # the diagonal offset is 1, not 0",
    ),
    "causal-on-cross": Fault(
        "error",
        ("weights|mask",),
        to_say("cross-attention has a causal mask, so early target tokens cannot see the end of the source"),
        "cross_attention(x, memory, mask=source_padding)  # no causal mask: the whole source is known",
    ),
    "padding-visible": Fault(
        "error",
        ("weights|mask", "key_keep|meant"),
        to_say("queries attend to padding: the key padding mask is missing"),
        "mask = mask & key_keep[:, None, None, :]  # True = a real token",
    ),
    "padding-swapped": Fault(
        "error",
        ("weights|mask", "key_keep|meant", "query_keep"),
        to_say("the blocked columns end where the other sentence ends: source and target padding are exchanged"),
        "mask = source_keep[:, None, None, :]  # cross-attention: padding of the keys, not of the queries",
    ),
    "soft-mask": Fault(
        "error",
        ("scores|masked_scores|mask",),
        to_say("a mask of zeros and ones was added to the scores: it changes the weights and blocks nothing"),
        'scores = scores.masked_fill(mask == 0, float("-inf"))  # do not add a 0/1 mask',
    ),
    "weak-fill": Fault(
        "warning",
        ("weights", "meant|mask|key_keep"),
        to_say("blocked cells keep a little weight: the fill is finite and too small"),
        'scores = scores.masked_fill(~mask, float("-inf"))',
    ),
    "fill-overflow": Fault(
        "error",
        ("mask|masked_scores",),
        to_say("the fill value does not fit the number format of the scores"),
        "scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)",
    ),
    "double-fill": Fault(
        "error",
        ("weights|masked_scores",),
        to_say(
            "two finite fills were added up: in a row without an allowed key, the cells blocked only once get the "
            "weight"
        ),
        'scores = scores.masked_fill(~(causal & key_keep[:, None, None, :]), float("-inf"))  # join, then fill once',
    ),
    "empty-row": Fault(
        "error",
        ("weights|mask",),
        to_say("a query has no key to attend to"),
        "weights = weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)  # a row without keys gives zeros",
    ),
    "wrong-axis": Fault(
        "error",
        ("weights|mask", "key_keep|meant"),
        to_say("the padding mask was read along the wrong axis: it blocks by query or by another sample, not by key"),
        "mask = key_keep[:, None, None, :]  # (B, 1, 1, K): one row of keys for each sample",
    ),
    "head-order": Fault(
        "error",
        ("weights|mask", "key_keep|meant"),
        to_say("some heads use the padding of another sample: the mask was repeated in the wrong order"),
        "mask = mask.repeat_interleave(heads, dim=0)  # (N*H, L, S) is batch-major; repeat() is not",
    ),
    "softmax-axis": Fault(
        "error",
        ("weights",),
        to_say("the rows do not sum to 1 but another axis does: the softmax ran over the wrong axis"),
        "weights = scores.softmax(dim=-1)  # over the keys",
    ),
    "transposed": Fault(
        "error",
        ("weights",),
        to_say("the columns sum to 1 in place of the rows: queries and keys are exchanged"),
        "weights = weights.transpose(-2, -1)  # queries down, keys across",
    ),
    "dropout-on": Fault(
        "warning",
        ("weights",),
        to_say("the weights were taken after dropout: rows do not sum to 1 and some cells are scaled up or zero"),
        "model.eval()  # or store the weights before dropout",
    ),
    "applied-late": Fault(
        "error",
        ("weights",),
        to_say("the mask was multiplied into the weights after the softmax: blocked keys still took their share of it"),
        'weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)  # mask before the softmax',
    ),
    "extra-mass": Fault(
        "info",
        ("weights",),
        to_say(
            "rows sum to less than 1 and no row to more: a sink in the denominator, as of gpt-oss or softmax1, takes "
            "the rest"
        ),
        NOTHING_TO_FIX,
    ),
    "mask-ignored": Fault(
        "error",
        ("weights", "mask|scores"),
        to_say("the weights are what they would be without any mask: the mask never reached the softmax"),
        "out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # pass it on; is_causal is only a hint",
    ),
    "top-left-causal": Fault(
        "error",
        ("weights|mask",),
        to_say(
            "the causal mask starts at the top left although there are more keys than queries: the newest query sees "
            "only the oldest keys"
        ),
        "mask = torch.ones(Q, K, dtype=torch.bool).tril(K - Q)  # aligned at the bottom right",
    ),
    "window-off-by-one": Fault(
        "error",
        ("weights|mask", "meant|mask"),
        to_say("the attention window is one key wider or narrower than it should be"),
        "mask = (i - j < window) & (j <= i)  # the window counts the query itself",
    ),
    "window-missing": Fault(
        "error",
        ("weights|mask", "meant|mask"),
        to_say("queries attend beyond the attention window: the window is missing, all the rest is as meant"),
        "mask = mask & (i - j < window)  # the window counts the query itself",
    ),
    "wrong-layer-pattern": Fault(
        "error",
        ("weights|mask", "meant|mask"),
        to_say(
            "layers or heads follow the mask that was meant for others, or the global tokens of a sparse pattern are "
            "lost"
        ),
        "mask = masks[config.layer_types[layer]]  # each layer its own: local and global in the order of the model",
    ),
    "batch-axis": Fault(
        "error",
        ("weights", "key_keep|meant|mask"),
        to_say("attention ran over the samples of the batch in place of the tokens: the two first axes are exchanged"),
        "attention = nn.MultiheadAttention(width, heads, batch_first=True)  # for (B, T, D); without it, (T, B, D)",
    ),
    "bias-wrong": Fault(
        "error",
        ("weights|masked_scores", "scores"),
        to_say("the position bias did not take effect as it was given"),
        "scores = scores + bias  # ALiBi: -slope * distance, a slope a head; T5: the same bias in every layer",
    ),
    "scores-mismatch": Fault(
        "error",
        ("weights", "scores|masked_scores"),
        to_say("the weights are not the softmax of the scores given with them"),
        'weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)  # scaled once, with its bias, in every step',
    ),
    "positions-wrong": Fault(
        "error",
        ("position_ids", "key_keep"),
        to_say(
            "positions count the padding at the left, so that a sentence is encoded otherwise alone and in a batch; "
            "with rotary and relative positions alone this changes nothing"
        ),
        "position_ids = (key_keep.long().cumsum(-1) - 1).clamp(min=0)  # count real tokens only",
    ),
    "mask-shifted": Fault(
        "error",
        ("weights|mask", "key_keep|meant"),
        to_say("the boundary of the padding or of a document lies some tokens beside where it should"),
        "key_keep = torch.arange(K) < lengths[:, None]  # count BOS and EOS in the lengths, or in neither",
    ),
    "sample-order": Fault(
        "error",
        ("weights|mask", "key_keep|meant"),
        to_say("samples have the padding of one another: the batch was put into another order, and the mask was not"),
        "key_keep = key_keep[order]  # the same order as the tokens: sorting by length, beams",
    ),
    "stale-cache": Fault(
        "error",
        ("weights|mask", "key_keep|meant"),
        to_say("queries attend to slots of the cache that are not filled yet"),
        "mask = mask & (torch.arange(K) <= cache_position[:, None])  # only slots up to the query's own",
    ),
    "document-leak": Fault(
        "error",
        ("weights|mask", "meant|mask"),
        to_say("tokens attend to another document of the same packed row"),
        "mask = mask & (document[:, None, K - Q:, None] == document[:, None, None, :])",
    ),
    "hole-inside": Fault(
        "error",
        ("weights|mask|key_keep",),
        to_say("a real token inside the sentence is treated as padding: its id equals the padding id"),
        "key_keep = torch.arange(K) < lengths[:, None]  # from the lengths, not from ids != pad",
    ),
    "pad-query": Fault(
        "info",
        ("weights", "query_keep|key_keep"),
        to_say("rows of padding queries carry weights; nothing reads them, so dim them"),
        NOTHING_TO_FIX,
    ),
    "leak": Fault(
        "error",
        ("weights|mask", "meant|mask"),
        to_say("there is weight on cells that should be blocked"),
        "mask = mask & meant  # look at the cells named here",
    ),
    "over-blocked": Fault(
        "error",
        ("weights|mask", "meant|mask"),
        to_say("cells that should be allowed have no weight"),
        "mask = mask | meant  # look at the cells named here",
    ),
}
"""Every code that a diagnosis can name."""
