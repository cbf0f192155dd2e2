"""The edits of a visitor to the mask on the page: cells turned over, fixes applied, a finding pointed at.

All of it belongs to one mask, named by its identity, and is forgotten with it. Cells of a built mask are in the
address too: ``cells=1.3.5,1.4.5`` (sample, query, key, from 1).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import streamlit as st

from ....streamlit_internals import went_through_history
from ....ui.addresses.masks import CELLS

KEY = "mask_edits"
"""Of the session: the edits of the mask on the page."""


@dataclass(frozen=True)
class Edits:
    """What a visitor changed about one mask."""

    identity: str
    cells: frozenset[tuple[str, int, int, int]] = frozenset()
    """(picture, sample, query, key) turned over."""
    fixes: tuple[str, ...] = ()
    """Codes whose fixes were applied, in order."""
    marked: tuple[tuple[int, ...], tuple[int, ...]] = field(default=((), ()))
    """Queries and keys of the finding pointed at."""


def edits(identity: str) -> Edits:
    """The edits of the mask with this identity; another one starts with none."""
    found = st.session_state.get(KEY)
    return found if isinstance(found, Edits) and found.identity == identity else Edits(identity)


def turned_cells(identity: str, picture: str, shape: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Cells of one picture that were turned over and lie inside (B, H, Q, K), sorted."""
    _from_address(identity, picture)
    samples, _, queries, keys = shape
    found = [cell[1:] for cell in edits(identity).cells if cell[0] == picture]
    return sorted(cell for cell in found if cell[0] < samples and cell[1] < queries and cell[2] < keys)


def turn(identity: str, picture: str, sample: int, query: int, key: int) -> None:
    """Turn a cell over, or back; for callbacks."""
    before = edits(identity)
    cells = before.cells ^ {(picture, sample, query, key)}
    _set(replace(before, cells=cells, fixes=()))


def apply(identity: str, code: str) -> None:
    """Apply the fix of a finding; for callbacks."""
    before = edits(identity)
    _set(replace(before, fixes=(*before.fixes, code), marked=((), ())))


def undo(identity: str) -> None:
    """Take the last fix back; for callbacks."""
    before = edits(identity)
    _set(replace(before, fixes=before.fixes[:-1], marked=((), ())))


def reset(identity: str) -> None:
    """Turn every cell back; for callbacks."""
    _set(replace(edits(identity), cells=frozenset(), fixes=()))


def point(identity: str, queries: tuple[int, ...], keys: tuple[int, ...]) -> None:
    """Mark cells in the pictures, or no longer; for callbacks."""
    before = edits(identity)
    _set(replace(before, marked=((), ()) if before.marked == (queries, keys) else (queries, keys)))


def _set(new: Edits) -> None:
    st.session_state[KEY] = new


def in_address(identity: str, picture: str) -> None:
    """Keep the cells of a built mask in the address."""
    CELLS.set(frozenset(cell[1:] for cell in edits(identity).cells if cell[0] == picture))


def _from_address(identity: str, picture: str) -> None:
    """Read the cells of a link, or of the address that the Back button returns to."""
    if KEY not in st.session_state or went_through_history():
        _set(Edits(identity, frozenset((picture, *cell) for cell in CELLS.value_in_address())))
