"""What the page Masks computes with a model, once for all visitors."""

from __future__ import annotations

from attenscope.experiments.mask_trial import (
    MaskTrial,
    Perturbation,
    TrialResult,
    perturb_each_input_token,
    run_mask_trial,
    run_trial_tests,
)
from attenscope.language import to_say, use_language
from attenscope.mask_tests.backends import BackendComparison
from attenscope.mask_tests.outcomes import Outcome
from attenscope.mask_tests.sentence_backend_comparison import compare_text_backends
from attenscope.trace import Kind
from attenscope.viz.ui import cache
from attenscope.viz.ui.cache import queue_and_cache


@queue_and_cache(64)
def compute_output_under_mask(name: str, sentence: str, trial: MaskTrial | None, pads: int) -> TrialResult:
    """A text written under another mask; None for the model's own; frozen. Raises RuleError, InputError."""
    return run_mask_trial(cache.load_runnable_model(name), sentence, trial, pads)


@queue_and_cache(32, to_say("Changing one token after the other …"), is_long=True)
def compute_input_perturbation_under_mask(name: str, sentence: str, trial: MaskTrial | None, pads: int) -> Perturbation:
    """Which outputs move with which input under a mask; frozen."""
    return perturb_each_input_token(
        cache.load_runnable_model(name), compute_output_under_mask(name, sentence, None, pads), trial
    )


@queue_and_cache(32, to_say("Running the eight tests …"), is_long=True)
def compute_mask_tests(
    name: str, sentence: str, kind: Kind, trial: MaskTrial | None, language: str
) -> tuple[Outcome, ...]:
    """The behaviour tests on a model that writes, under a tried mask or its own; texts in `language`; frozen."""
    with use_language(language):
        return run_trial_tests(
            cache.load_runnable_model(name), compute_output_under_mask(name, sentence, None, 0), kind, trial
        )


@queue_and_cache(16, to_say("Computing the same in every way …"), is_long=True)
def compute_backend_comparison(name: str, sentence: str, language: str) -> BackendComparison:
    """The attention implementations of a Hugging Face model compared; texts in `language`; frozen.

    Raises InputError.
    """
    with use_language(language):
        return compare_text_backends(cache.load_runnable_model(name), sentence)


def can_compare_backends() -> bool:
    """Whether a model from a folder can be chosen: only such a one has several implementations of attention."""
    return bool(set(cache.list_models()) - set(cache.list_checkpoint_names()))
