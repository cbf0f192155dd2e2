"""The arrays of a mask to be judged, how they are interpreted, and the edits that a visitor makes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import streamlit as st

from attenscope.language import join_sentences, say
from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.arrays import (
    ARRAY_ROLES,
    OPPOSITE_ROLES,
    ROLE_NAMES,
    ArrayRole,
    DiagnosisError,
    RoleGuess,
    convert_to_role,
    guess_role,
)
from attenscope.masks.attention_call_origin import AttentionCall
from attenscope.masks.diagnosis_checks import convert_cu_seqlens_to_meant
from attenscope.masks.read_files import MapContents, PassedMasks
from attenscope.masks.read_text import ambiguous_axes_text, describe_axes
from attenscope.masks.toy_attention import MaskReader
from attenscope.trace import KINDS
from attenscope.untrusted_trace import normalize_token_spaces
from attenscope.viz.streamlit_internals import is_history_navigation
from attenscope.viz.traces.session import MOST_ARRAY_CELLS
from attenscope.viz.ui import controls
from attenscope.viz.ui.addresses.masks import MASKS_ATTENTION, MASKS_CHANGED_CELLS, MASKS_MEANT
from attenscope.viz.ui.captions import draw_caption, escape_markdown, escape_message


@dataclass(frozen=True, eq=False)
class MaskInput:
    """The arrays of one attention map that are to be judged."""

    identity: str
    """Names the mask; a visitor's edits belong to it."""
    arrays: Mapping[str, np.ndarray]
    """Under the names of a diagnosis, in its conventions."""
    map: str = ""
    """encoder, decoder or cross, where that is known."""
    named: str | None = None
    """The meant mask, as :func:`model.masks.structure.parse_structure` reads it, where the person named it."""
    rule: str = ""
    """The rule that the mask was built from, where there is one."""
    notes: tuple[str, ...] = ()
    """How it was read, a sentence each."""
    editable: frozenset[str] = frozenset()
    """Pictures whose cells can be turned over: ``meant``, ``given``."""
    raw_mask: np.ndarray | None = None
    """The mask exactly as a program would hand it over, where that is known."""
    reader: MaskReader = "sdpa"
    """Who reads it."""
    blocks: bool = False
    """Whether the mask was written as True = blocked: then so are the fixes."""
    calls: tuple[AttentionCall, ...] = ()
    """Where in the code each layer called attention, where a trace knows it."""
    passed: PassedMasks | None = None
    """The masks that these calls were given beside those in force, where a trace knows them."""
    tokens: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """The tokens of the queries and of the keys, where they are known."""
    by_hand: bool = False
    """Whether the person chose what an array is, or a map of several: a page that opens the files reads them else."""


# How the arrays are read: what each one is, of which attention, and what mask was meant.


MEANT_EXAMPLES = (
    *("full", "causal", "causal+window:4", "causal+window:4+sinks:1", "prefix:2", "causal+span:2-4"),
    *("causal+chunked:4", "packed:3,3", "causal+window:4 / causal"),
)


def draw_array_interpretation(contents: MapContents, identity: str) -> MaskInput | None:
    """Draw what each array is read as, of which attention it is and what mask was meant, and let all be changed."""
    arrays = contents.arrays
    largest = max(array.size for array in arrays.values())
    if largest > MOST_ARRAY_CELLS:
        st.error(
            say(
                "An array has {cells:,} cells; this page takes {most:,}. Use python -m model diagnose.",
                cells=largest,
                most=MOST_ARRAY_CELLS,
            )
        )
        return None
    with st.container(key="roles"):
        roles = (
            {name: _choose_array_role(name, array, identity) for name, array in arrays.items()}
            if not contents.map
            else {}
        )
        named, kind = _choose_intended_mask_and_kind(contents.map, identity)
    notes = [note for name in roles if (note := _describe_role_guess(name, roles[name]))]
    place = st.container(key="read-as")
    try:
        named_arrays = (
            dict(convert_to_role(array, roles[name][0]) for name, array in arrays.items()) if roles else dict(arrays)
        )
        if len(named_arrays) < len(arrays):
            raise DiagnosisError(say("Two arrays are read as the same thing. Say above what each of them is."))
        named_arrays, named = convert_cu_seqlens_to_meant(named_arrays, named)
        mask = _build_mask_input(named_arrays, kind, named, f"{identity} {kind}")
    except DiagnosisError as error:
        st.error(escape_message(str(error)))
        return None
    with place:
        draw_caption(join_sentences(*notes, *mask.notes))
    queries, keys = map(normalize_token_spaces, contents.tokens)
    blocks = any(role == "mask blocks" for role, _ in roles.values())
    by_hand = any(role != found.role for role, found in roles.values())
    read = replace(mask, tokens=(queries, keys), blocks=blocks, by_hand=by_hand)
    return replace(read, calls=contents.calls, passed=contents.passed)


def _choose_intended_mask_and_kind(kind: str, identity: str) -> tuple[str | None, str]:
    """What was meant, and of which attention the map is: a mask that is right for one is wrong for another."""
    MASKS_MEANT.hold()
    named = controls.draw_untranslated_choice(
        st.selectbox,
        say("Meant"),
        MEANT_EXAMPLES,
        index=None,
        **MASKS_MEANT.synced_widget_arguments,
        placeholder=say("not said: guess it"),
        accept_new_options=True,
        width=270,
    )
    if kind:
        return named, kind
    key = _make_widget_key("map", identity)
    st.session_state[key] = MASKS_ATTENTION.hold(of=identity)
    return named, controls.draw_untranslated_choice(
        st.selectbox,
        say("Attention"),
        KINDS,
        None,
        say,
        key=key,
        on_change=lambda: MASKS_ATTENTION.set(st.session_state[key], identity),
        placeholder=say("not said"),
        width=270,
    ) or ""


def _make_widget_key(what: str, identity: str) -> str:
    """The key of a widget that begins anew with every mask."""
    return f"{what}-{hashlib.sha1(identity.encode()).hexdigest()[:12]}"


def _build_mask_input(arrays: dict[str, np.ndarray], kind: str, named: str | None, identity: str) -> MaskInput:
    notes = []
    if not {"weights", "mask", "masked_scores"} & set(arrays):
        if "key_keep" not in arrays:
            raise DiagnosisError(say("There is nothing to judge yet: add weights, a mask, or scores after the mask."))
        keep = np.atleast_2d(arrays["key_keep"])
        if keep.size * keep.shape[-1] > MOST_ARRAY_CELLS:
            raise DiagnosisError(
                say(
                    "A mask of these {keys:,} keys would have {cells:,} cells; this page takes {most:,}.",
                    keys=keep.shape[-1],
                    cells=keep.size * keep.shape[-1],
                    most=MOST_ARRAY_CELLS,
                )
            )
        arrays["mask"] = np.repeat(keep[:, None, None, :], keep.shape[1], 2)
        notes.append(say("Only key padding was given, so the mask is the one that it makes."))
    sizes = normalise_arrays(arrays, kind).sizes
    read_as = [describe_axes(name, array.shape, sizes) for name, array in arrays.items()]
    doubts = [ambiguous_axes_text(name, array.shape, sizes) for name, array in arrays.items()]
    editable = {"meant"} if "weights" in arrays or "mask" not in arrays else {"meant", "given"}
    every = (*notes, *read_as, *filter(None, doubts))
    return MaskInput(identity, arrays, kind, named or None, notes=tuple(every), editable=frozenset(editable))


def _choose_array_role(name: str, array: np.ndarray, identity: str) -> tuple[ArrayRole, RoleGuess]:
    found = guess_role(array, name)
    label = escape_markdown(name) if name else say("Read as")
    first = [found.role, OPPOSITE_ROLES[found.role]] if found.role in OPPOSITE_ROLES else [found.role]
    options = [*first, *(role for role in ARRAY_ROLES if role not in first)]
    chosen = controls.draw_untranslated_choice(
        st.selectbox,
        label,
        options,
        format_func=lambda role: say(ROLE_NAMES[role]),
        key=_make_widget_key(f"role-{name}", identity),
        width=340,
    )
    return chosen, found


def _describe_role_guess(name: str, chosen: tuple[ArrayRole, RoleGuess]) -> str:
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


# The edits of a visitor to the mask on the page: cells turned over, fixes applied, a finding pointed at.
#
# All of it belongs to one mask, named by its identity, and is forgotten with it. Cells of a built mask are in the
# address too: ``cells=1.3.5,1.4.5`` (sample, query, key, from 1).


EDITS_KEY = "mask_edits"
"""Session key of the edits of the mask on the page."""


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


def load_edits(identity: str) -> Edits:
    """The edits of the mask with this identity; another one starts with none."""
    found = st.session_state.get(EDITS_KEY)
    return found if isinstance(found, Edits) and found.identity == identity else Edits(identity)


def forget_edits() -> None:
    """Start anew: the same mask, given again, is judged as it was given."""
    if EDITS_KEY in st.session_state:
        _store_edits(Edits(""))


def list_flipped_cells(identity: str, picture: str, shape: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Cells of one picture that were turned over and lie inside (B, H, Q, K), sorted."""
    _read_flipped_cells_from_address(identity, picture)
    samples, _, queries, keys = shape
    found = [cell[1:] for cell in load_edits(identity).cells if cell[0] == picture]
    return sorted(cell for cell in found if cell[0] < samples and cell[1] < queries and cell[2] < keys)


def flip_cell(identity: str, picture: str, sample: int, query: int, key: int) -> None:
    """Turn a cell over, or back; for callbacks."""
    before = load_edits(identity)
    cells = before.cells ^ {(picture, sample, query, key)}
    _store_edits(replace(before, cells=cells, fixes=()))


def apply_finding_fix(identity: str, code: str) -> None:
    """Apply the fix of a finding; for callbacks."""
    before = load_edits(identity)
    _store_edits(replace(before, fixes=(*before.fixes, code), marked=((), ())))


def undo_last_fix(identity: str) -> None:
    """Take the last fix back; for callbacks."""
    before = load_edits(identity)
    _store_edits(replace(before, fixes=before.fixes[:-1], marked=((), ())))


def reset_flipped_cells(identity: str) -> None:
    """Turn every cell back; for callbacks."""
    _store_edits(replace(load_edits(identity), cells=frozenset(), fixes=()))


def toggle_marked_cells(identity: str, queries: tuple[int, ...], keys: tuple[int, ...]) -> None:
    """Mark cells in the pictures, or no longer; for callbacks."""
    before = load_edits(identity)
    _store_edits(replace(before, marked=((), ()) if before.marked == (queries, keys) else (queries, keys)))


def _store_edits(new: Edits) -> None:
    st.session_state[EDITS_KEY] = new


def write_flipped_cells_to_address(identity: str, picture: str) -> None:
    """Keep the cells of a built mask in the address."""
    MASKS_CHANGED_CELLS.set(frozenset(cell[1:] for cell in load_edits(identity).cells if cell[0] == picture))


def _read_flipped_cells_from_address(identity: str, picture: str) -> None:
    """Read the cells of a link, or of the address that the Back button returns to."""
    if EDITS_KEY not in st.session_state or is_history_navigation():
        _store_edits(Edits(identity, frozenset((picture, *cell) for cell in MASKS_CHANGED_CELLS.value_in_address())))
