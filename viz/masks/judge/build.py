"""A mask from a rule, written and read as real interfaces do, with an attention call run on it."""

from __future__ import annotations

import numpy as np
import streamlit as st

from model.masking.rule import KINDS, RuleError, Sizes, build, read_lengths
from model.masking.toy_attention import (
    MaskRunError,
    interpret,
    random_scores,
    run,
    write,
)

from ...ui import widgets
from ...ui.addresses.masks import (
    FORMAT,
    HEADS,
    KEYS,
    LENGTHS,
    PAD_SIDE,
    QUERIES,
    READER,
    RULE,
    WRITTEN,
)
from ...ui.captions import caption, plain
from ...ui.url_state.kinds import Number
from .edits import turned_cells
from .input import Brought

EXPLAINED = (
    f"A rule is made of {', '.join(KINDS)}, joined by and, or, not and brackets. More keys than queries is a cache; "
    "without a causal part it is cross-attention. Scores are random and stand in for a model's."
)


def built() -> Brought | None:
    """The controls of a mask, and what comes of it; all of them are in the address."""
    rule = widgets.text_input("A query may attend where", RULE)
    with st.container(key="pieces", horizontal=True, vertical_alignment="center", gap="small"):
        for kind in KINDS:
            st.button(kind, key=f"piece-{kind}", on_click=_add, args=(kind,))
    with st.container(key="mask-sizes", horizontal=True, vertical_alignment="center"):
        queries = _number("Queries", QUERIES)
        keys = _number("Keys", KEYS, queries)
        heads = _number("Heads", HEADS)
    with st.container(key="mask-samples", horizontal=True, vertical_alignment="center"):
        lengths = widgets.text_input("Real keys a sample", LENGTHS, f"{keys}, {max(1, keys - 2)}")
        side = widgets.selectbox("padded at the", PAD_SIDE, width=190)
    with st.container(key="mask-writing"):
        writing = widgets.selectbox("Written as", WRITTEN, width=400)
        reader = widgets.selectbox("Read by", READER, width=400)
        form = widgets.selectbox("Scores in", FORMAT, width=400)
    try:
        sizes = Sizes(queries, keys, read_lengths(lengths, keys), side)
        meant = build(rule, sizes)
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
    if "padding" in rule:
        arrays["key_keep"] = sizes.keep()
    if queries == keys and "key_keep" in arrays:
        arrays["query_keep"] = sizes.keep()
    caption(EXPLAINED)
    return Brought(identity, arrays, rule=rule.strip(), editable=frozenset({"given"}), handed=mask, reader=reader)


def _number(label: str, of: Number[int], default: int | None = None) -> int:
    return int(widgets.number_input(label, of, default, width=150))


def _add(kind: str) -> None:
    before = (st.session_state.get(RULE.key) or "").strip()
    st.session_state[RULE.key] = f"{before} and {kind}" if before else kind
