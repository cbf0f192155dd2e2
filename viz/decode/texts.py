"""The texts of Decode: problems of a decoding, agreement of its attention, and names of its versions."""

from __future__ import annotations

from attenscope.decoding.greedy_and_sampling import Constraints, find_repetition
from attenscope.experiments.mask_trial import AGREEMENT_TOLERANCE, CacheAgreement
from attenscope.interventions.changes import HeadChange, parse_changes
from attenscope.language import say, say_many, to_say
from attenscope.runnable_model import TextTokenizer, Translation
from attenscope.viz.decode.runs import DecodingRequest, DecodingRun
from attenscope.viz.figures.figure_style import quote_token, readable_token

PROMPT_NOTE = to_say(
    "The first line is the prompt, the second what the model wrote after it. To the model both are one text: a row of "
    "its attention sums to 1 over both pictures, and the last token of the prompt, which it went on from, is in both."
)

AGREEMENT_TEXT = to_say(
    "The attention weights agree whether computed token by token with a cache, in one forward pass, or padded in a "
    "batch as in training; in float64 the largest difference is {largest:.1e}. ✓"
)
CHANGED_AGREEMENT_TEXT = to_say(
    "The attention weights of the changed model agree whether computed token by token with a cache, in one forward "
    "pass, or padded in a batch as in training; in float64 the largest difference is {largest:.1e}. ✓"
)
DISAGREEMENT_TEXT = to_say(
    "The attention weights differ between decoding with a cache, one forward pass and a padded batch: the largest "
    "difference is {largest:.1e}, and in float64 rounding explains {tolerance:.0e} at most. Suspect the cache or a "
    "mask."
)
CHANGED_DISAGREEMENT_TEXT = to_say(
    "The attention weights of the changed model differ between decoding with a cache, one forward pass and a padded "
    "batch: the largest difference is {largest:.1e}, and in float64 rounding explains {tolerance:.0e} at most. Suspect "
    "the cache or a mask."
)

STOPPED_SEARCH_TEXTS = {
    "translation": to_say("Stopped while searching: this is the best translation found until then."),
    "continuation": to_say("Stopped while searching: this is the best continuation found until then."),
}
EMPTY_TEXTS = {
    "translation": to_say("The model ended at once: its first token is {token}, so the translation is empty."),
    "continuation": to_say("The model ended at once: its first token is {token}, so the continuation is empty."),
}
"""By what a model calls the text that it writes."""


def describe_problems(result: Translation, stopped: bool) -> list[str]:
    """What went wrong in a decoding, a sentence each; an empty list when nothing did."""
    sentences = []
    steps, written = result.steps, "continuation" if result.trace.cross is None else "translation"
    if stopped and result.stop_reason is None:
        sentences.append(
            say_many(
                "Stopped after {count} token, before the model had ended the sentence.",
                "Stopped after {count} tokens, before the model had ended the sentence.",
                len(steps),
            )
        )
    elif stopped:
        sentences.append(say(STOPPED_SEARCH_TEXTS[written]))
    if len(steps) == 1 and steps[0].stopped == "eos":
        sentences.append(say(EMPTY_TEXTS[written], token=steps[0].token))
    loop = find_repetition(result.target_ids)
    if loop:
        text = "".join(result.target_tokens[loop.start : loop.start + loop.length])
        sentences.append(
            say(
                "Caught in a loop: {text} is written {times} times in a row from step {step} on.",
                text=quote_token(text),
                times=loop.times,
                step=loop.start + 1,
            )
        )
    return sentences


def search_end_text(request: DecodingRequest) -> str:
    """Why a beam search that was not stopped by hand ended where it did."""
    if request.stop == "proven" or request.penalty <= 0:
        return say(
            "The search ended when no running hypothesis could still enter this list, whatever length it ended at."
        )
    return say(
        "The search ended early: no running hypothesis would have entered this list by ending at once, but with a "
        "length penalty of {penalty:g} a longer one might have.",
        penalty=request.penalty,
    )


def agreement_text(agreement: CacheAgreement, *, changed: bool = False) -> str:
    """Whether the attention weights are the same however they are computed; `changed` where heads are changed."""
    if agreement.is_within_tolerance:
        return say(CHANGED_AGREEMENT_TEXT if changed else AGREEMENT_TEXT, largest=agreement.largest)
    return say(
        CHANGED_DISAGREEMENT_TEXT if changed else DISAGREEMENT_TEXT,
        largest=agreement.largest,
        tolerance=AGREEMENT_TOLERANCE,
    )


def version_name(run: DecodingRun, tokenizer: TextTokenizer) -> str:
    """How a run was made, in a few words: the strategy, the constraints, and the changes to the model."""
    request = run.request
    parts = [request.name, *constraint_texts(request.constraints, tokenizer)]
    if request.changes:
        parts.append(_name_changes(request.changes))
    return " · ".join(parts)


def _name_changes(changes: str) -> str:
    """One or two changes by themselves, more by their number."""
    parsed = parse_changes(changes)
    count = len(parsed)
    if count < 3:
        return changes
    if all(isinstance(one, HeadChange) and one.change == "off" for one in parsed):
        return say("{count} heads off", count=count)
    return say("{count} changes", count=count)


def constraint_texts(constraints: Constraints, tokenizer: TextTokenizer) -> list[str]:
    """What is forced and what is forbidden: ``step 2 “Ein”``, ``no “Mann”``."""
    texts = []
    if constraints.prefix:
        tokens = [tokenizer.token(token) for token in constraints.prefix]
        texts.append(say("step {step} “{token}”", step=len(tokens), token=readable_token(tokens[-1])))
    forbidden = ("".join(map(tokenizer.token, ids)) for ids in constraints.forbidden)
    return [*texts, *(say("no “{words}”", words=readable_token(words)) for words in forbidden)]
