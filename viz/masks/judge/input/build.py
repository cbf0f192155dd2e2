"""A mask from a rule, written and read as real interfaces do, with an attention call run on it."""

from __future__ import annotations

import numpy as np
import streamlit as st

from model.language.say import listed, say, to_say
from model.masking.padding import PaddingSide
from model.masking.rule import KINDS, RuleError, Sizes, build_mask, read_lengths
from model.masking.toy_attention import (
    MaskRunError,
    interpret,
    random_scores,
    run,
    write,
)

from ....ui import widgets
from ....ui.addresses.masks import FORMAT, HEADS, KEYS, LENGTHS, PAD_SIDE, QUERIES, READER, RULE, WRITTEN
from ....ui.captions import caption, plain
from ....ui.url_state.kinds import Number
from .edits import turned_cells
from .mask_input import MaskInput

EXPLAINED = to_say(
    "A rule is made of {kinds}, joined by and, or, not and brackets. More keys than queries is a cache; "
    "without a causal part it is cross-attention. Scores are random and stand in for a model's."
)


def mask_input() -> MaskInput | None:
    """Draw the controls of a mask and run an attention call on it; None where the rule or the call fails."""
    rule = widgets.text_input(say("A query may attend where"), RULE)
    with st.container(key="pieces", horizontal=True, vertical_alignment="center", gap="small"):
        for kind in KINDS:
            st.button(kind, key=f"piece-{kind}", on_click=_add, args=(kind,))
    queries, keys, heads = _sizes()
    lengths, side = _samples(keys)
    with st.container(key="mask-writing"):
        writing = widgets.selectbox(say("Written as"), WRITTEN, width=400)
        reader = widgets.selectbox(say("Read by"), READER, width=400)
        form = widgets.selectbox(say("Scores in"), FORMAT, width=400)
    try:
        sizes = Sizes(queries, keys, read_lengths(lengths, keys), side)
        meant = build_mask(rule, sizes)
        allowed, identity = _allowed(meant, heads)
        mask = write(allowed, writing)
        call = run(random_scores(len(meant), heads, queries, keys), mask, reader, form)
    except (RuleError, MaskRunError) as error:
        st.error(plain(str(error)))
        return None
    read_mask = interpret(mask, reader)
    arrays = {"weights": call.weights, "scores": call.scores, "masked_scores": call.masked_scores, "mask": read_mask}
    arrays |= {"meant": meant} | (_padding(sizes) if "padding" in rule else {})
    caption(say(EXPLAINED, kinds=listed(KINDS)))
    editable = frozenset({"given"})
    return MaskInput(identity, arrays, rule=rule.strip(), editable=editable, raw_mask=mask, reader=reader)


def _sizes() -> tuple[int, int, int]:
    """Queries, keys and heads."""
    with st.container(key="mask-sizes", horizontal=True, vertical_alignment="center"):
        queries = _number(say("Queries"), QUERIES)
        return queries, _number(say("Keys"), KEYS, queries), _number(say("Heads"), HEADS)


def _samples(keys: int) -> tuple[str, PaddingSide]:
    """The lengths of the samples as they were typed, and the side on which they are padded."""
    with st.container(key="mask-samples", horizontal=True, vertical_alignment="center"):
        lengths = widgets.text_input(say("Real keys a sample"), LENGTHS, f"{keys}, {max(1, keys - 2)}")
        return lengths, widgets.selectbox(say("padded at the"), PAD_SIDE, width=190)


def _allowed(meant: np.ndarray, heads: int) -> tuple[np.ndarray, str]:
    """The meant mask (B, 1, Q, K) for all heads (B, H, Q, K), with the cells that were turned over; its identity."""
    allowed = np.repeat(meant, heads, 1)
    identity = f"build {allowed.shape}"
    for sample, query, key in turned_cells(identity, "given", meant.shape):
        allowed[sample, :, query, key] ^= True
    return allowed, identity


def _padding(sizes: Sizes) -> dict[str, np.ndarray]:
    """Which keys are no padding, and in self-attention which queries."""
    keep = sizes.keep()
    return {"key_keep": keep} | ({"query_keep": keep} if sizes.queries == sizes.keys else {})


def _number(label: str, of: Number[int], default: int | None = None) -> int:
    return int(widgets.number_input(label, of, default, width=150))


def _add(kind: str) -> None:
    before = (st.session_state.get(RULE.key) or "").strip()
    st.session_state[RULE.key] = f"{before} and {kind}" if before else kind
