"""What came of each way to compute the same, in plain words. No Streamlit here."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import pandas as pd

from model.behaviour.backends.compare import WAYS

if TYPE_CHECKING:
    from model.behaviour.backends.compare import BackendResult, Comparison

HOW = (
    "The sentence and its first half, padded at the right, run in one batch as torch runs them by itself, and then in "
    "each of these ways. Outputs of all layers are compared at the real tokens. Noise is four times what the same "
    "sentences twice in a batch change, and at least 256 units of rounding. Torch's efficient and flash kernels are "
    "chosen for a whole process, so attenscope.testing.compare_backends compares them, in one of its own."
)
PICTURES = (
    "The mask that each way applied to its last sample, queries down, keys across, coloured where some head may "
    "attend. Sizes differ where a way has other padding, more room in its cache, or both samples in one row."
)


def headline(found: Comparison) -> str:
    """How many ways agree, and which part, in a line."""
    ran = [one for one in found.results if one.status != "not run"]
    left = len(found.results) - len(ran)
    without = f"; {left} could not run" if left else ""
    if not found.parting:
        return f"All {len(ran)} ways that ran give the same, within noise{without}."
    names = ", ".join(one.name for one in found.parting)
    return f"{len(found.parting)} of {len(ran)} ways that ran part from the model as it is: {names}{without}."


def result(one: BackendResult) -> str:
    """What came of one way, in a sentence; samples and tokens are counted from 1."""
    if one.status == "not run":
        return f"not run: {one.reason}"
    if one.status == "same":
        return f"the same, up to {one.difference:.1e}" if one.difference else "the same, to the last bit"
    place = "the output" if one.layer == "output" else one.layer
    times = one.difference / one.noise
    size = f"{times:,.0f} times the noise" if times < 1e6 else "more than a million times the noise"
    return f"parts at {place}, sample {one.sample + 1}, token {one.row + 1}, by {one.difference:.2g}: {size}"


def table(found: Comparison) -> str:
    """All ways as an HTML table."""
    rows = "".join(
        f"<tr><td>{html.escape(one.name)}</td><td>{html.escape(WAYS[one.name])}</td>{_cell(one)}</tr>"
        for one in found.results
    )
    head = "<tr><th>Way</th><th>What it is</th><th>Against the model as it is</th></tr>"
    return f'<table class="checks ways"><thead>{head}</thead><tbody>{rows}</tbody></table>'


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
