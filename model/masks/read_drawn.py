"""Masks drawn in squares, as transformers' AttentionMaskVisualizer and a BlockMask of flex_attention print them."""

from __future__ import annotations

import math
import re

import numpy as np

from ..language import join_sentences, say
from .arrays import DiagnosisError
from .structure import recognise_structure

_COLOUR_PATTERN = re.compile(r"\x1b\[[0-9;]{0,8}m")
_SEEN, _HIDDEN = "■", "⬚"
_ROW_PATTERN = re.compile(rf"[{_SEEN}{_HIDDEN}](?:[ \t]*+[{_SEEN}{_HIDDEN}])*+")
_LEGEND = "i == j (diagonal)"
"""What stands in the line of AttentionMaskVisualizer that explains its colours."""
_BLOCK_MASK_PATTERN = re.compile(r"\bBlockMask\(\s*+(?:[a-z_]++=|shape=)")
_SHAPE_PATTERN = re.compile(r"\bshape=\(([\d, ]{1,80})\)")
_SPARSITY_PATTERN = re.compile(r"\bsparsity=(-?[\d.]{1,10})%")
_COMPUTED, _PARTLY, _SKIPPED = "█", "░", " "
MAX_DRAWN_SIZE = 4096
"""Most rows, and most columns, of a drawn mask."""


def is_drawn(text: str) -> bool:
    """Whether a text draws a mask in squares, or is the print of a BlockMask."""
    return _SEEN in text or _HIDDEN in text or _BLOCK_MASK_PATTERN.search(text) is not None


def read_drawn_mask(text: str) -> np.ndarray:
    """Return the mask (Q, K) bool, True = may attend, or (1, 2, 1, Q, K) where one of a window stands beside it.

    Raises:
        DiagnosisError: for squares that are no mask, and for a BlockMask, whose print holds no cells: the message says
            what it shows.
    """
    if _SEEN not in text and _HIDDEN not in text:
        raise DiagnosisError(_block_mask_text(text))
    lines = (line for line in _COLOUR_PATTERN.sub("", text).splitlines() if _LEGEND not in line)
    drawn = [[row[0] for row in _ROW_PATTERN.finditer(line.rpartition("'")[2])] for line in lines]
    rows = [[re.sub(r"\s", "", row) for row in line] for line in drawn if line]
    masks = {len(line) for line in rows}
    sizes = {len(row) for line in rows for row in line}
    if len(masks) != 1 or len(sizes) != 1 or max(masks) > 2:
        raise DiagnosisError(say("The squares are no mask: its rows have different lengths. Paste all of it."))
    if max(len(rows), *sizes) > MAX_DRAWN_SIZE:
        raise DiagnosisError(say("A drawn mask has at most {most:,} rows and columns.", most=MAX_DRAWN_SIZE))
    grids = np.array([[[cell == _SEEN for cell in row] for row in line] for line in rows]).transpose(1, 0, 2)
    return grids[0] if len(grids) == 1 else grids[None, :, None]


def _block_mask_text(text: str) -> str:
    """Return what the print of a BlockMask shows, that it holds no cells, and how they are had."""
    shape = _SHAPE_PATTERN.search(text)
    sizes = [int(size) for size in re.findall(r"\d{1,9}", shape[1])] if shape else []
    sparsity = _SPARSITY_PATTERN.search(text)
    queries, keys = sizes[-2:] if len(sizes) > 1 else (0, 0)
    said = [say("This is the print of a BlockMask: it shows blocks, and no cells.")]
    grid = _read_blocks(text, square=queries == keys)
    if sparsity and grid is not None:
        said.append(
            say(
                "Of {squares} squares of about {rows} queries and {columns} keys, {computed} are computed, {partly} in "
                "part, and {skipped} skipped (sparsity {sparsity}%).",
                squares=grid.size,
                rows=math.ceil(queries / grid.shape[0]),
                columns=math.ceil(keys / grid.shape[1]),
                computed=int((grid == 2).sum()),
                partly=int((grid == 1).sum()),
                skipped=int((grid == 0).sum()),
                sparsity=sparsity[1],
            )
        )
        structure = recognise_structure(grid > 0, np.ones_like(grid, bool))
        if structure is not None and structure.plausible:
            said.append(say("Block by block it is {mask}.", mask=structure.words()))
    said.append(
        say(
            "For its cells paste the print of {code}, or call {call}, or capture the model.",
            call="diagnose(mask=block_mask)",
            code="create_mask(block_mask.mask_mod, *block_mask.shape)",
        )
    )
    return join_sentences(*said)


def _read_blocks(text: str, square: bool) -> np.ndarray | None:
    """Return the first grid of a BlockMask, 0 for skipped, 1 for partly and 2 for computed blocks; None without one.

    Every block is two signs wide; blanks at the end of a line may be lost.
    """
    rows: list[str] = []
    for line in text.splitlines():
        if line and set(line) <= {_COMPUTED, _PARTLY, _SKIPPED}:
            rows.append(line[::2])
        elif rows:
            break
    if not any(row.strip() for row in rows) or len(rows) > MAX_DRAWN_SIZE:
        return None
    width = max(len(rows) if square else 0, *map(len, rows))
    return np.array([[" ░█".index(sign) for sign in row.ljust(width)] for row in rows])
