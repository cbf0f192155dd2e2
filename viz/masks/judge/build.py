"""A mask from a rule, written and read as real interfaces do, with an attention call run on it."""

from __future__ import annotations

import numpy as np
import streamlit as st

from model.masking.padding import PaddingSide
from model.masking.rule import KINDS, MAX_SIZE, RuleError, Sizes, build_mask, read_lengths
from model.masking.toy_attention import (
    FORMATS,
    READER_NAMES,
    READERS,
    WRITING_NAMES,
    WRITINGS,
    MaskRunError,
    interpret,
    random_scores,
    run,
    write,
)

from ...ui.captions import caption, plain
from ...ui.controls import SHARED
from .edits import turned_cells
from .input import Brought

EXPLAINED = (
    f"A rule is made of {', '.join(KINDS)}, joined by and, or, not and brackets. More keys than queries is a cache; "
    "without a causal part it is cross-attention. Scores are random and stand in for a model's."
)
SIDES: tuple[PaddingSide, ...] = ("right", "left")


def built() -> Brought | None:
    """The controls of a mask, and what comes of it; all of them are in the address."""
    rule = st.text_input("A query may attend where", "causal and padding", key="rule", **SHARED)
    with st.container(key="pieces", horizontal=True, vertical_alignment="center", gap="small"):
        for kind in KINDS:
            st.button(kind, key=f"piece-{kind}", on_click=_add, args=(kind,))
    with st.container(key="mask-sizes", horizontal=True, vertical_alignment="center"):
        queries = _number("Queries", "queries", 6)
        keys = _number("Keys", "keys", queries)
        heads = _number("Heads", "n_heads", 1)
    with st.container(key="mask-samples", horizontal=True, vertical_alignment="center"):
        lengths = st.text_input("Real keys a sample", f"{keys}, {max(1, keys - 2)}", key="lengths", **SHARED)
        side: PaddingSide = st.selectbox("padded at the", SIDES, key="pad_side", width=190, **SHARED)
    with st.container(key="mask-writing"):
        writing = st.selectbox(
            "Written as", WRITINGS, format_func=WRITING_NAMES.__getitem__, key="written", width=400, **SHARED
        )
        reader = st.selectbox(
            "Read by", READERS, format_func=READER_NAMES.__getitem__, key="reader", width=400, **SHARED
        )
        form = st.selectbox("Scores in", FORMATS, key="mask_format", width=400, **SHARED)
    try:
        sizes = Sizes(queries, keys, read_lengths(lengths or "", keys), side)
        meant = build_mask(rule or "", sizes)
    except RuleError as error:
        st.error(plain(str(error)))
        return None
    allowed = np.repeat(meant, heads, 1)
    identity = f"build {allowed.shape}"
    for sample, query, key in turned_cells(identity, "given", meant.shape):
        allowed[sample, :, query, key] ^= True
    mask = write(allowed, writing)
    try:
        made = run(random_scores(len(meant), heads, queries, keys), mask, reader, form)
    except MaskRunError as error:
        st.error(plain(str(error)))
        return None
    arrays = {
        "weights": made.weights,
        "scores": made.scores,
        "masked_scores": made.masked_scores,
        "mask": interpret(mask, reader),
        "meant": meant,
    }
    if "padding" in (rule or ""):
        arrays["key_keep"] = sizes.keep()
    if queries == keys and "key_keep" in arrays:
        arrays["query_keep"] = sizes.keep()
    caption(EXPLAINED)
    return Brought(
        identity, arrays, rule=(rule or "").strip(), editable=frozenset({"given"}), handed=mask, reader=reader
    )


def _number(label: str, key: str, value: int) -> int:
    found = st.number_input(label, 1, MAX_SIZE, value, key=key, width=150, **SHARED)
    return value if found is None else int(found)


def _add(kind: str) -> None:
    before = (st.session_state.get("rule") or "").strip()
    st.session_state["rule"] = f"{before} and {kind}" if before else kind
