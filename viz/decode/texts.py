"""What Decode says: what went wrong in a decoding, and whether its attention can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.experiments.cache_agreement import TOLERANCE
from model.text.repetition import repetition

from ..figures.labels import quoted, readable

if TYPE_CHECKING:
    from model.decoding.constraints import Constraints
    from model.experiments.cache_agreement import Agreement
    from model.live.live_model import TextTokenizer
    from model.translate import Translation

    from .request import Request
    from .runs import Run


PROMPT = (
    "The first line is the prompt, the second what the model wrote after it. To the model both are one text: a row of "
    "its attention sums to 1 over both pictures, and the last token of the prompt, which it went on from, is in both."
)


def problems(result: Translation, stopped: bool) -> list[str]:
    """What went wrong in a decoding, a sentence each; an empty list when nothing did."""
    sentences = []
    steps = result.steps
    if stopped and result.stopped is None:
        sentences.append(f"Stopped after {len(steps)} tokens, before the model had ended the sentence.")
    elif stopped:
        sentences.append("Stopped while searching: this is the best translation found until then.")
    if len(steps) == 1 and steps[0].stopped == "eos":
        sentences.append(f"The model ended at once: its first token is {steps[0].token}, so the translation is empty.")
    loop = repetition(result.target_ids)
    if loop:
        text = "".join(result.target_tokens[loop.start : loop.start + loop.length])
        sentences.append(
            f"Caught in a loop: {quoted(text)} is written {loop.times} times in a row from step {loop.start + 1} on."
        )
    return sentences


def search_text(request: Request) -> str:
    """Why a beam search that was not stopped by hand ended where it did."""
    if request.stop == "proven" or request.penalty <= 0:
        return "The search ended when no running hypothesis could still enter this list, whatever length it ended at."
    return (
        "The search ended early: no running hypothesis would have entered this list by ending at once, but with a "
        f"length penalty of {request.penalty:g} a longer one might have."
    )


def agreement_text(agreement: Agreement, *, changed: bool = False) -> str:
    """Whether the attention weights are the same however they are computed; `changed` where heads are changed."""
    largest, of = f"{agreement.largest:.1e}", " of the changed model" if changed else ""
    if agreement.holds:
        return (
            f"The attention weights{of} agree whether computed token by token with a cache, in one forward pass, or "
            f"padded in a batch as in training; in float64 the largest difference is {largest}. ✓"
        )
    return (
        f"The attention weights{of} differ between decoding with a cache, one forward pass and a padded batch: the "
        f"largest difference is {largest}, and in float64 rounding explains {TOLERANCE:.0e} at most. Suspect the cache "
        "or a mask."
    )


def version_name(run: Run, tokenizer: TextTokenizer) -> str:
    """How a run was made, in a few words: the strategy, the constraints, and the changes to the model."""
    request = run.request
    count = request.changes.count(",") + 1
    off = "" if not request.changes else f" · {request.changes}" if count < 3 else f" · {count} heads off"
    return request.name + constraints_text(request.constraints, tokenizer) + off


def constraints_text(constraints: Constraints, tokenizer: TextTokenizer) -> str:
    """`` · step 2 “Ein” · no “Mann”``; "" where nothing is forced or forbidden."""
    text = ""
    if constraints.prefix:
        tokens = [tokenizer.token(token) for token in constraints.prefix]
        text += f" · step {len(tokens)} “{readable(tokens[-1])}”"
    for ids in constraints.forbidden:
        text += f" · no “{readable(''.join(map(tokenizer.token, ids)))}”"
    return text
