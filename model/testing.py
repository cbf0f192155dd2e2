"""Assertions about masks for anybody's tests, and a picture of what went wrong.

    from attenscope.testing import assert_no_future_leak, mask_picture

    def test_my_decoder(mask_picture):
        assert_no_future_leak(model, ids, picture=mask_picture)

``model`` is a Hugging Face model, a :class:`~.mask_tests.subjects.Subject`, or any module of token ids: then
``embedding`` names the module in it that embeds them, and it is called as ``model(ids)`` unless ``call(ids, keep)``
says otherwise: what comes back are outputs (B, T, D). ``keep`` (B, T), True = a real token, is the padding that is
tried; without it, two tokens at the right. Only an end that it pads is padded elsewhere, save in Hugging Face models
that take positions. The messages name the mask tests by code and number (:data:`~.mask_tests.outcomes.CHECKS`), and the
first module that lets the fault in (:mod:`~.mask_tests.first_module`); the model gets hooks for that alone.

Of a Hugging Face model :func:`compare_backends` says where its kernels, caches and paddings part.

Besides AssertionError, each raises TypeError and ValueError for what it cannot examine: ids or a ``keep`` of the wrong
shape, outputs that are not one tensor with a row for each token, and a model that is not in eval mode.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .language import join_sentences, say
from .mask_tests.backends import (
    assert_backends_agree,
    assert_cache_agrees,
    assert_packing_agrees,
    assert_padding_sides_agree,
    assert_static_cache_agrees,
    compare_backends,
)
from .mask_tests.checks import run_future_tests, run_mask_tests
from .mask_tests.first_leaking_module import describe_leaking_module
from .mask_tests.outcomes import Outcome, find_reachable_inputs, measure_dependencies
from .mask_tests.subjects import Subject, subject_from_ids, subjects_from_hugging_face

__all__ = [
    "assert_backends_agree",
    "assert_batch_invariant",
    "assert_cache_agrees",
    "assert_no_future_leak",
    "assert_packing_agrees",
    "assert_padding_ignored",
    "assert_padding_sides_agree",
    "assert_static_cache_agrees",
    "compare_backends",
    "mask_picture",
]

Judge = Callable[[Subject], tuple[Outcome, ...]]
Call = Callable[[Tensor, Tensor], Tensor]
"""Token ids (B, T) and (B, T) bool, True = a real token, to outputs (B, T, D)."""


with suppress(ModuleNotFoundError):  # The assertions do without pytest.
    import pytest

    @pytest.fixture
    def mask_picture(tmp_path: Path) -> Path:
        """Where an assertion given ``picture=mask_picture`` writes its HTML page when it fails."""
        return tmp_path / "mask.html"


def assert_no_future_leak(
    model: Any,
    ids: Tensor | None = None,
    *,
    keep: Tensor | None = None,
    embedding: nn.Module | None = None,
    call: Call | None = None,
    pad_id: int = 0,
    ahead: int = 0,
    picture: Path | None = None,
) -> None:
    """Assert that no output depends on a later token: future-token (B1), and gradient-reach (B5) as far as it tells.

    Earlier tokens may go unused, as in a window. Of an encoder-decoder model only the decoder is judged. The model is
    also run with every token called real: some are given no mask where nothing is padded. ``ahead`` later tokens may be
    used, as a streaming model looks ahead; it is the sum of what its layers look ahead.

    Raises:
        AssertionError: naming the outputs and inputs, and a test that could not run.
    """
    if ahead < 0:
        raise ValueError(say("ahead is a number of tokens, 0 or more; got {ahead}.", ahead=ahead))
    subjects = _build_test_subjects(model, ids, keep, embedding, call, pad_id, causal=True)
    looking = {part: replace(subject, ahead=ahead) for part, subject in subjects.items()}
    _assert_no_fault(looking, run_future_tests, picture)


def assert_padding_ignored(
    model: Any,
    ids: Tensor | None = None,
    *,
    keep: Tensor | None = None,
    embedding: nn.Module | None = None,
    call: Call | None = None,
    causal: bool = False,
    pad_id: int = 0,
    picture: Path | None = None,
) -> None:
    """Assert that no real output depends on padding, nor on how much there is: padding-content and -amount (B2, B3).

    Raises:
        AssertionError: naming the end that was padded.
    """
    judge = partial(run_mask_tests, codes=("padding-content", "padding-amount"))
    _assert_no_fault(_build_test_subjects(model, ids, keep, embedding, call, pad_id, causal), judge, picture)


def assert_batch_invariant(
    model: Any,
    ids: Tensor | None = None,
    *,
    keep: Tensor | None = None,
    embedding: nn.Module | None = None,
    call: Call | None = None,
    causal: bool = False,
    pad_id: int = 0,
    picture: Path | None = None,
) -> None:
    """Assert that no output depends on another sample of the batch: batch-neighbour (B4).

    Every sample is compared while the others change, and the first one alone with itself in the batch.

    Raises:
        AssertionError: naming the change.
    """
    judge = partial(run_mask_tests, codes=("batch-neighbour",))
    _assert_no_fault(_build_test_subjects(model, ids, keep, embedding, call, pad_id, causal), judge, picture)


def _assert_no_fault(subjects: Mapping[str, Subject], judge: Judge, picture: Path | None) -> None:
    for part, subject in subjects.items():
        _check_outputs(subject)
        outcomes = judge(subject)
        bad = [one for one in outcomes if one.status == "fault"]
        if bad:
            where = "" if picture is None else say("See {file}.", file=_write_dependence_picture(picture, subject, bad))
            modules = dict.fromkeys(describe_leaking_module(subject, one.check) for one in bad)
            faults = "; ".join(f"{part}: {one.check}: {one.reason}" for one in bad)
            left = [
                say("{check} could not run: {reason}.", check=str(one.check), reason=one.reason)
                for one in outcomes
                if one.status == "not applicable"
            ]
            raise AssertionError(join_sentences(say("{faults}.", faults=faults), *modules, *left, where))


@torch.no_grad()
def _check_outputs(subject: Subject) -> None:
    """TypeError or ValueError for outputs that are not (B, T, D), or not the same when the model runs again."""
    first, again = (subject.run(subject.embeddings, subject.keep) for _ in range(2))
    if not isinstance(first, Tensor):
        raise TypeError(
            say(
                "The model returned a {type}, not a tensor of outputs (B, T, D): give a function that returns them, "
                "such as call=lambda ids, keep: model(ids)[0].",
                type=type(first).__name__,
            )
        )
    shape = tuple(subject.real_output_mask.shape)
    if first.dim() < 3 or first.shape[:2] != shape:
        raise ValueError(
            say(
                "The outputs have the shape {shape}, but masks are judged by outputs (B, T, D), here ({samples}, "
                "{tokens}, D), a row for each token: give a function that returns those as call=...",
                shape=tuple(first.shape),
                samples=str(shape[0]),
                tokens=str(shape[1]),
            )
        )
    if not torch.allclose(first, again, rtol=0, atol=0, equal_nan=True):
        raise ValueError(
            say(
                "The model gives other outputs when it runs again on the same tokens, as dropout does in training: "
                "call model.eval() first."
            )
        )


def _build_test_subjects(
    model: Any,
    ids: Tensor | None,
    keep: Tensor | None,
    embedding: nn.Module | None,
    call: Call | None,
    pad_id: int,
    causal: bool,
) -> dict[str, Subject]:
    """The model as the tests see it. Raises TypeError and ValueError for arguments that do not make one."""
    if isinstance(model, Subject):
        module = model.run if model.module is None and isinstance(model.run, nn.Module) else model.module
        return {"model": replace(model, causal=causal or model.causal, module=module)}
    if ids is None or ids.dim() != 2 or ids.shape[0] < 2:
        raise TypeError(say("Give token ids of the shape (B, T), two samples or more."))
    keep = _make_right_padding_mask(ids) if keep is None else keep.to(ids.device)
    if keep.dtype != torch.bool or keep.shape != ids.shape or not bool(keep.any(-1).all()):
        raise ValueError(
            say(
                "keep must be booleans {shape}, True = a real token, one or more in each sample.",
                shape=tuple(ids.shape),
            )
        )
    if embedding is None:
        if not hasattr(model, "get_input_embeddings"):
            raise TypeError(say("Say which module embeds the tokens: embedding=model.embedding."))
        return subjects_from_hugging_face(model, ids, keep, causal=causal)
    module = model if isinstance(model, nn.Module) else None
    run = call if call is not None else lambda tokens, kept: model(tokens)
    return {"model": subject_from_ids(run, embedding, ids, keep, causal, pad_id, module=module)}


def _make_right_padding_mask(ids: Tensor) -> Tensor:
    """(B, T) bool: the last two tokens of the last sample count as padding, if there are so many."""
    keep = torch.ones_like(ids, dtype=torch.bool)
    keep[-1, max(1, ids.shape[1] - 2) :] = False
    return keep


def _write_dependence_picture(picture: Path, subject: Subject, bad: list[Outcome]) -> Path:
    """A table of what each output depends on, leaks in red."""
    found = None if subject.output_keep is not None else measure_dependencies(subject)
    rows = (
        ""
        if found is None
        else "".join(
            _build_dependence_row_html(one, may)
            for one, may in zip(found[0], find_reachable_inputs(subject)[0], strict=True)
        )
    )
    words = html.escape("; ".join(f"{one.check}: {one.reason}" for one in bad))
    picture.write_text(
        f"<!doctype html><meta charset=utf-8><title>{say('Masks')}</title><p>{words}</p>"
        f"<p>{say('Outputs down, inputs across. Red: must not depend, and does.')}</p><table>{rows}</table>",
        encoding="utf-8",
    )
    return picture


def _build_dependence_row_html(sizes: Tensor, may: Tensor) -> str:
    colours = [
        "#c0392b" if size and not ok else "#4b3fd6" if size else "#eee" for size, ok in zip(sizes, may, strict=True)
    ]
    return "<tr>" + "".join(f'<td style="width:1.2em;height:1.2em;background:{one}"></td>' for one in colours)
