"""What came of each way to compute the same, in plain words. No Streamlit here."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import pandas as pd

from model.behaviour.backends.batch import OUTPUT
from model.behaviour.backends.compare import WAYS
from model.language.say import listed, say, say_many, to_say

if TYPE_CHECKING:
    from model.behaviour.backends.compare import BackendResult, Comparison

HOW = to_say(
    "The sentence and its first half, padded at the right, run in one batch as torch runs them by itself, and then in "
    "each of these ways. Outputs of all layers are compared at the real tokens. Noise is four times what the same "
    "sentences twice in a batch change, and at least 256 units of rounding. Torch's efficient and flash kernels are "
    "chosen for a whole process, so attenscope.testing.compare_backends compares them, in one of its own."
)
PICTURES = to_say(
    "The mask that each way applied to its last sample, queries down, keys across, coloured where some head may "
    "attend. Sizes differ where a way has other padding, more room in its cache, or both samples in one row."
)


def headline(found: Comparison) -> str:
    """How many ways agree, and which part, in a line."""
    ran = sum(one.status != "not run" for one in found.results)
    left = len(found.results) - ran
    if found.parting:
        return _parting(found, ran, left)
    if left:
        return say("All {count} ways that ran give the same, within noise; {left} could not run.", count=ran, left=left)
    return say("All {count} ways that ran give the same, within noise.", count=ran)


def _parting(found: Comparison, ran: int, left: int) -> str:
    said = {"ran": ran, "ways": listed(say(one.name) for one in found.parting)}
    if left:
        return say_many(
            "{count} of {ran} ways that ran parts from the model as it is: {ways}; {left} could not run.",
            "{count} of {ran} ways that ran part from the model as it is: {ways}; {left} could not run.",
            len(found.parting),
            left=left,
            **said,
        )
    return say_many(
        "{count} of {ran} ways that ran parts from the model as it is: {ways}.",
        "{count} of {ran} ways that ran part from the model as it is: {ways}.",
        len(found.parting),
        **said,
    )


def result(one: BackendResult) -> str:
    """What came of one way, in a sentence; samples and tokens are counted from 1."""
    if one.status == "not run":
        return say("not run: {reason}", reason=one.reason)
    if one.status == "same" and not one.difference:
        return say("the same, to the last bit")
    if one.status == "same":
        return say("the same, up to {difference:.1e}", difference=one.difference)
    times = one.difference / one.noise
    return say(
        "parts at {place}, sample {sample}, token {token}, by {difference:.2g}: {size}",
        place=say("the output") if one.layer == OUTPUT else one.layer,
        sample=one.sample + 1,
        token=one.row + 1,
        difference=one.difference,
        size=say("{times:,.0f} times the noise", times=times)
        if times < 1e6
        else say("more than a million times the noise"),
    )


def table(found: Comparison) -> str:
    """All ways as an HTML table."""
    rows = "".join(
        f"<tr><td>{html.escape(say(one.name))}</td><td>{html.escape(say(WAYS[one.name]))}</td>{_cell(one)}</tr>"
        for one in found.results
    )
    heads = (say("Way"), say("What it is"), say("Against the model as it is"))
    head = "".join(f"<th>{html.escape(one)}</th>" for one in heads)
    return f'<table class="checks ways"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _cell(one: BackendResult) -> str:
    words = html.escape(result(one))
    if one.status == "same":
        return f"<td>✓ {words}</td>"
    if one.status == "parts":
        return f'<td><span class="fault">●</span> {words}</td>'
    return f'<td class="not">{words}</td>'


def numbers(found: Comparison) -> pd.DataFrame:
    """One way a row, with the first layer, sample and token that part, from 1."""
    rows = [
        {
            "way": one.name,
            "result": one.status,
            "layer": one.layer,
            "sample": one.sample + 1 if one.status == "parts" else None,
            "token": one.row + 1 if one.status == "parts" else None,
            "difference": one.difference,
            "noise": one.noise,
            "reason": one.reason,
        }
        for one in found.results
    ]
    return pd.DataFrame(rows).set_index("way")
