"""Whether looking changed what ran, in a sentence that stays with the recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .recording import Call

OWN = "The model computed these weights itself, and looking changed nothing."
FAST_PATH = (
    "Without looking, torch would have taken the fused fast path of nn.TransformerEncoder or nn.MultiheadAttention; "
    "while looking, its plain path ran: outputs of real tokens may differ in the last digits, those of padding more."
)


def looking(calls: Sequence[Call]) -> str:
    """What ran, what would have run, and how far the weights shown explain the outputs."""
    sentences = [FAST_PATH] if any(call.fast_path for call in calls) else []
    if any(call.fused for call in calls):
        found = [call.beside.item() for call in calls if call.beside is not None]
        sentences.append(_fused(max(found) if found else None))
    return " ".join(sentences) or OWN


def _fused(difference: float | None) -> str:
    ran = "A fused kernel ran, as it does when nobody looks; the weights were computed beside it"
    if difference is None:
        return f"{ran}, before dropout."
    return f"{ran}, and weights times values differ from its output by at most {difference:.1e}."
