"""The exhibits of the gallery: how each broken and fixed pair is run, judged, and printed as an example."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..language import to_say
from ..mask_tests.checks import run_mask_tests
from ..mask_tests.outcomes import Outcome, find_reachable_inputs, measure_dependencies
from ..mask_tests.subjects import Subject
from ..masks.array_normalisation import expand_to_five_axes, normalise_arrays
from ..masks.diagnosis_checks import diagnose_arrays
from ..masks.findings import Diagnosis
from ..masks.softmax import PaddingSide
from ..masks.toy_attention import draw_random_scores
from . import attention_bug_pairs, model_bug_pairs
from .attention_bug_pairs import Batch, make_real_token_mask
from .fault_generators import (
    LEFT_PADDED_BATCH,
    RECIPES,
    UNPADDED_BATCH,
    Recipe,
    causal_and_padding_mask,
    causal_only_mask,
    find_batch_showing_fault,
    padding_only_mask,
)

# The code that is shown is the code that runs: pairs of functions, such as those of :mod:`.pairs` and
# :mod:`.more_pairs`.


SMALL_BATCH = {"samples": (2, 2), "heads": (2, 2), "sizes": (6, 6), "sharpness": 1.0}
BATCH_ARGUMENTS: dict[str, dict[str, Any]] = {
    "causal-on-cross": {"sizes": (5, 7)},
    "padding-visible": {"sizes": (5, 7)},
    "padding-swapped": {"sizes": (5, 7)},
    "top-left-causal": {"sizes": (3, 7)},
    "weak-fill": {"sharpness": 12.0},
    "fill-overflow": {"side": "left"},
    "dropout-on": {"sizes": (7, 7)},
    "window-off-by-one": {"sizes": (8, 8)},
    "window-missing": {"sizes": (8, 8)},
    "mask-shifted": {"sizes": (5, 7)},
    "sample-order": {"samples": (3, 3), "sizes": (6, 9)},
    "stale-cache": {"sizes": (3, 8)},
    "document-leak": {"sizes": (8, 8)},
    "wrong-axis": {"samples": (4, 4), "sizes": (4, 4)},
}
"""Where a fault needs another batch than SMALL_BATCH to be seen well."""


@dataclass(frozen=True)
class Exhibit:
    """One entry of the gallery."""

    name: str
    """A short name, for links."""
    broken: Callable[..., Any]
    fixed: Callable[..., Any]
    recipe: Recipe | None = None
    """Given where the fault shows in the tensors of attention."""
    subject: Callable[[Callable[..., Any]], Subject] | None = None
    """Given where it takes a running model to see it: turns one of the two functions into a subject of the tests."""
    tests: tuple[str, ...] = ()
    """Codes of the behaviour tests that fail on the broken side."""
    of_arrays: str = ""
    """The code that the diagnosis finds in the arrays of such a model, where it has one."""
    batch: Mapping[str, Any] = field(default_factory=dict)
    """Where it needs another batch than :data:`SMALL_BATCH`, and is not among :data:`BATCH_ARGUMENTS`."""

    @property
    def code(self) -> str:
        """The code that the diagnosis should find; empty where only a behaviour test sees the fault."""
        return self.recipe.code if self.recipe else self.of_arrays


@dataclass(frozen=True, eq=False)
class ExhibitSide:
    """The result of one of the two functions."""

    weights: np.ndarray
    """(B, L, H, Q, K); for a model how much each output depends on each input, the largest of a row being 1."""
    meant: np.ndarray
    """(B, L, H, Q, K) bool, True = should have weight."""
    key_keep: np.ndarray
    """(B, K) bool, True = a real token."""
    query_keep: np.ndarray
    """(B, Q) bool, True = a real token."""
    diagnosis: Diagnosis | None = None
    outcomes: tuple[Outcome, ...] = ()
    error: str = ""
    """The message of torch, where the code raised; then all weights are NaN."""

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of all faults: of the diagnosis above info, and of failed behaviour tests."""
        findings = self.diagnosis.findings if self.diagnosis else ()
        codes = dict.fromkeys(finding.code for finding in findings if finding.severity != "info")
        return (*codes, *(outcome.code for outcome in self.outcomes if outcome.status == "fault"))


def read_function_and_helper_sources(function: Callable[..., Any]) -> tuple[str, str]:
    """Return the function as it stands in its file, and the helpers of this package that it calls."""
    assert isinstance(function, FunctionType)
    called = (function.__globals__.get(name) for name in _list_global_names(function.__code__))
    helpers = [one for one in called if isinstance(one, FunctionType) and one.__module__.startswith(f"{__package__}.")]
    return _read_source(function), "\n\n".join(map(_read_source, helpers))


def _read_source(function: FunctionType) -> str:
    return re.sub(r"  # noqa.*", "", inspect.getsource(function))


def _list_global_names(code: CodeType) -> dict[str, None]:
    """Return the global names a function uses, also in the lambdas inside it."""
    names = dict.fromkeys(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names |= _list_global_names(inner)
    return names


def run_exhibit(exhibit: Exhibit) -> tuple[ExhibitSide, ExhibitSide]:
    """Return the broken and the fixed side, run on the same small batch and judged."""
    if exhibit.subject:
        with torch.random.fork_rng():
            return _test_exhibit_model(exhibit, exhibit.broken), _test_exhibit_model(exhibit, exhibit.fixed)
    recipe = exhibit.recipe
    assert recipe is not None
    small = (
        SMALL_BATCH | dict(recipe.batch) | {"sizes": (6, 6)} | BATCH_ARGUMENTS.get(exhibit.name, dict(exhibit.batch))
    )
    x = _make_exhibit_batch(replace(recipe, batch=small))
    return _diagnose_exhibit_attention(recipe, exhibit.broken, x), _diagnose_exhibit_attention(recipe, exhibit.fixed, x)


def _make_exhibit_batch(recipe: Recipe) -> Batch:
    """Return sentences of a few words at least; one-word sentences show little."""
    generator = torch.Generator().manual_seed(3)
    while True:
        x = find_batch_showing_fault(recipe, generator)
        real = x.key_keep.sum(-1)
        if bool(((real > x.keys / 2) | (real == 0)).all() & (x.query_keep.sum(-1) > x.queries / 2).all()):
            return x


def _diagnose_exhibit_attention(recipe: Recipe, function: Callable[..., Any], x: Batch) -> ExhibitSide:
    meant, error = recipe.meant(x), ""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        try:
            out = function(x)
        except RuntimeError as raised:  # the diagnosis sees what the code wanted to do
            fill = torch.zeros(meant.shape).masked_fill(~meant, -1e10)
            error, out = str(raised), {"mask": fill, "scores": x.scores.half()}
    made: dict[str, Tensor] = out if isinstance(out, dict) else {"weights": out}
    known = {"key_keep": x.key_keep, "query_keep": x.query_keep, "meant": meant, "scores": x.scores}
    names = {"key_keep", "query_keep", "meant", *recipe.needs, *made}
    arrays = {name: tensor.numpy() for name, tensor in {**known, **made}.items() if name in names}
    weights = expand_to_five_axes(arrays.get("weights", np.full(x.scores.shape, np.nan)))
    return ExhibitSide(
        weights,
        np.broadcast_to(expand_to_five_axes(meant.numpy()), weights.shape),
        x.key_keep.numpy(),
        x.query_keep.numpy(),
        diagnose_arrays(normalise_arrays(arrays)),
        (),
        error,
    )


def _test_exhibit_model(exhibit: Exhibit, function: Callable[..., Any]) -> ExhibitSide:
    assert exhibit.subject is not None
    subject = exhibit.subject(function)
    outcomes = run_mask_tests(subject, codes=exhibit.tests)
    sizes = measure_dependencies(subject)
    assert sizes is not None
    sizes = sizes / sizes.nan_to_num().amax(-1, keepdim=True).clamp_min(1e-12)
    keep = subject.keep.numpy()
    meant = expand_to_five_axes(find_reachable_inputs(subject)[:, None].numpy())
    return ExhibitSide(expand_to_five_axes(sizes[:, None].numpy()), meant, keep, keep, outcomes=outcomes)


# The entries of the gallery: the catalogue of faults one by one, then faults met in published code.


STATE_LENGTH, STATE_WIDTH = 8, 8
"""Tokens, and width of the hidden states, of the small models."""


def _random_states() -> Tensor:
    return torch.randn(2, STATE_LENGTH, STATE_WIDTH, generator=torch.Generator().manual_seed(1)) / 2


def _padded_keep_mask(side: PaddingSide = "right") -> Tensor:
    return make_real_token_mask(torch.tensor([STATE_LENGTH, STATE_LENGTH - 2]), STATE_LENGTH, side)


def _make_real_key_mask(keep: Tensor) -> Tensor:
    """Return (B, T, T) from keep (B, T): every query may attend to real keys."""
    return keep[:, None, :].expand(-1, keep.shape[1], -1)


def _make_windowed_subject(function: Callable[..., Tensor]) -> Subject:
    """Return six layers with a causal window of two: the last output is to reach six tokens back."""

    def run_windowed(states: Tensor, keep: Tensor) -> Tensor:
        return function(states, _make_real_key_mask(keep).tril().triu(-1))

    window = torch.ones(STATE_LENGTH, STATE_LENGTH, dtype=torch.bool).tril().triu(-1)
    return Subject(run_windowed, _random_states(), _padded_keep_mask(), True, layers=6, allowed=window)


def _make_language_model_subject(function: Callable[..., Tensor]) -> Subject:
    def run_language_model(states: Tensor, keep: Tensor) -> Tensor:
        return function(states, _make_real_key_mask(keep))

    return Subject(run_language_model, _random_states(), _padded_keep_mask(), True)


def _make_gradient_enabled_subject(function: Callable[..., Tensor]) -> Subject:
    """Return two layers with gradients on, as in training: with them off, torch takes another path again."""

    def run_with_gradients(states: Tensor, keep: Tensor, need_weights: bool = True) -> Tensor:
        with torch.enable_grad():
            return function(states, _make_real_key_mask(keep).tril(), need_weights=need_weights)

    def run_without_weights(states: Tensor, keep: Tensor) -> Tensor:
        return run_with_gradients(states, keep, need_weights=False)

    others = {to_say("against need_weights=False"): run_without_weights}
    return Subject(run_with_gradients, _random_states(), _padded_keep_mask("left"), True, layers=2, others=others)


def make_encoder_subject(function: Callable[..., Tensor]) -> Subject:
    """Return an encoder of two samples, the second with padding."""
    return Subject(function, _random_states(), _padded_keep_mask(), False)


def make_left_padded_subject(function: Callable[..., Tensor]) -> Subject:
    """Return a decoder of two samples, the second padded at the left."""
    return Subject(function, _random_states(), _padded_keep_mask("left"), True, padding_sides=("left",))


def _make_exhibit(name: str, recipe: Recipe) -> Exhibit:
    return Exhibit(name, recipe.broken, recipe.fixed, recipe)


def _make_catalogue_exhibits() -> list[Exhibit]:
    """Return one entry for every recipe, named by its code and, from the second way on, by a number.

    What shows in a running model alone is among :data:`FIELD_EXHIBITS`.
    """
    count: Counter[str] = Counter()
    exhibits = []
    for recipe in (one for one in RECIPES if one.code not in ("batch-axis", "positions-wrong")):
        count[recipe.code] += 1
        name = recipe.code if count[recipe.code] == 1 else f"{recipe.code}-{count[recipe.code]}"
        exhibits.append(_make_exhibit(name, recipe))
    return exhibits


ADDITIVE_AS_KEEP_RECIPE = Recipe(
    "inverted",
    model_bug_pairs.additive_mask_as_bool_broken,
    model_bug_pairs.additive_mask_as_bool_fixed,
    causal_only_mask,
    batch=UNPADDED_BATCH,
)
DOCSTRING_RECIPE = Recipe(
    "inverted",
    model_bug_pairs.misdocumented_mask_broken,
    model_bug_pairs.misdocumented_mask_fixed,
    causal_only_mask,
    batch=UNPADDED_BATCH,
)
HALF_PRECISION_RECIPE = Recipe(
    "fill-overflow",
    model_bug_pairs.half_precision_fill_broken,
    model_bug_pairs.half_precision_fill_fixed,
    causal_and_padding_mask,
)
LEFT_PADS_RECIPE = Recipe(
    "empty-row",
    model_bug_pairs.left_padding_nan_broken,
    model_bug_pairs.left_padding_nan_fixed,
    causal_and_padding_mask,
    batch=LEFT_PADDED_BATCH,
)
EXTRA_MASS_RECIPE = Recipe(
    "extra-mass",
    attention_bug_pairs.attend_with_zero_sink,
    attention_bug_pairs.attend_with_zero_sink,
    causal_only_mask,
    batch=UNPADDED_BATCH,
)
PAD_QUERY_RECIPE = Recipe(
    "pad-query", attention_bug_pairs.padding_visible_fixed, attention_bug_pairs.padding_visible_fixed, padding_only_mask
)

FIELD_EXHIBITS = (
    _make_exhibit("additive-read-as-keep", ADDITIVE_AS_KEEP_RECIPE),
    _make_exhibit("docstring", DOCSTRING_RECIPE),
    _make_exhibit("half-precision", HALF_PRECISION_RECIPE),
    _make_exhibit("left-pads", LEFT_PADS_RECIPE),
    _make_exhibit("pad-query", PAD_QUERY_RECIPE),
    _make_exhibit("extra-mass", EXTRA_MASS_RECIPE),
    Exhibit(
        *(
            "batch-axis",
            model_bug_pairs.batch_axis_model_broken,
            model_bug_pairs.batch_axis_model_fixed,
            None,
            make_encoder_subject,
        ),
        tests=("batch-neighbour",),
        of_arrays="batch-axis",
    ),
    Exhibit(
        *(
            "positions-wrong",
            model_bug_pairs.left_pad_positions_model_broken,
            model_bug_pairs.left_pad_positions_model_fixed,
            None,
            make_left_padded_subject,
        ),
        tests=("padding-amount",),
        of_arrays="positions-wrong",
    ),
    Exhibit(
        *(
            "return-in-loop",
            model_bug_pairs.return_in_loop_broken,
            model_bug_pairs.return_in_loop_fixed,
            None,
            _make_windowed_subject,
        ),
        tests=("gradient-reach",),
    ),
    Exhibit(
        *(
            "is-decoder",
            model_bug_pairs.decoder_flag_broken,
            model_bug_pairs.decoder_flag_fixed,
            None,
            _make_language_model_subject,
        ),
        tests=("future-token", "gradient-reach"),
    ),
    Exhibit(
        *(
            "observer",
            model_bug_pairs.need_weights_effect_broken,
            model_bug_pairs.need_weights_effect_fixed,
            None,
            _make_gradient_enabled_subject,
        ),
        tests=("observer",),
    ),
)
EXHIBITS: dict[str, Exhibit] = {exhibit.name: exhibit for exhibit in (*_make_catalogue_exhibits(), *FIELD_EXHIBITS)}
"""All entries by name, in the order in which they are shown."""

# Broken cases to start from, as printed text.


EXAMPLE_LENGTHS, EXAMPLE_SIZE = (6, 4), 6


def _make_example_batch(left: bool = False) -> Batch:
    """Return two samples of six tokens, the second with two of padding."""
    keep = make_real_token_mask(torch.tensor(EXAMPLE_LENGTHS), EXAMPLE_SIZE, "left" if left else "right")
    return Batch(
        torch.from_numpy(draw_random_scores(len(EXAMPLE_LENGTHS), 1, EXAMPLE_SIZE, EXAMPLE_SIZE, seed=3)), keep, keep
    )


def _format_arrays(**arrays: torch.Tensor) -> str:
    texts = (f"{name} = array({np.array2string(array.numpy(), separator=', ')})" for name, array in arrays.items())
    with np.printoptions(precision=4, suppress=True, threshold=10_000):
        return "\n".join(texts)


def format_visible_padding_example() -> str:
    x = _make_example_batch()
    return _format_arrays(weights=attention_bug_pairs.padding_visible_broken(x), key_keep=x.key_keep)


def format_inverted_mask_example() -> str:
    x = _make_example_batch()
    return _format_arrays(weights=attention_bug_pairs.inverted_mask_broken(x), key_keep=x.key_keep)


def format_visible_future_example() -> str:
    x = _make_example_batch()
    return _format_arrays(weights=attention_bug_pairs.future_visible_broken(x), meant=x.causal & x.keep[:, 0])


def format_nan_rows_example() -> str:
    return _format_arrays(weights=attention_bug_pairs.empty_row_broken(_make_example_batch(left=True)))


PRINTED_EXAMPLES = {
    to_say("Padding is seen"): format_visible_padding_example,
    to_say("NaN rows"): format_nan_rows_example,
    to_say("The future shows"): format_visible_future_example,
    to_say("Upside down"): format_inverted_mask_example,
}
"""By the label of its button, in English, the function that writes the text."""
