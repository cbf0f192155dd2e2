"""The line of code that fixes a fault, in the convention of the mask at hand, with names that the reader has."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from .arrays import Arrays, MaskWriting
from .fault_catalogue import FAULTS
from .intent import IntendedMask
from .structure import CAUSAL, FULL, Structure

# The fix is written for the way in which the mask at hand is written: a mask is True where a query may attend
# (``keeps``), True where it may not (``blocks``), or added to the scores (``added``). The same line in another of these
# conventions would turn the mask around, or raise.


_CAUSAL_CELLS = "torch.ones(Q, K, dtype=torch.bool).tril(K - Q)"
_FILL_VALUE = 'float("-inf")'
_ALIGNED_COMMENT = "  # aligned at the bottom right"
_COLUMN_CELLS = "{name}[:, None, None, :]"
_FIXES_BY_WRITING: dict[str, dict[MaskWriting, str]] = {
    "inverted": {
        "added": f"mask = torch.zeros_like(mask).masked_fill(mask == 0, {_FILL_VALUE})  # what was 0 is blocked"
    },
    "soft-mask": {"blocks": f"scores = scores.masked_fill(mask != 0, {_FILL_VALUE})  # do not add a 0/1 mask"},
    "weak-fill": {
        "blocks": f"scores = scores.masked_fill(mask, {_FILL_VALUE})",
        "added": f"mask = mask.masked_fill(mask < 0, {_FILL_VALUE})",
    },
    "fill-overflow": {
        "blocks": "scores = scores.masked_fill(mask, torch.finfo(scores.dtype).min)",
        "added": "mask = mask.clamp(min=torch.finfo(scores.dtype).min).to(scores.dtype)",
    },
    "empty-row": {
        "blocks": "weights = weights.masked_fill(mask.all(-1, keepdim=True), 0.0)  # a row without keys gives zeros",
        "added": "weights = weights.masked_fill((mask <= -1e3).all(-1, keepdim=True), 0.0)  "
        "# a row without keys gives zeros",
    },
    "scores-mismatch": {
        "blocks": f"weights = scores.masked_fill(mask, {_FILL_VALUE}).softmax(-1)  # scaled once, in every step",
        "added": "weights = (scores + mask).softmax(-1)  # scaled once; the bias in every step, of its own sample",
    },
    "mask-ignored": {
        "blocks": "out = F.scaled_dot_product_attention(q, k, v, attn_mask=~mask.bool())  # True keeps there",
    },
}
"""Codes whose fix says something else than which cells are allowed, in the conventions in which it differs."""
_RESTRICTING_CELLS = {
    "future-visible": _CAUSAL_CELLS,
    "padding-visible": _COLUMN_CELLS.format(name="key_keep"),
    "window-missing": "(i - j < window)",
    "stale-cache": "(torch.arange(K) <= cache_position[:, None])",
    "document-leak": "(document[:, None, K - Q:, None] == document[:, None, None, :])",
    "leak": "meant",
}
"""Codes whose fix blocks what the mask leaves open: all but these cells."""
_REPLACEMENT_CELLS = {
    "padding-swapped": (_COLUMN_CELLS.format(name="source_keep"), "  # padding of the keys, not of the queries"),
    "wrong-axis": (_COLUMN_CELLS.format(name="key_keep"), "  # (B, 1, 1, K): one row of keys for each sample"),
    "top-left-causal": (_CAUSAL_CELLS, _ALIGNED_COMMENT),
    "window-off-by-one": ("(i - j < window) & (j <= i)", "  # the window counts the query itself"),
}
"""Codes whose fix is another mask: the cells it allows, and why."""
_REBUILT_CODES = (
    *("window-missing", "future-visible", "window-off-by-one", "document-leak", "leak", "over-blocked"),
    *("mask-ignored", "inverted", "padding-visible", "causal-on-cross", "diagonal-blocked", "top-left-causal"),
    *("padding-swapped", "wrong-axis", "mask-shifted", "sample-order", "stale-cache", "wrong-layer-pattern"),
    "hole-inside",
)
"""Codes whose fix can put the mask that was meant in the place of the one in force."""
_INDEX_LINE = "i, j = torch.arange(K - Q, K)[:, None], torch.arange(K)"


def write_intent_fix_line(
    code: str, arrays: Arrays, intent: IntendedMask | None, cells: np.ndarray, rows: np.ndarray | None = None
) -> str:
    """Return the line that fixes ``code`` at the ``cells`` (B, L, H, Q, K) that are not as ``intent`` means.

    It takes away what those cells have in common, the future or the padding, where that is right; else it builds the
    mask that was meant. ``rows`` (B, L, H, Q) are those that count.
    """
    plain = write_generic_fix_line(code, arrays.writing)
    if intent is None or code not in _REBUILT_CODES:
        return plain
    if code == "inverted" and rows is not None and cells[rows].all():
        return plain
    if code in ("future-visible", "padding-visible", "leak"):
        queries, keys = arrays.sizes[3:]
        parts = (
            (CAUSAL.build_mask(queries, keys), _CAUSAL_CELLS),
            (intent.columns, _write_real_keys_expression(arrays)),
        )
        for part, text in parts:
            if not (cells & part).any() and not (intent.allowed & ~part).any():
                return (
                    f"mask = {_write_restricted_mask(text, arrays.writing)}{_mask_convention_comment(arrays.writing)}"
                )
    if code == "mask-ignored" and "mask" in arrays.given:
        return plain
    line = _write_mask_rebuild_line(arrays, intent) or plain
    if code == "mask-ignored" and line != plain:
        keeps = "~mask" if arrays.writing == "blocks" else "mask"
        line = f"{line.partition('  #')[0]}; out = F.scaled_dot_product_attention(q, k, v, attn_mask={keeps})"
    return line


def _write_mask_rebuild_line(arrays: Arrays, intent: IntendedMask) -> str:
    """Return the line that builds the mask of the intent; empty where it has no name and nobody gave it."""
    kinds = intent.structures
    known = len(set(kinds)) == 1 and not intent.keyless_queries.any()
    if known and (not kinds[0].starts or arrays.sizes[3] <= arrays.sizes[4]):
        origins = tuple(dict.fromkeys(one.origin for one in kinds if one.chunk or one.block)) or (0,)
        padding = _write_real_keys_expression(arrays) if intent.has_padding else ""
        if len(origins) == 1 or padding:
            return _write_meant_mask(kinds[0], arrays.writing, padding, origins)
    if arrays.meant is not None:
        return f"mask = {_write_mask('meant', arrays.writing)}{_mask_convention_comment(arrays.writing)}"
    if intent.layer_structures:
        return _write_layer_mask_line(intent.layer_structures, arrays, intent)
    return ""


def _write_real_keys_expression(arrays: Arrays) -> str:
    """Return the real keys by a name that the reader has: ``key_keep``, or the columns of ``meant``."""
    if arrays.key_keep is None and arrays.meant is not None:
        return "meant.any(-2, keepdim=True)"
    return _COLUMN_CELLS.format(name="key_keep")


def _write_layer_mask_line(structures: Sequence[Structure], arrays: Arrays, intent: IntendedMask) -> str:
    """Return the line that builds the mask of one ``layer``, counted from 0, where they differ in turn."""
    counted = any(one.chunk or one.block for one in structures)
    if any(one.starts for one in structures) or (counted and not intent.keep[:, 0].all()):
        return ""  # Chunks count from the first real key, which differs with the sample.
    padding = f" & {_write_real_keys_expression(arrays)}" if intent.has_padding else ""
    each = [write_structure_cells(one) or "torch.ones(Q, K, dtype=torch.bool)" for one in structures]
    period = next(n for n in range(1, len(each) + 1) if all(one == each[at % n] for at, one in enumerate(each)))
    cells = f"({', '.join(each[:period])})[layer % {period}]{padding}"
    return f"{_INDEX_LINE}; mask = {_write_mask(cells, arrays.writing)}  # layer from 0"


def write_generic_fix_line(code: str, writing: MaskWriting) -> str:
    """Return the line that fixes ``code`` in a mask of this ``writing``, whatever was meant."""
    if line := _FIXES_BY_WRITING.get(code, {}).get(writing, ""):
        return line
    if code in _RESTRICTING_CELLS:
        return f"mask = {_write_restricted_mask(_RESTRICTING_CELLS[code], writing)}{_mask_convention_comment(writing)}"
    if code in _REPLACEMENT_CELLS:
        cells, why = _REPLACEMENT_CELLS[code]
        return f"mask = {_write_mask(cells, writing)}{why}"
    if code == "over-blocked":
        return {"keeps": "mask = mask | meant", "blocks": "mask = mask & ~meant"}.get(
            writing, "mask = mask.masked_fill(meant, 0.0)"
        )
    return FAULTS[code].fix


def _mask_convention_comment(writing: MaskWriting) -> str:
    return {"keeps": "  # True = may attend", "blocks": "  # True = blocked", "added": ""}[writing]


def _write_restricted_mask(cells: str, writing: MaskWriting) -> str:
    """Return the mask that blocks all but ``cells`` as well."""
    if writing == "added":
        return f"mask.masked_fill(~{cells}, {_FILL_VALUE})"
    # It may have come as 1. and 0.
    return f"mask.bool() & {cells}" if writing == "keeps" else f"mask.bool() | ~{cells}"


def _write_mask(cells: str, writing: MaskWriting) -> str:
    """Return the mask that allows ``cells`` and nothing else."""
    if writing == "keeps":
        return cells
    bare = " & " not in cells and (cells.startswith("torch.ones") or " " not in cells.partition("[")[0])
    inner = cells if bare else f"({cells})"
    return f"~{inner}" if writing == "blocks" else f"torch.zeros({inner}.shape).masked_fill(~{inner}, {_FILL_VALUE})"


def _write_meant_mask(
    structure: Structure, writing: MaskWriting, padding: str = "", origins: tuple[int, ...] = (0,)
) -> str:
    """Return the line that builds the meant mask anew; chunks count from ``origins``, by sample from the first key."""
    if structure == CAUSAL:
        cells, indices = _CAUSAL_CELLS, ""
    elif structure == FULL and not padding:
        return f"mask = {_write_mask('torch.ones(Q, K, dtype=torch.bool)', writing)}  # every key: no causal part here"
    else:
        first = "0" if origins == (0,) else str(origins[0]) if len(origins) == 1 else "first"
        cells = write_structure_cells(structure, first=first)
        indices = f"{_INDEX_LINE}; " if has_position_based_cells(structure) else ""
        if first == "first":
            row = padding.partition("[")[0] if padding.startswith("key_keep") else f"{padding}[:, 0, 0]"
            indices += f"first = {row}.int().argmax(-1)[:, None, None, None]; "
    if structure.starts:
        edges = ", ".join(map(str, structure.starts))
        indices += f"document = torch.bucketize(torch.arange(K), torch.tensor([{edges}]), right=True); "
    parts = [cells, padding]
    why = "  # every real key: no causal part here" if structure == FULL else ""
    joined = " & ".join(part for part in parts if part)
    return f"{indices}mask = {_write_mask(joined, writing)}{why or _mask_convention_comment(writing)}"


def has_position_based_cells(structure: Structure) -> bool:
    """Whether its cells are written by positions, and not by documents alone."""
    joined = bool(structure.starts and structure.shared)
    return joined or bool(write_structure_cells(dataclasses.replace(structure, starts=())))


def write_structure_cells(
    structure: Structure, same_document: str = "(document[K - Q:, None] == document)", first: str = "0"
) -> str:
    """Return the allowed cells of a structure, by the positions i of queries and j of keys; empty where all are.

    Chunks and blocks count from the key ``first``.
    """
    i, j = ("i", "j") if first == "0" else (f"(i - {first})", f"(j - {first})")
    chunks = f"({i} // {structure.chunk} == {j} // {structure.chunk})" if structure.chunk else ""
    parts = [_write_unchunked_cells(structure, i, j), chunks, same_document if structure.starts else ""]
    cells = " & ".join(part for part in parts if part)
    ahead = "" if structure.hi is None else f" & (j - i <= {structure.hi})" if structure.hi else " & (j <= i)"
    if cells and structure.shared:
        shared = [f"(j >= {first}) & (j < {end}){ahead}" for first, end in structure.shared]
        cells = f"({' | '.join([cells, *shared])})"
    tree = _write_draft_tree_cells(structure.tree)
    return f"{cells} & {tree}" if tree else cells


def _write_draft_tree_cells(tree: tuple[int, ...]) -> str:
    """Return the cells of a draft tree: the text before it, and of the tree each token's ancestors and itself."""
    if not tree:
        return ""
    size, related = len(tree), []
    for token in range(size):
        above = tree[token]
        while above:
            related.append(f"(i == K - {size - token}) & (j == K - {size - above + 1})")
            above = tree[above - 1]
    return f"({' | '.join([f'(j < K - {size})', '(i == j)', *related])})"


def _write_unchunked_cells(structure: Structure, i: str, j: str) -> str:
    """Return the allowed cells without the chunks of the structure; ``i`` and ``j`` are what blocks count."""
    lo, hi = structure.lo, structure.hi
    past = f"(i - j < {1 - lo})" if lo is not None else ""
    if past and structure.sinks:
        past = f"({past} | (j < {structure.sinks}))"
    ahead = "" if hi is None else "(j <= i)" if hi == 0 else f"(j - i <= {hi})"
    ahead = f"({j} // {structure.block} <= {i} // {structure.block})" if structure.block else ahead
    cells = " & ".join(part for part in (ahead, past) if part)
    if lo is not None and hi == -lo and not structure.sinks:
        cells = f"((i - j).abs() < {1 - lo})"
    near = f" & (i - j < {1 - lo})" if lo is not None else ""
    more = [f"((i >= {a}) & (i < {b}) & (j >= {a}) & (j < {b}){near})" for a, b in structure.spans]
    more += [f"(j < {structure.prefix})"] if structure.prefix else []
    if not cells or not more:
        return cells
    first = f"({cells})" if " & " in cells else cells
    return f"({' | '.join([first, *more])})"
