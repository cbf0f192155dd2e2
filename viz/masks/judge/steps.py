"""Scores, mask, softmax and dropout of the judged arrays, one after the other."""

from __future__ import annotations

from model.language.say import listed, say, sentences
from model.masking.blocked import is_blocked
from model.masking.toy_attention import dropout

from ...components.chart import chart
from ...figures.masks.pipeline import Stage, mask_pipeline
from ...figures.palette import Look
from ...ui import theme, widgets
from ...ui.addresses.masks import DROPOUT
from ...ui.captions import caption
from .judgement import Judgement
from .slices import Slice, slice_of

MOST_DRAWN = 64


def show(judgement: Judgement, at: tuple[int, int, int, int]) -> None:
    """The steps of one sample and head."""
    one = slice_of(judgement, *at[:3])
    rate = widgets.selectbox(say("Dropout"), DROPOUT, width=190)
    steps = stages(one, rate)
    chart(
        mask_pipeline(steps, "", Look(theme.palette())),
        say("One attention call in steps: {steps}", steps=listed(stage.title for stage in steps)),
        key="mask-steps",
        on_cell=lambda _, __: None,
    )
    caption(_words(one, rate))


def stages(one: Slice, rate: float) -> list[Stage]:
    """Those whose numbers are known."""
    part = (slice(MOST_DRAWN), slice(MOST_DRAWN))
    known = [(say("Scores"), one.scores), (say("After the mask"), one.masked)]
    found = [
        Stage(title, values[part], False, is_blocked(values[part])) for title, values in known if values is not None
    ]
    found.append(Stage(say("After softmax"), one.weights[part], True))
    if rate:
        found.append(Stage(say("After dropout"), dropout(one.weights, rate)[part], True))
    return found


def _words(one: Slice, rate: float) -> str:
    if one.generated:
        first = say("The scores are random ones, since none were given.")
    elif one.scores is None:
        first = say("Only what was given is shown; add scores = … to see the steps before.")
    else:
        first = say("Scores, then the mask, then softmax over the keys: each row sums to 1.")
    if not rate:
        return first
    after = say(
        "Dropout zeroes {rate:.0%} of the weights in training and scales the others by {factor:.3g}.",
        rate=rate,
        factor=1 / (1 - rate),
    )
    return sentences(first, after)
