"""One query of one head, a step at a time: keys, products, scores, scale, mask, softmax, weighted values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from ...figures.diverging import negative
from ...figures.labels import label_text
from ..bundle import component
from ..packing import pack

if TYPE_CHECKING:
    from model.analysis.attention_steps import Pipeline

    from ...figures.palette import Look

_mount = component("pipeline")
STEPS = 7


def pipeline_steps(
    steps: Pipeline, query: str, look: Look, step: int, alt: str, *, key: str, on_step: Callable[[int], None]
) -> None:
    """Draw the steps of one query, named `query`, up to `step` (from 0); `on_step(step)` hears of another one.

    `alt` describes the row to screen readers.
    """
    _mount(
        key=key,
        data=packed(steps, query, look, step, alt),
        on_step_change=lambda: on_step(int(st.session_state[key].step["step"])),
    )


def packed(steps: Pipeline, query: str, look: Look, step: int, alt: str) -> bytes:
    """What pipeline.js reads: tokens, colours and the mask, then float32 arrays in the order of its ARRAYS."""
    keys, width = steps.k.shape
    palette = look.palette
    header = {
        "alt": alt,
        "query": label_text(query),
        "tokens": [label_text(token, 14) for token in steps.key_tokens],
        "mask": steps.mask.tolist(),
        "keys": keys,
        "width": width,
        "scale": steps.scale,
        "step": step,
        "colours": [negative(palette), palette.background, palette.full],
        "difference": f"{steps.difference:.1g}",
    }
    arrays = (
        steps.q,
        steps.k,
        steps.product,
        steps.dot,
        steps.scores,
        steps.weights,
        steps.weighted_values,
        steps.context,
    )
    return pack(header, b"".join(np.ascontiguousarray(array, dtype="<f4").tobytes() for array in arrays))
