"""The four ways to enter a mask: pasted text, uploaded files, a rule, or the opened trace."""

from __future__ import annotations

import hashlib
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from attenscope.gallery.exhibits import PRINTED_EXAMPLES
from attenscope.language import current_language, join_items, say, to_say
from attenscope.masks.arrays import ARRAY_NAMES, DiagnosisError, is_known_array_name
from attenscope.masks.read_files import (
    FILE_ENDINGS,
    MAX_BINARY_BYTES,
    MapContents,
    TooLargeError,
    UnreadableError,
    extract_trace_maps,
    read_array_file,
)
from attenscope.masks.read_text import read_printed_tensors
from attenscope.masks.rule import MASK_KINDS, MaskSizes, RuleError, build_mask, parse_sample_lengths
from attenscope.masks.softmax import PaddingSide
from attenscope.masks.toy_attention import (
    MaskRunError,
    convert_mask_to_convention,
    draw_random_scores,
    interpret_mask,
    run_attention,
)
from attenscope.trace import AttentionMap, Kind
from attenscope.untrusted_trace import OpenError
from attenscope.viz.fair_queue import BusyError
from attenscope.viz.masks.mask_input import (
    MaskInput,
    draw_array_interpretation,
    forget_edits,
    list_flipped_cells,
)
from attenscope.viz.traces.session import (
    MOST_ARRAY_CELLS,
    PASTED_MASK_KEY,
    UPLOADED_MASKS_KEY,
    get_array_bytes_owner,
    get_open_arrays_file,
    get_open_trace,
    open_uploaded_trace,
)
from attenscope.viz.traces.upload_store import UploadStoreError, get_array_bytes_counter
from attenscope.viz.traces.verdict import compute_verdicts
from attenscope.viz.ui import controls
from attenscope.viz.ui.address import NumberParameter
from attenscope.viz.ui.addresses.masks import (
    MASKS_FORMAT,
    MASKS_HEAD_COUNT,
    MASKS_KEY_COUNT,
    MASKS_LENGTHS,
    MASKS_PADDING_SIDE,
    MASKS_PART,
    MASKS_QUERY_COUNT,
    MASKS_READER,
    MASKS_RULE,
    MASKS_SOURCE,
    MASKS_WRITING,
)
from attenscope.viz.ui.captions import draw_caption, escape_markdown, escape_message
from attenscope.viz.web.page_components import submit_on_paste
from attenscope.viz.worker_process import call_here_if_short

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

# Pasted text.


SHORT_TEXT_LENGTH = 2**14
"""Characters of a text that is read at once; a longer one is read by the worker process, in turn."""
PASTE_PLACEHOLDER = "tensor([[ True, False],\n        [ True,  True]])"


def draw_paste_input() -> MaskInput | None:
    """Draw the box for a printed tensor, with what its arrays were read as; None where there is nothing to judge."""
    submit_on_paste(PASTED_MASK_KEY)
    text = st.text_area(
        say("Printed tensor"),
        key=PASTED_MASK_KEY,
        height=190,
        placeholder=PASTE_PLACEHOLDER,
        label_visibility="collapsed",
        persist_state="session",  # Who looks at another page finds it again.
    )
    if not (text or "").strip():
        forget_edits()
        draw_caption(
            say(
                "Paste what torch, numpy or a nested list printed. Several arrays need a name each: weights = …, "
                "mask = …, key_keep = …; known names are {names} and torch's key_padding_mask.",
                names=join_items(ARRAY_NAMES),
            )
        )
        if st.button(say("Only a picture? Find the fault by what you see"), key="by-sight", on_click=_open_gallery):
            st.rerun()
        return None
    try:
        contents = _read_pasted_arrays(text or "")
    except (DiagnosisError, BusyError) as error:
        st.error(escape_message(str(error)))
        return None
    return draw_array_interpretation(contents, hashlib.sha1((text or "").encode("utf-8", "replace")).hexdigest())


def _read_pasted_arrays(text: str) -> MapContents:
    """The arrays of a text; what was read is kept for this visitor until they paste another. DiagnosisError.

    It is kept for one language, as an error is a sentence.
    """
    asked = text, current_language()
    kept = st.session_state.get("mask_pasted", (None, ""))
    if kept[0] != asked:
        st.session_state.pop("mask_pasted", None)
        try:
            is_short = len(text) <= SHORT_TEXT_LENGTH
            arrays = call_here_if_short(is_short, read_printed_tensors, text)
            found: MapContents | str = MapContents("", arrays)
        except DiagnosisError as error:
            found = str(error)
        kept = st.session_state["mask_pasted"] = (asked, found)
    if isinstance(kept[1], str):
        raise DiagnosisError(kept[1])
    return kept[1]


def _open_gallery() -> None:
    st.session_state[MASKS_PART.key] = "gallery"


def load_broken_example(name: str) -> None:
    """Load a broken case into the box; for callbacks."""
    st.session_state[PASTED_MASK_KEY] = PRINTED_EXAMPLES[name]()
    st.session_state[MASKS_SOURCE.key] = "paste"


# Uploaded files.


MAX_FILES, MAX_FILE_MEGABYTES = 32, 64
_UPLOADER_KEY, _STAYED_KEY = "mask_files", "stayed mask files"
SHORT_FILE_BYTES = 2**14
"""Bytes of a file that is read at once; a longer one is read by the worker process, in turn."""


def draw_upload_input() -> MaskInput | None:
    """Draw the place to drop files, a sentence for each that cannot be read, and the choice among all maps."""
    handed = get_open_arrays_file()
    files = [handed] if handed else _draw_uploader()
    most = min(MAX_FILE_MEGABYTES, controls.max_upload_megabytes())
    draw_caption(
        say(
            "Read are {endings} and saved traces, up to {most} MB. Nothing in a file is ever executed.",
            endings=join_items(FILE_ENDINGS),
            most=most,
        )
    )
    _forget_outdated_readings(files[:MAX_FILES])
    found, refused = _read_all_files(files[:MAX_FILES])
    if len(files) > MAX_FILES:
        refused.append(say("{count} files were given; the first {most} are read.", count=len(files), most=MAX_FILES))
    if refused:
        st.error("  \n".join(escape_markdown(one) for one in refused))
    if not found:
        return None
    chosen = next(iter(found))
    if len(found) > 1:
        _choose_newest_map(files, found)
        chosen = (
            controls.draw_untranslated_choice(st.selectbox, say("File"), list(found), key="mask_file", width=420)
            or chosen
        )
    contents = found[chosen]
    for note in contents.notes:
        draw_caption(note)
    if contents.tokens[1]:
        draw_caption(say("This is a saved trace: Explore shows it as well."))
    read = draw_array_interpretation(contents, f"file {chosen} {[one.file_id for one in files]}")
    return replace(read, by_hand=True) if read and chosen != next(iter(found)) else read


def _draw_uploader() -> list[UploadedFile]:
    """Draw the place to drop files, and return them with those that stayed: one that is not drawn forgets its files."""

    def take_over() -> None:
        st.session_state[UPLOADED_MASKS_KEY] = [*st.session_state[_STAYED_KEY], *st.session_state[_UPLOADER_KEY]]

    def remove(file: UploadedFile) -> None:
        st.session_state[UPLOADED_MASKS_KEY].remove(file)

    new: list[UploadedFile] = controls.file_uploader(
        say("Files"),
        MAX_FILE_MEGABYTES,
        accept_multiple_files=True,
        key=_UPLOADER_KEY,
        label_visibility="collapsed",
        on_change=take_over,
    )
    here = {file.file_id for file in new}
    stayed = [file for file in st.session_state.get(UPLOADED_MASKS_KEY, []) if file.file_id not in here]
    st.session_state[_STAYED_KEY], st.session_state[UPLOADED_MASKS_KEY] = stayed, [*stayed, *new]
    for file in stayed:
        st.button(
            f"{escape_markdown(file.name)} ✕",
            key=f"remove {file.file_id}",
            help=say("Remove this file"),
            on_click=remove,
            args=(file,),
        )
    return [*stayed, *new]


def _choose_newest_map(files: list[UploadedFile], found: dict[str, MapContents]) -> None:
    """Choose the first map of a file that was not there before, and leave a choice that is still there alone."""
    seen = st.session_state.get("mask_files_seen", frozenset())
    st.session_state["mask_files_seen"] = frozenset(file.file_id for file in files)
    new = [file.name for file in files if file.file_id not in seen]
    names = [name for name in found if new and name.startswith(new[-1])]
    if names or st.session_state.get("mask_file") not in found:
        st.session_state["mask_file"] = names[0] if names else next(iter(found))


def _read_all_files(files: list[UploadedFile]) -> tuple[dict[str, MapContents], list[str]]:
    """The maps of all files by a name for each, and a sentence for every file that cannot be read."""
    found: dict[str, MapContents] = {}
    refused = []
    for file in files:
        try:
            maps = _read_uploaded_file_cached(file, len(files) == 1)
        except UnreadableError as error:
            refused.append(say("{file}: {error}", file=file.name, error=error))
            continue
        for one in maps:
            name = f"{file.name} · {one.map}" if one.map else file.name
            found[name if name not in found else f"{name} ({len(found) + 1})"] = one
    return found, refused


def _read_uploaded_file_cached(file: UploadedFile, alone: bool) -> list[MapContents]:
    """The maps of an uploaded file; what was read is kept for this visitor as long as the file is.

    Of a file that is refused its sentence alone is kept: an error would keep everything that was read until then.
    """
    kept = st.session_state["mask_read"]
    if file.file_id not in kept:
        try:
            kept[file.file_id] = current_language(), _read_upload_via_temporary_file(file, alone)
        except (UploadStoreError, BusyError) as error:  # Another time there may be place.
            raise UnreadableError(str(error)) from None
        except UnreadableError as error:
            kept[file.file_id] = current_language(), str(error)
    _, found = kept[file.file_id]
    if isinstance(found, str):
        raise UnreadableError(found)
    return found


def _forget_outdated_readings(files: list[UploadedFile]) -> None:
    """Drop what was read of files that are no longer there, and sentences in another language than the present one.

    It is dropped in place: a new value would leave the old one in the session until the run ends. Of a trace, which
    would be opened again, there are no sentences.
    """
    kept, there = st.session_state.setdefault("mask_read", {}), {file.file_id for file in files}
    for name, (language, found) in list(kept.items()):
        has_sentences = isinstance(found, str) or any(one.notes for one in found)
        if name not in there or (has_sentences and language != current_language()):
            del kept[name]


def _read_upload_via_temporary_file(file: UploadedFile, alone: bool) -> list[MapContents]:
    """Read an uploaded file by way of a file of our own naming: the visitor's name is never a path.

    Raises UnreadableError, UploadStoreError, BusyError.
    """
    given = Path(file.name)
    ending = given.suffix if re.fullmatch(r"\.\w{1,16}", given.suffix) else ""
    stem = given.stem if is_known_array_name(given.stem) else "array"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{stem}{ending}"
        path.write_bytes(file.getbuffer())
        left = get_array_bytes_counter().count_free_bytes(get_array_bytes_owner())
        try:
            is_short = path.stat().st_size <= SHORT_FILE_BYTES
            maps = call_here_if_short(is_short, read_array_file, path, left, MOST_ARRAY_CELLS)
        except UnreadableError as error:
            if isinstance(error.__cause__, TooLargeError) and left < MAX_BINARY_BYTES:
                raise get_array_bytes_counter().refusal(get_array_bytes_owner()) from None
            raise
        for one in maps:
            for name, array in one.arrays.items():
                if array.dtype.kind not in "biuf" or not array.size:
                    raise UnreadableError(say("{name} holds no numbers.", name=name))
            get_array_bytes_counter().count(
                get_array_bytes_owner(), one, sum(array.nbytes for array in one.arrays.values())
            )
    if maps[0].tokens[1]:
        share_trace_with_explore(file.name, file.getbuffer(), alone=alone)
    return maps


# A rule: a mask is built, written and read as real interfaces do, and an attention call is run on it.


RULE_HINT = to_say(
    "A rule is made of {kinds}, joined by and, or, not and brackets. More keys than queries is a cache; "
    "without a causal part it is cross-attention. Scores are random and stand in for a model's."
)


def draw_rule_input() -> MaskInput | None:
    """Draw the controls of a mask and run an attention call on it; None where the rule or the call fails."""
    rule = controls.text_input(say("A query may attend where"), MASKS_RULE)
    with st.container(key="pieces", horizontal=True, vertical_alignment="center", gap="small"):
        for kind in MASK_KINDS:
            st.button(kind, key=f"piece-{kind}", on_click=_add_rule_piece, args=(kind,))
    queries, keys, heads = _choose_query_key_head_counts()
    lengths, side = _choose_sample_lengths(keys)
    with st.container(key="mask-writing"):
        writing = controls.selectbox(say("Written as"), MASKS_WRITING, width=400)
        reader = controls.selectbox(say("Read by"), MASKS_READER, width=400)
        form = controls.selectbox(say("Scores in"), MASKS_FORMAT, width=400)
    try:
        sizes = MaskSizes(queries, keys, parse_sample_lengths(lengths, keys), side)
        meant = build_mask(rule, sizes)
        allowed, identity = _build_edited_mask(meant, heads)
        mask = convert_mask_to_convention(allowed, writing)
        call = run_attention(draw_random_scores(len(meant), heads, queries, keys), mask, reader, form)
    except (RuleError, MaskRunError) as error:
        st.error(escape_message(str(error)))
        return None
    read_mask = interpret_mask(mask, reader)
    arrays = {"weights": call.weights, "scores": call.scores, "masked_scores": call.masked_scores, "mask": read_mask}
    arrays |= {"meant": meant} | (_build_padding_arrays(sizes) if "padding" in rule else {})
    draw_caption(say(RULE_HINT, kinds=join_items(MASK_KINDS)))
    editable = frozenset({"given"})
    return MaskInput(identity, arrays, rule=rule.strip(), editable=editable, raw_mask=mask, reader=reader)


def _choose_query_key_head_counts() -> tuple[int, int, int]:
    """Queries, keys and heads."""
    with st.container(key="mask-sizes", horizontal=True, vertical_alignment="center"):
        queries = _draw_number_input(say("Queries"), MASKS_QUERY_COUNT)
        return (
            queries,
            _draw_number_input(say("Keys"), MASKS_KEY_COUNT, queries),
            _draw_number_input(say("Heads"), MASKS_HEAD_COUNT),
        )


def _choose_sample_lengths(keys: int) -> tuple[str, PaddingSide]:
    """The lengths of the samples as they were typed, and the side on which they are padded."""
    with st.container(key="mask-samples", horizontal=True, vertical_alignment="center"):
        lengths = controls.text_input(say("Real keys a sample"), MASKS_LENGTHS, f"{keys}, {max(1, keys - 2)}")
        return lengths, controls.selectbox(say("padded at the"), MASKS_PADDING_SIDE, width=190)


def _build_edited_mask(meant: np.ndarray, heads: int) -> tuple[np.ndarray, str]:
    """The meant mask (B, 1, Q, K) for all heads (B, H, Q, K), with the cells that were turned over; its identity."""
    allowed = np.repeat(meant, heads, 1)
    identity = f"build {allowed.shape}"
    for sample, query, key in list_flipped_cells(identity, "given", meant.shape):
        allowed[sample, :, query, key] ^= True
    return allowed, identity


def _build_padding_arrays(sizes: MaskSizes) -> dict[str, np.ndarray]:
    """Which keys are no padding, and in self-attention which queries."""
    keep = sizes.keep()
    return {"key_keep": keep} | ({"query_keep": keep} if sizes.queries == sizes.keys else {})


def _draw_number_input(label: str, of: NumberParameter[int], default: int | None = None) -> int:
    return int(controls.number_input(label, of, default, width=150))


def _add_rule_piece(kind: str) -> None:
    before = (st.session_state.get(MASKS_RULE.key) or "").strip()
    st.session_state[MASKS_RULE.key] = f"{before} and {kind}" if before else kind


# The opened trace, which Explore shows too.


TRACE_SOURCE = "opened trace"
_SEEN_TRACE_KEY = "mask-trace-seen"


def sync_mask_source_with_open_trace() -> bool:
    """Whether a trace is open. One that was opened since the last look is what the page begins with."""
    opened = get_open_trace()
    if opened is None:
        if st.session_state.get(MASKS_SOURCE.key) == TRACE_SOURCE:
            del st.session_state[MASKS_SOURCE.key]
        return False
    if st.session_state.get(_SEEN_TRACE_KEY) != opened.identity:
        st.session_state[_SEEN_TRACE_KEY] = opened.identity
        st.session_state[MASKS_SOURCE.key] = TRACE_SOURCE
    return True


def share_trace_with_explore(name: str, data: bytes | memoryview, *, alone: bool) -> None:
    """Let Explore show a trace that was uploaded here, where it can; uploaded ``alone`` it is that trace here too."""
    try:
        identity = open_uploaded_trace(name, data).identity
    except (OpenError, UploadStoreError, BusyError):
        return
    if alone:
        st.rerun(scope="fragment")
    st.session_state[_SEEN_TRACE_KEY] = identity


def draw_trace_input() -> MaskInput | None:
    """Draw the choice of one map of the trace; of a large map, of one layer."""
    opened = get_open_trace()
    if opened is None:
        return None
    named = {"name": escape_markdown(opened.name), "model": escape_markdown(opened.drawable.model)}
    st.markdown(say("**{name}** · a trace of {model}, open on Explore too", **named))
    maps = dict(zip(opened.trace.maps, extract_trace_maps(opened.trace), strict=True))
    kinds: list[Kind] = list(maps)
    judged = compute_verdicts(opened)
    faulty = [one.map for one in judged if one.is_faulty_or_unjudgeable]
    questions = [one.map for one in judged if one.diagnosis and one.diagnosis.verdict == "question"]
    if st.session_state.get("mask-trace-map") not in (None, *kinds):
        del st.session_state["mask-trace-map"]
    kind = controls.draw_untranslated_choice(
        st.segmented_control,
        say("Map"),
        kinds,
        default=next(iter([*faulty, *questions, kinds[-1]])),
        required=True,
        format_func=lambda one: f"{say(one)} ●" if one in faulty else say(one),
        key="mask-trace-map",
        label_visibility="collapsed",
    )
    if faulty:
        draw_caption(say("● Something is wrong with this map."))
    one, identity, whole = maps[kind], f"trace {opened.identity} {kind}", opened.trace.maps[kind]
    if whole.weights.size > MOST_ARRAY_CELLS:
        layer = controls.draw_untranslated_choice(
            st.selectbox, say("Layer"), range(1, whole.layers + 1), key="mask-trace-layer", width=130
        )
        one, identity = _select_layer(one, whole, layer - 1), f"{identity} {layer}"
    return draw_array_interpretation(one, identity)


def _select_layer(one: MapContents, whole: AttentionMap, layer: int) -> MapContents:
    """Only one layer of every array that has layers."""
    per_layer = {name for name, array in one.arrays.items() if array.shape[:2] == (1, whole.layers) and array.ndim == 5}
    arrays = {name: array[:, layer : layer + 1] if name in per_layer else array for name, array in one.arrays.items()}
    passed = None if one.passed is None else one.passed.layer(layer)
    return MapContents(one.map, arrays, one.tokens, calls=one.calls[layer : layer + 1], passed=passed)
