"""A table of positional encodings as waves, and its wavelengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..curves import Axis, Curves, Mark, Note, decades, linear
from ..labels import room
from ..palette import Palette, blend
from ..speech import number, say

AMPLITUDE = 0.42
"""Of the largest wave, where the middles of two lie 1 apart."""
FEW = 128
"""Up to so many positions each is a dot."""


def waves(values: np.ndarray, dimensions: Sequence[int], lengths: np.ndarray | None, palette: Palette) -> Curves:
    """Chosen dimensions of `values` (P, D) over position, one below the other; `lengths` (ceil(D / 2),) wavelengths.

    The waves are the first marks, in the order of `dimensions`.
    """
    colours = blend(palette.accent, palette.full, max(len(dimensions), 2))
    position = np.arange(len(values))
    size = max(float(np.abs(values[:, dimensions]).max()), 1e-9)
    lines, dots, rules, notes = [], [], [], []
    for row, (dimension, colour) in enumerate(zip(dimensions, colours, strict=False)):
        wave = values[:, dimension]
        points = np.stack([position, -row + wave / size * AMPLITUDE], -1)
        says = say("dimension {dimension}, position {x}: {value}", dimension=dimension, x="{x}", value="{0:.4f}")
        lines.append(Mark("line", points, colour, 2.2, says, wave[:, None]))
        if len(values) <= FEW:
            dots.append(Mark("dots", points, colour, 2.2))
        rules.append(Mark("line", np.array([(0, -row), (len(values) - 1, -row)]), palette.line, 1))
        notes.append(Note(_wave_name(dimension, lengths), -0.5, -row, palette.soft, "end", shift=-12))
    return Curves(
        say("Waves: chosen dimensions over position"),
        linear(-0.5, len(values) - 0.5, say("position"), whole=True),
        Axis(-len(dimensions) + 0.45, 0.55),
        [*lines, *rules, *dots],
        palette,
        notes,
        left=room((one.text for one in notes), 164),
    )


def _wave_name(dimension: int, lengths: np.ndarray | None) -> str:
    if lengths is None:
        return say("dimension {dimension}", dimension=dimension)
    length = float(lengths[dimension // 2])
    function = "cos" if dimension % 2 else "sin"
    return say(
        "dimension {dimension} · {function}\nwavelength {length:,.1f}\nfrequency {frequency:.2g}",
        dimension=dimension,
        function=function,
        length=length,
        frequency=1 / length,
    )


def wavelengths(
    lengths: np.ndarray, dimensions: Sequence[int], positions: int, base: float, palette: Palette
) -> Curves:
    """Wavelength of every pair of dimensions (ceil(D / 2),) on a logarithmic axis; those of `dimensions` are marked.

    The second mark is the line, a point a pair.
    """
    pairs, last = np.arange(len(lengths)), max(len(lengths) - 1, 1)
    points = np.stack([pairs, np.log10(lengths)], -1)
    chosen = sorted({dimension // 2 for dimension in dimensions})
    limits = [
        ("2π", 2 * np.pi),
        (f"{number(base, 'g')} · 2π", base * 2 * np.pi),
        (say("{positions} positions shown", positions=positions), positions),
    ]
    rules = [Mark("line", np.array([(0, np.log10(y)), (last, np.log10(y))]), palette.line, 1) for _, y in limits]
    return Curves(
        say("Wavelengths: one factor from pair to pair"),
        linear(0, last, say("pair of dimensions i"), whole=True),
        decades(0.5, np.log10(base * 2 * np.pi) + 0.35, say("wavelength, positions"), grid=True),
        [
            Mark("dots", points[chosen], palette.accent, 5.5),
            Mark("line", points, palette.soft, says=say("pair {x}: {0:,.1f} positions"), values=lengths[:, None]),
            *rules,
        ],
        palette,
        [Note(text, last, float(np.log10(y)), palette.soft, "end", "bottom") for text, y in limits],
    )
