"""The diagnosis of an opened trace's masks, one line for each map; the page Masks shows it in full."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from attenscope.language import current_language, join_items, join_sentences, say, say_many, to_say
from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.arrays import ARRAY_NAMES, Arrays
from attenscope.masks.attention_call_origin import AttentionCall
from attenscope.masks.diagnosis_checks import diagnose_arrays
from attenscope.masks.findings import Diagnosis, Finding, add_attention_calls
from attenscope.masks.read_files import find_trace_padding
from attenscope.trace import AttentionMap, AttentionTrace, Kind
from attenscope.untrusted_trace import OpenedTrace, clean_text
from attenscope.viz.fair_queue import BusyError
from attenscope.viz.traces.session import cache_trace_result
from attenscope.viz.ui.addresses.shared import KIND
from attenscope.viz.ui.captions import draw_caption, escape_markdown
from attenscope.viz.worker_process import call_here_if_short

LONGEST_ORIGIN = 400
"""Most characters of an origin, as the file of a trace is not trusted."""
MOST_QUICK_CELLS = 2**16
"""Cells that are judged at once; more are judged by the worker process, in turn."""
MOST_JUDGED_CELLS = 2**20
"""Cells that are judged while a visitor waits; of a larger map, every n-th head is judged."""

VERDICT_TEXTS = {
    "open": to_say("no contradiction (if {meaning} was meant: {sure:.0%} sure)"),
    "sound": to_say("sound (if {meaning} was meant: {sure:.0%} sure)"),
    "question": to_say("likely {codes} (if {meaning} was meant: {sure:.0%} sure)"),
    "faulty": to_say("{codes} (if {meaning} was meant: {sure:.0%} sure)"),
}
FINDING_RANKS = {
    "error": to_say("error"),
    "warning": to_say("warning"),
    "info": to_say("info"),
    "likely": to_say("likely"),
}


@dataclass(frozen=True, eq=False)
class Verdict:
    """The diagnosis of one map and its summary."""

    map: Kind
    diagnosis: Diagnosis | None
    """None where the map cannot be judged."""
    sentence: str
    coverage: str = ""
    """How many heads were judged; "" for all."""

    @property
    def is_faulty_or_unjudgeable(self) -> bool:
        """Whether something is wrong for certain, or the map cannot be judged."""
        return self.diagnosis is None or self.diagnosis.verdict == "faulty"


def diagnose_arrays_maybe_in_worker(arrays: Arrays, meant_name: str | None = None) -> Diagnosis:
    """As :func:`.diagnose_arrays`; large arrays are judged by the worker process. Raises ValueError, BusyError."""
    is_short = bool(np.prod(arrays.sizes) <= MOST_QUICK_CELLS)
    return call_here_if_short(is_short, diagnose_arrays, arrays, meant_name)


def diagnose_map(trace: AttentionTrace, kind: Kind) -> Verdict:
    """Judge one map as it was saved."""
    attention = trace.maps[kind]
    heads = attention.layers * attention.heads
    step = max(1, int(np.ceil(attention.weights.size / MOST_JUDGED_CELLS)))
    rows = np.arange(0, heads, step)
    coverage = ""
    if step > 1:
        coverage = say(
            "{judged} of {heads} heads were judged; python -m model diagnose judges all.", judged=len(rows), heads=heads
        )
    try:
        diagnosis = diagnose_arrays_maybe_in_worker(
            normalise_arrays(_collect_map_arrays(attention, rows) | find_trace_padding(trace, kind), kind)
        )
        calls = AttentionCall.parse_calls_from_json(attention.layer_calls)
        diagnosis = add_attention_calls(
            diagnosis, calls if step == 1 else [calls[row // attention.heads] for row in rows if calls]
        )
    except (ValueError, BusyError) as error:
        return Verdict(attention.kind, None, say("cannot be judged: {error}", error=error), coverage)
    codes = list(dict.fromkeys(finding.code for finding in diagnosis.findings if finding.severity != "info"))
    sentence = say(
        VERDICT_TEXTS[diagnosis.verdict], codes=join_items(codes), meaning=diagnosis.meaning, sure=diagnosis.sure
    )
    return Verdict(attention.kind, diagnosis, sentence, coverage)


def describe_attention_call_origin(one: Finding) -> str:
    """Return a sentence that names the line of code that called attention and the faulty argument; "" where unknown."""
    return say("Where: {origin}.", origin=clean_text(one.origin, LONGEST_ORIGIN)) if one.origin else ""


def _collect_map_arrays(attention: AttentionMap, rows: np.ndarray) -> dict[str, np.ndarray]:
    """The map's arrays by name, with a batch axis; where not all heads are judged, each is a layer of its own."""
    tensors = {name: array for name, array in attention.tensors.items() if name in ARRAY_NAMES}
    arrays = {"weights": attention.weights, **tensors}
    if attention.layer_masks is not None:
        arrays["mask"] = np.broadcast_to(attention.masks, attention.weights.shape)
    if len(rows) < attention.layers * attention.heads:
        arrays = {name: array.reshape(-1, 1, *array.shape[2:])[rows] for name, array in arrays.items()}
    return {"mask": attention.mask} | {name: array[None] for name, array in arrays.items()}


def compute_verdicts(opened: OpenedTrace) -> list[Verdict]:
    """The verdict on every map, computed once for a visitor and their language."""
    with st.spinner(say("Looking at the masks …")):
        return cache_trace_result(
            opened,
            "verdict",
            current_language(),
            lambda: [diagnose_map(opened.trace, kind) for kind in opened.trace.maps],
        )


def draw_verdicts(opened: OpenedTrace) -> None:
    """Draw the verdict on every map in one line, and the findings folded away."""
    every = compute_verdicts(opened)
    coverage = list(dict.fromkeys(one.coverage for one in every if one.coverage))
    verdicts_of_maps = " · ".join(f"{KIND.label(one.map)} {one.sentence}" for one in every)
    line = join_sentences(say("Masks: {verdicts}.", verdicts=verdicts_of_maps), *coverage)
    st.error(escape_markdown(line)) if any(one.is_faulty_or_unjudgeable for one in every) else draw_caption(line)
    findings = [finding for one in every if one.diagnosis for finding in one.diagnosis.findings]
    if findings:
        with st.expander(say_many("{count} finding", "{count} findings", len(findings))):
            for finding in findings:
                st.markdown(
                    f"**{escape_markdown(say(finding.map))} · {finding.code}** ({say(FINDING_RANKS[finding.rank])})"
                )
                draw_caption(join_sentences(finding.message, describe_attention_call_origin(finding)))
                st.code(finding.fix, language="python")
