"""How the arrays that a person hands over are read: what each one is, of which attention, and what mask was meant."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import get_args

import numpy as np
import streamlit as st

from model.diagnosis import DiagnosisError, arrange
from model.diagnosis.inputs.roles import FLIPPED, ROLE_NAMES, ROLES, Guess, Role, guess, in_role
from model.diagnosis.readers.axes import ambiguous, in_words
from model.diagnosis.readers.files import Contents
from model.language.say import say, sentences
from model.trace import Kind
from model.untrusted_trace import clean_tokens

from ....traces.session import MOST_CELLS
from ....ui import widgets
from ....ui.captions import caption, plain
from .mask_input import MaskInput

KINDS: tuple[str, ...] = get_args(Kind)
MEANT = (
    *("full", "causal", "causal+window:4", "causal+window:4+sinks:1", "prefix:2", "causal+span:2-4"),
    *("causal+chunked:4", "packed:3,3", "causal+window:4 / causal"),
)


def interpret(contents: Contents, identity: str) -> MaskInput | None:
    """Draw what each array is read as, of which attention it is and what mask was meant, and let all be changed."""
    arrays = contents.arrays
    largest = max(array.size for array in arrays.values())
    if largest > MOST_CELLS:
        st.error(
            say(
                "An array has {cells:,} cells; this page takes {most:,}. Use python -m model diagnose.",
                cells=largest,
                most=MOST_CELLS,
            )
        )
        return None
    with st.container(key="roles"):
        roles = {name: _role(name, array, identity) for name, array in arrays.items()} if not contents.map else {}
        named, kind = _meaning(contents.map, identity)
    notes = [note for name in roles if (note := _note(name, roles[name]))]
    place = st.container(key="read-as")
    try:
        named_arrays = dict(in_role(array, roles[name][0]) for name, array in arrays.items()) if roles else dict(arrays)
        if len(named_arrays) < len(arrays):
            raise DiagnosisError(say("Two arrays are read as the same thing. Say above what each of them is."))
        mask = _mask_input(named_arrays, kind, named, f"{identity} {kind}")
    except DiagnosisError as error:
        st.error(plain(str(error)))
        return None
    with place:
        caption(sentences(*notes, *mask.notes))
    queries, keys = map(clean_tokens, contents.tokens)
    blocks = any(role == "mask blocks" for role, _ in roles.values())
    return replace(mask, tokens=(queries, keys), blocks=blocks, calls=contents.calls, passed=contents.passed)


def _meaning(kind: str, identity: str) -> tuple[str | None, str]:
    """What was meant, and of which attention the map is: a mask that is right for one is wrong for another."""
    named = widgets.offer(
        st.selectbox,
        say("Meant"),
        MEANT,
        index=None,
        key="mask_meant",
        placeholder=say("not said: guess it"),
        accept_new_options=True,
        width=270,
    )
    if kind:
        return named, kind
    chosen = widgets.offer(
        st.selectbox,
        say("Attention"),
        KINDS,
        None,
        say,
        key=_key("map", identity),
        placeholder=say("not said"),
        width=270,
    )
    return named, chosen or ""


def _key(what: str, identity: str) -> str:
    """The key of a widget that begins anew with every mask."""
    return f"{what}-{hashlib.sha1(identity.encode()).hexdigest()[:12]}"


def _mask_input(arrays: dict[str, np.ndarray], kind: str, named: str | None, identity: str) -> MaskInput:
    notes = []
    if not {"weights", "mask", "masked_scores"} & set(arrays):
        if "key_keep" not in arrays:
            raise DiagnosisError(say("There is nothing to judge yet: add weights, a mask, or scores after the mask."))
        keep = np.atleast_2d(arrays["key_keep"])
        if keep.size * keep.shape[-1] > MOST_CELLS:
            raise DiagnosisError(
                say(
                    "A mask of these {keys:,} keys would have {cells:,} cells; this page takes {most:,}.",
                    keys=keep.shape[-1],
                    cells=keep.size * keep.shape[-1],
                    most=MOST_CELLS,
                )
            )
        arrays["mask"] = np.repeat(keep[:, None, None, :], keep.shape[1], 2)
        notes.append(say("Only key padding was given, so the mask is the one that it makes."))
    sizes = arrange(arrays, kind).sizes
    read_as = [in_words(name, array.shape, sizes) for name, array in arrays.items()]
    doubts = [ambiguous(name, array.shape, sizes) for name, array in arrays.items()]
    editable = {"meant"} if "weights" in arrays or "mask" not in arrays else {"meant", "given"}
    every = (*notes, *read_as, *filter(None, doubts))
    return MaskInput(identity, arrays, kind, named or None, notes=tuple(every), editable=frozenset(editable))


def _role(name: str, array: np.ndarray, identity: str) -> tuple[Role, Guess]:
    found = guess(array, name)
    label = plain(name) if name else say("Read as")
    first = [found.role, FLIPPED[found.role]] if found.role in FLIPPED else [found.role]
    options = [*first, *(role for role in ROLES if role not in first)]
    chosen = widgets.offer(
        st.selectbox,
        label,
        options,
        format_func=lambda role: say(ROLE_NAMES[role]),
        key=_key(f"role-{name}", identity),
        width=340,
    )
    return chosen, found


def _note(name: str, chosen: tuple[Role, Guess]) -> str:
    """How sure the guess is, where it is one; nothing for an array that says by its name what it is."""
    role, found = chosen
    if role != found.role:
        is_read = say(ROLE_NAMES[role])
        return (
            say("You say that {name} is: {role}.", name=name, role=is_read)
            if name
            else say("You say that the array is: {role}.", role=is_read)
        )
    if found.by_name:
        return ""
    return say(
        "Taken for {role}: {sure:.0%} sure, since {why}.", role=say(ROLE_NAMES[role]), sure=found.sure, why=found.why
    )
