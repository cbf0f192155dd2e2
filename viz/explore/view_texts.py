"""What each view shows, in one line and in detail, with its equation."""

from __future__ import annotations

from typing import NamedTuple

from model.analysis.attention_flow import EXPLAINED as ATTENTION_FLOW
from model.analysis.rollout import EXPLAINED as ROLLOUT
from model.analysis.rollout import EXTENDED
from model.language.say import say, sentences, to_say
from viz.ui.addresses.explore import View


class ViewText(NamedTuple):
    """The explanation of a view."""

    line: str
    paragraphs: tuple[str | tuple[str, ...], ...]
    """What stands behind the question mark: each a message in Markdown, or several in a row."""

    @property
    def details(self) -> str:
        """The paragraphs in the reader's language, in Markdown."""
        rows = ((one,) if isinstance(one, str) else one for one in self.paragraphs)
        return "\n\n".join(sentences(*(say(message, **EQUATIONS) for message in row)) for row in rows)


EQUATIONS = {
    "weights": r"$$A = \mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d}} + M\right), \qquad \sum_k A_{qk} = 1$$",
    "passed": r"$\sum_k A_{qk} v_k$",
    "rollout": r"$\tilde A_l = \left(\tfrac12 \bar A_l + \tfrac12 I\right) \tilde A_{l-1}$",
    "mean": r"$\bar A_l$",
    "with_norm": r"$A_{qk} \lVert v_k W_O \rVert$",
    "with_value": r"$A_{qk} \lVert v_k \rVert$",
    "prediction": r"$p_l = \mathrm{softmax}(W\, \mathrm{norm}(x_l))$",
    "difference": r"$A^{(2)}_{qk} - A^{(1)}_{qk}$",
    "variation": r"$\tfrac12 \sum_k |A^{(2)}_{qk} - A^{(1)}_{qk}|$",
}
"""What stands in the fields of the messages."""
_WEIGHTS = (
    "{weights}",
    to_say(
        "$Q$ and $K$ hold a query and a key vector of $d$ numbers for each token; $M$ is $-\\infty$ where a query may "
        "not attend to a key, which makes that weight exactly 0 (Vaswani et al. 2017, equation 1)."
    ),
)

VIEW_TEXTS: dict[View, ViewText] = {
    "heatmap": ViewText(
        to_say("One head: each row is a query, each column a key, each cell the weight between them."),
        (
            to_say(
                "Read a row from left to right: these are the shares of its attention that one token gives to all "
                "others. Click a cell to pin its pair of tokens in every view; click it again to let go."
            ),
            *_WEIGHTS,
        ),
    ),
    "links": ViewText(
        to_say(
            "A line from each query to the keys it attends to: the larger the weight, the stronger and thicker the "
            "line."
        ),
        (
            to_say(
                "Hover over a token to see only its own lines, and the weight of each. Click to pin it; pin a token on "
                "both sides to see the one line between them. Until a least weight is chosen, each row has the line "
                "of its strongest key alone; masked pairs never have one. Add heads of the same layer to compare them "
                "by colour."
            ),
            *_WEIGHTS,
        ),
    ),
    "text": ViewText(
        to_say(
            "Both texts as one reads them: hover over a token, and the other side is shaded by the weights between "
            "them."
        ),
        (
            to_say(
                "Hovering over a token on the attending side shades a **row** of the matrix, which sums to 1: what the "
                "token attends to. Hovering on the other side shades a **column**, which may have any sum: which "
                "tokens attend to it."
            ),
            *_WEIGHTS,
        ),
    ),
    "pipeline": ViewText(
        to_say("How one row of this head is computed, a step at a time, with the model's own numbers."),
        (
            to_say(
                "The row is that of the pinned token. Go on with the buttons or the arrow keys; hover over a key to "
                "read its numbers. Colour of a cell is sign and size of one number, within its column. Every step is "
                "computed again from the one before and held against what the model really did."
            ),
            *_WEIGHTS,
            to_say("The head passes on {passed}, which the output projection then mixes with the other heads."),
        ),
    ),
    "joint": ViewText(
        to_say(
            "All three attentions of a layer in one matrix: the sentence attends to itself, the translation to both."
        ),
        (
            to_say(
                "Upper left: the encoder. Lower left: cross-attention, from the translation to the sentence. Lower "
                "right: the decoder's own. Upper right is empty, since the encoder never sees the translation. A row "
                "of the translation sums to 2, for it is two attentions beside each other. The picture is that of "
                "Tensor2Tensor."
            ),
        ),
    ),
    "flow": ViewText(
        to_say("Many heads as one picture: their mean, attention rolled out through the layers, or attention flow."),
        (
            to_say(
                "Rollout: {rollout}, where {mean} is the mean over the heads of layer $l$ and the identity is the "
                "residual connection (Abnar and Zuidema 2020)."
            ),
            ROLLOUT,
            (ATTENTION_FLOW, to_say("(Section 3 of the same paper.)"), EXTENDED),
            to_say(
                "With value norms, a weight is multiplied by the length of the vector that it adds to the residual "
                "stream, {with_norm}, where $W_O$ are the head's rows of the output projection, and each row of the "
                "map is divided by its sum: a large weight on a value of almost nothing passes almost nothing on "
                "(Kobayashi et al. 2020). A saved trace does not hold $W_O$: there it is {with_value}."
            ),
        ),
    ),
    "layers": ViewText(
        to_say(
            "What the decoder would write if it stopped after each layer (logit lens); colour is how sure it would be."
        ),
        (
            to_say(
                "The residual stream after each layer is sent through the last norm and the generator as if it were "
                "the end: {prediction} (nostalgebraist 2020). Early layers were never trained to be read in this way: "
                "a token far down the list does not mean that the model does not know it yet. Click a column to "
                "follow one position."
            ),
        ),
    ),
    "compare": ViewText(
        to_say(
            "Two heads, sentences or models side by side; below, what the second has more (indigo) or less (orange)."
        ),
        (
            to_say(
                "The difference is {difference} on the rows and columns that both have, in a scale with zero in its "
                "middle. Nothing is rescaled. Two sentences share the tokens that stand in both in the same order; two "
                "models that cut words into other pieces are compared word by word. How much of a row lies elsewhere "
                "is the total variation distance {variation}, averaged over the rows; where some columns are not "
                "shared, it is at least that much. Click a cell in any of the pictures, and its pair is marked in all "
                "of them."
            ),
            *_WEIGHTS,
        ),
    ),
}
