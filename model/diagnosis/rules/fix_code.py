"""The line of torch that fixes a fault, for the way in which the mask at hand is written.

A mask is True where a query may attend (``keeps``), True where it may not (``blocks``), or added to the scores
(``added``). The same line in another of these conventions would turn the mask around, or raise.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...masking.structure import CAUSAL, FULL, Structure
from ..inputs.arrays import Writing
from .fault_catalogue import FAULTS

_TRIANGLE = "torch.ones(Q, K, dtype=torch.bool).tril(K - Q)"
_FILL = 'float("-inf")'
_ALIGNED = "  # aligned at the bottom right"
_COLUMNS = "{name}[:, None, None, :]"
_OTHER_FORMS: dict[str, dict[Writing, str]] = {
    "inverted": {"added": f"mask = torch.zeros_like(mask).masked_fill(mask == 0, {_FILL})  # what was 0 is blocked"},
    "soft-mask": {"blocks": f"scores = scores.masked_fill(mask != 0, {_FILL})  # do not add a 0/1 mask"},
    "weak-fill": {
        "blocks": f"scores = scores.masked_fill(mask, {_FILL})",
        "added": f"mask = mask.masked_fill(mask < 0, {_FILL})",
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
    "mask-ignored": {
        "blocks": "out = F.scaled_dot_product_attention(q, k, v, attn_mask=~mask)  # True keeps there",
    },
}
"""Codes whose fix says something else than which cells are allowed, in the conventions in which it differs."""
_JOINED = {
    "future-visible": _TRIANGLE,
    "padding-visible": _COLUMNS.format(name="key_keep"),
    "window-missing": "(i - j < window)",
    "stale-cache": "(torch.arange(K) <= cache_position[:, None])",
    "document-leak": "(document[:, None, :, None] == document[:, None, None, :])",
    "leak": "meant",
}
"""Codes whose fix blocks what the mask leaves open: all but these cells."""
_REPLACED = {
    "padding-swapped": (_COLUMNS.format(name="source_keep"), "  # padding of the keys, not of the queries"),
    "wrong-axis": (_COLUMNS.format(name="key_keep"), "  # (B, 1, 1, K): one row of keys for each sample"),
    "top-left-causal": (_TRIANGLE, _ALIGNED),
    "window-off-by-one": ("(i - j < window) & (j <= i)", "  # the window counts the query itself"),
}
"""Codes whose fix is another mask: the cells it allows, and why."""
_OF_STRUCTURE = (
    *("window-missing", "future-visible", "window-off-by-one", "document-leak"),
    *("leak", "over-blocked", "mask-ignored"),
)
"""Codes whose fix can be built from the mask that was meant."""
_INDICES = "i, j = torch.arange(K - Q, K)[:, None], torch.arange(K)"


def fix_line(code: str, writing: Writing, structures: Sequence[Structure] = (), padded: bool = False) -> str:
    """Return the line that fixes ``code`` in a mask of this ``writing``.

    ``structures`` is what was meant, one for each sample, where that is known; ``padded`` says that keys are padding.
    """
    if code in _OF_STRUCTURE and len(set(structures)) == 1 and (code, structures[0]) != ("mask-ignored", CAUSAL):
        line = _construction(code, structures[0], writing, padded)
        if line:
            return line
    if line := _OTHER_FORMS.get(code, {}).get(writing, ""):
        return line
    if code in _JOINED:
        return f"mask = {_and(_JOINED[code], writing)}{_note(writing)}"
    if code in _REPLACED:
        cells, why = _REPLACED[code]
        return f"mask = {_write(cells, writing)}{why}"
    if code == "over-blocked":
        return {"keeps": "mask = mask | meant", "blocks": "mask = mask & ~meant"}.get(
            writing, "mask = mask.masked_fill(meant, 0.0)"
        )
    return FAULTS[code].fix


def _note(writing: Writing) -> str:
    return {"keeps": "  # True = may attend", "blocks": "  # True = blocked", "added": ""}[writing]


def _and(cells: str, writing: Writing) -> str:
    """Return the mask that blocks all but ``cells`` as well."""
    if writing == "added":
        return f"mask.masked_fill(~{cells}, {_FILL})"
    return f"mask & {cells}" if writing == "keeps" else f"mask | ~{cells}"


def _write(cells: str, writing: Writing) -> str:
    """Return the mask that allows ``cells`` and nothing else."""
    if writing == "keeps":
        return cells
    inner = cells if cells.startswith("torch.ones") or " " not in cells.partition("[")[0] else f"({cells})"
    return f"~{inner}" if writing == "blocks" else f"torch.zeros({inner}.shape).masked_fill(~{inner}, {_FILL})"


def _construction(code: str, structure: Structure, writing: Writing, padded: bool) -> str:
    """Return the line that builds the meant mask anew; empty where adding its causal part is enough."""
    if structure == CAUSAL and code in ("future-visible", "leak"):
        return "" if code == "future-visible" else f"mask = {_and(_TRIANGLE, writing)}{_note(writing)}"
    if code == "mask-ignored":
        return ""
    cells = band(structure)
    parts = [cells, "(document[:, None] == document)" if structure.starts else ""]
    parts = [part for part in (*parts, _COLUMNS.format(name="key_keep") if padded else "") if part]
    if not parts:
        return f"mask = {_write('torch.ones(Q, K, dtype=torch.bool)', writing)}  # every key: no causal part here"
    indices = f"{_INDICES}; " if cells else ""
    why = "  # every real key: no causal part here" if structure == FULL else ""
    return f"{indices}mask = {_write(' & '.join(parts), writing)}{why or _note(writing)}"


def band(structure: Structure) -> str:
    """Return the allowed cells of a structure without its documents, by the positions i of queries and j of keys."""
    cells = _band(structure)
    if not structure.chunk:
        return cells
    chunks = f"(i // {structure.chunk} == j // {structure.chunk})"
    return f"{cells} & {chunks}" if cells else chunks


def _band(structure: Structure) -> str:
    """The same without its chunks."""
    lo, hi = structure.lo, structure.hi
    past = f"(i - j < {1 - lo})" if lo is not None else ""
    if past and structure.sinks:
        past = f"({past} | (j < {structure.sinks}))"
    ahead = "" if hi is None else "(j <= i)" if hi == 0 else f"(j - i <= {hi})"
    cells = " & ".join(part for part in (ahead, past) if part)
    if lo is not None and hi == -lo and not structure.sinks:
        cells = f"((i - j).abs() < {1 - lo})"
    more = [f"((i >= {a}) & (i < {b}) & (j >= {a}) & (j < {b}))" for a, b in structure.spans]
    more += [f"(j < {structure.prefix})"] if structure.prefix else []
    if not cells or not more:
        return cells
    first = f"({cells})" if " & " in cells else cells
    return f"({' | '.join([first, *more])})"
