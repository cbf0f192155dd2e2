"""Assertions about masks for anybody's tests, and a picture of what went wrong.

    from attenscope.testing import assert_no_future_leak, mask_picture

    def test_my_decoder(mask_picture):
        assert_no_future_leak(model, ids, picture=mask_picture)

``model`` is a Hugging Face model, a :class:`~.behaviour.Subject`, or any module of token ids: then ``embedding`` names
the module in it that embeds them, and it is called as ``model(ids)`` unless ``call`` says otherwise.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from .behaviour import Outcome, Subject, dependencies, examine, reachable
from .behaviour_subjects import from_hugging_face, from_ids


@pytest.fixture
def mask_picture(tmp_path: Path) -> Path:
    """Where an assertion given ``picture=mask_picture`` writes its HTML page when it fails."""
    return tmp_path / "mask.html"


def assert_no_future_leak(model: Any, ids: Tensor | None = None, **how: Any) -> None:
    """No output may depend on a later token, by changing tokens (B1) and by gradients (B5).

    Raises:
        AssertionError: naming the outputs and inputs.
    """
    _check(model, ids, ("B1", "B5"), causal=True, **how)


def assert_padding_ignored(model: Any, ids: Tensor | None = None, **how: Any) -> None:
    """No real output may depend on padding (B2), nor on how much of it there is (B3). Raises AssertionError."""
    _check(model, ids, ("B2", "B3"), **how)


def assert_batch_invariant(model: Any, ids: Tensor | None = None, **how: Any) -> None:
    """No output may depend on another sample of the batch (B4). Raises AssertionError."""
    _check(model, ids, ("B4",), **how)


def _check(model: Any, ids: Tensor | None, codes: tuple[str, ...], picture: Path | None = None, **how: Any) -> None:
    for part, subject in _subjects(model, ids, **how).items():
        outcomes = [one for one in examine(subject) if one.code in codes]
        bad = [one for one in outcomes if one.status == "fault"]
        if bad:
            where = "" if picture is None else f" See {_draw(picture, subject, bad)}."
            raise AssertionError("; ".join(f"{part}: {one.code}: {one.reason}" for one in bad) + "." + where)


def _subjects(
    model: Any,
    ids: Tensor | None,
    keep: Tensor | None = None,
    embedding: torch.nn.Module | None = None,
    call: Callable[[Tensor, Tensor], Tensor] | None = None,
    causal: bool = False,
    pad_id: int = 0,
) -> dict[str, Subject]:
    """The model as the tests see it. Without ``keep`` the last two tokens of the last sample count as padding."""
    if isinstance(model, Subject):
        return {"model": model}
    if ids is None or ids.dim() != 2 or ids.shape[0] < 2:
        raise TypeError("Give token ids of the shape (B, T), two samples or more.")
    if keep is None:
        keep = torch.ones(ids.shape, dtype=torch.bool)
        keep[-1, -2:] = False
    if embedding is None:
        if not hasattr(model, "get_input_embeddings"):
            raise TypeError("Say which module embeds the tokens: embedding=model.embedding.")
        return from_hugging_face(model, ids, keep)
    run = call if call is not None else lambda tokens, kept: model(tokens)
    return {"model": from_ids(run, embedding, ids, keep, causal, pad_id)}


def _draw(picture: Path, subject: Subject, bad: list[Outcome]) -> Path:
    """A table of what each output depends on, leaks in red."""
    found = None if subject.output_keep is not None else dependencies(subject)
    rows = (
        ""
        if found is None
        else "".join(_row(one, may) for one, may in zip(found[0], reachable(subject)[0], strict=True))
    )
    words = html.escape("; ".join(f"{one.code}: {one.reason}" for one in bad))
    picture.write_text(
        f"<!doctype html><meta charset=utf-8><title>Masks</title><p>{words}</p>"
        f"<p>Outputs down, inputs across. Red: must not depend, and does.</p><table>{rows}</table>",
        encoding="utf-8",
    )
    return picture


def _row(sizes: Tensor, may: Tensor) -> str:
    colours = [
        "#c0392b" if size and not ok else "#4b3fd6" if size else "#eee" for size, ok in zip(sizes, may, strict=True)
    ]
    return "<tr>" + "".join(f'<td style="width:1.2em;height:1.2em;background:{one}"></td>' for one in colours)
