"""Packed documents that arrays tell: cumulative lengths as the meaning they are, and positions that begin anew."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..language import say, say_many
from .arrays import DiagnosisError
from .catalogue import FAULTS
from .findings import Diagnosis, Finding
from .rule import build_layer_masks
from .softmax import find_restarts

# Cumulative lengths (FlashAttention: cu_seqlens) and positions that begin anew are both (K,): nothing here has Q x K
# cells unless weights, scores or a mask have them.


CUMULATIVE = "cu_seqlens"
"""The name of cumulative lengths among the arrays of a diagnosis."""


def state_documents(
    named: Mapping[str, np.ndarray], meant: str | None = None
) -> tuple[dict[str, np.ndarray], str | None]:
    """Return the arrays with the documents of ``cu_seqlens``, where given, as ``meant``, and what ``meant`` is then.

    A meaning in words holds inside of each document. Without one it is causal where nothing given lies above the
    diagonal.

    Raises:
        DiagnosisError: for lengths that are none, or that do not fit the map.
    """
    arrays = dict(named)
    ends = arrays.pop(CUMULATIVE, None)
    if ends is None:
        return arrays, meant
    shown = next((arrays[name] for name in ("weights", "masked_scores", "mask", "scores") if name in arrays), None)
    if shown is None or shown.ndim < 2 or "meant" in arrays:
        return arrays, meant
    queries, keys = shown.shape[-2:]
    document = number_documents(ends, keys)
    if queries != keys:
        raise DiagnosisError(
            say("cu_seqlens is of {keys} tokens, but there are {queries} queries.", keys=keys, queries=queries)
        )
    same = document[:, None] == document
    if meant is None:
        return arrays | {"meant": same & np.tri(keys, dtype=bool) if _is_causal(shown) else same}, None
    layers = shown.shape[1] if shown.ndim == 5 else 1
    masks = build_layer_masks(meant, layers, queries, keys) & same
    return arrays | {"meant": masks[None, :, None] if len(masks) > 1 else masks[0]}, None


def number_documents(ends: np.ndarray, tokens: int) -> np.ndarray:
    """Return (tokens,): the number of the document of each token, from cumulative lengths. Raises DiagnosisError."""
    ends = np.asarray(ends)
    flat = ends.reshape(-1)
    whole = flat.size > 1 and bool((flat == np.round(flat)).all())
    if flat.size != ends.shape[-1] or not whole or flat[0] != 0 or (np.diff(flat) < 0).any():
        raise DiagnosisError(say("cu_seqlens is a list of growing whole numbers that starts at 0."))
    if flat[-1] != tokens:
        raise DiagnosisError(
            say("cu_seqlens ends at {last}, but there are {tokens} tokens.", last=int(flat[-1]), tokens=tokens)
        )
    return np.searchsorted(flat[1:], np.arange(tokens), side="right")


def _is_causal(shown: np.ndarray) -> bool:
    """Whether weights, a mask or masked scores (..., T, T) have nothing above the diagonal."""
    above = shown[..., ~np.tri(shown.shape[-1], dtype=bool)]
    return not (above > 0).any() if above.dtype.kind in "bui" or (above >= 0).all() else bool((above < -1e3).all())


def diagnose_documents(named: Mapping[str, np.ndarray]) -> Diagnosis | None:
    """Return the diagnosis of cumulative lengths beside positions, where nothing else is to be judged; else None.

    Raises:
        DiagnosisError: for lengths that are none, or that do not fit the positions.
    """
    if CUMULATIVE not in named or {"weights", "scores", "masked_scores", "mask"} & named.keys():
        return None
    ends = np.asarray(named[CUMULATIVE]).reshape(-1)
    positions = named.get("position_ids")
    tokens = int(ends[-1]) if positions is None and ends.size else np.asarray(positions).size
    document = number_documents(named[CUMULATIVE], tokens)
    count = np.unique(document).size
    words = say_many(
        "{count:,} packed document of {tokens:,} tokens",
        "{count:,} packed documents of {tokens:,} tokens",
        count,
        tokens=tokens,
    )
    if positions is None:
        return Diagnosis((), (), words, 1.0, stated=True)
    starts = np.concatenate([[False], document[1:] != document[:-1]])
    flat = np.asarray(positions).reshape(-1)
    disagree = {"document-leak": find_restarts(flat) & ~starts, "over-blocked": starts & (flat != flat[0])}
    findings = [_make_document_finding(code, wrong, document) for code, wrong in disagree.items() if wrong.any()]
    return Diagnosis(tuple(findings), (), words, 1.0, stated=True)


_POSITIONS_FIX = "position_ids = torch.arange(K) - cu_seqlens[:-1].repeat_interleave(cu_seqlens.diff())"


def _make_document_finding(code: str, wrong: np.ndarray, document: np.ndarray) -> Finding:
    """Return the finding on the tokens ``wrong`` (K,) bool, which names the first of them."""
    token, more = int(np.argmax(wrong)), int(wrong.sum()) - 1
    place = {"token": f"{token + 1:,}", "document": f"{int(document[token]) + 1:,}"}
    what = (
        say("positions begin anew at token {token}, inside document {document}", **place)
        if code == "document-leak"
        else say("document {document} begins at token {token}, where positions count on", **place)
    )
    message = say("cu_seqlens and position_ids disagree: {what}.", what=what)
    if more:
        message = say("cu_seqlens and position_ids disagree: {what}, and {more:,} more.", what=what, more=more)
    return Finding(code, FAULTS[code].severity, "", 0, None, None, (token,), (token,), message, _POSITIONS_FIX)
