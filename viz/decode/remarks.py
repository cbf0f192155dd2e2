"""What Decode says in words: where a decoding went astray, and whether its attention can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.experiments.cache_agreement import TOLERANCE
from model.network.config import EOS_ID
from model.text.repetition import repetition

from ..figures.labels import quoted, readable

if TYPE_CHECKING:
    from model.decoding.constraints import Constraints
    from model.experiments.cache_agreement import Agreement
    from model.text.tokenizer import Tokenizer
    from model.translate import Translation

    from .request import Request
    from .runs import Run


def astray(result: Translation, stopped: bool) -> list[str]:
    """What went wrong in a decoding, a sentence each; an empty list when nothing did."""
    found = []
    steps = result.steps
    if stopped and result.stopped is None:
        found.append(f"Stopped after {len(steps)} tokens, before the model had ended the sentence.")
    elif stopped:
        found.append("Stopped while searching: this is the best translation found until then.")
    if len(steps) == 1 and steps[0].token_id == EOS_ID:
        found.append("The model ended at once: its first token is </s>, so the translation is empty.")
    loop = repetition(result.target_ids)
    if loop:
        said = "".join(result.target_tokens[loop.start : loop.start + loop.length])
        found.append(
            f"Caught in a loop: {quoted(said)} is written {loop.times} times in a row from step {loop.start + 1} on."
        )
    return found


def search_in_words(request: Request) -> str:
    """Why a beam search that was not stopped by hand ended where it did."""
    if request.stop == "proven" or request.penalty <= 0:
        return "The search ended when no running hypothesis could still enter this list, whatever length it ended at."
    return (
        "The search ended early: no running hypothesis would have entered this list by ending at once, but with a "
        f"length penalty of {request.penalty:g} a longer one might have."
    )


def agreement_in_words(found: Agreement, *, changed: bool = False) -> str:
    """Whether the three ways to one attention agree; `changed` where the model is not as it was released."""
    largest, model = f"{found.largest:.1e}", "the changed model" if changed else "the model"
    if found.holds:
        return (
            f"Three ways agree: {model} run token by token with a cache, in one forward pass, and padded in a batch as "
            f"in training has the same attention weights; computed in float64, the largest difference is {largest}. ✓"
        )
    return (
        f"The three ways do not agree: run token by token with a cache, in one forward pass, and padded in a batch, "
        f"{model} has attention weights up to {largest} apart. They were computed in float64, where rounding explains "
        f"{TOLERANCE:.0e} at most. Suspect the cache or a mask."
    )


def version_name(one: Run, tokenizer: Tokenizer) -> str:
    """How a run was made, in a few words: the strategy, and what was forced or forbidden."""
    request = one.request
    count = request.changes.count(",") + 1
    off = "" if not request.changes else f" · {request.changes}" if count < 3 else f" · {count} heads off"
    return request.name + constrained_in_words(request.constraints, tokenizer) + off


def constrained_in_words(constraints: Constraints, tokenizer: Tokenizer) -> str:
    """ " · from “Ein”", " · without “Mann”", or nothing."""
    found = ""
    if constraints.prefix:
        tokens = [tokenizer.token(one) for one in constraints.prefix]
        found += f" · step {len(tokens)} “{readable(tokens[-1])}”"
    for ids in constraints.forbidden:
        found += f" · no “{readable(''.join(map(tokenizer.token, ids)))}”"
    return found
