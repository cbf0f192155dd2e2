"""The measures of a head, row by row, and their sums over the rows of a batch.

A measure is a mean over the rows (queries) that have a choice, two keys or more, and for which it is defined: the first
row has no previous token. The rows of all sentences count alike. Sentences of even and of odd numbers are summed apart,
so that what one half of a corpus says can be held against the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..language.say import to_say
from ..network.autoregressive import AutoregressiveModel
from ..trace import KINDS, Kind
from .costs import log_prob_changes
from .forward import Run, cells_of, shuffled_overlap
from .logits import logit_contributions, norm_shares
from .places import PLACES

HALVES = 2
HELD, EVEN = "_rows", "_even"
"""Endings: the share of rows of which a place holds more than half the weight, and would in a row spread evenly."""
HAS = "_has"
"""Ending: the share of a head's rows that have a place."""
COST = "cost"
EXPLAINED: MappingProxyType[str, str] = MappingProxyType(
    {
        "entropy": to_say(
            "Entropy: entropy of a row in nats: 0 where it looks at one key, ln of their number where at all alike."
        ),
        "distance": to_say(
            "Distance: mean distance in tokens between query and key, weighted by the weights; in cross-attention from "
            "the diagonal that runs from corner to corner."
        ),
        "top": to_say("Largest weight: the largest weight of a row."),
        "stays": to_say(
            "Stays when shuffled: what of a row's weight stays on the same tokens when the words of the source change "
            "places at random: near 1 for a head that goes by words, low for one that goes by places."
        ),
        "norm": to_say(
            "Share of the norm: the head's share of what the heads of its layer add to a row, by the norm of what each "
            "adds (Kobayashi et al. 2020)."
        ),
        "logit": to_say(
            "Logit contribution: what the head adds by itself to the logit of the reference token, mean over the "
            "tokens (direct logit attribution, Elhage et al. 2021)."
        ),
        "cost": to_say(
            "Cost: how far the log-probability of a reference token falls, in nats, when this head alone is switched "
            "off; mean over the tokens. Below 0 the model is better without it."
        ),
        "same": to_say("The token itself: share of the weight on the token itself, in rows that have it."),
        "previous": to_say("Previous token: share of the weight on previous token, in rows that have it."),
        "next": to_say("Next token: share of the weight on next token, in rows that have it."),
        "first": to_say("First token: share of the weight on first token, in rows that have it."),
        "last": to_say("Last token before </s>: share of the weight on last token before </s>, in rows that have it."),
        "end": to_say("</s>: share of the weight on </s>, in rows that have it."),
        "punctuation": to_say("Punctuation: share of the weight on punctuation, in rows that have it."),
        "same_word": to_say("The same word: share of the weight on the same word, in rows that have it."),
        "later_piece": to_say(
            "Later piece of the word: share of the weight on later piece of the word, in rows that have it."
        ),
        "rare": to_say(
            "Words in several pieces: share of the weight on words in several pieces, in rows that have it."
        ),
        "aligned_predicted": to_say(
            "Alignment of the token predicted: share of the weight on alignment of the token predicted, in rows that "
            "have it."
        ),
        "aligned_fed": to_say(
            "Alignment of the token fed in: share of the weight on alignment of the token fed in, in rows that have it."
        ),
    }
)
"""Every measure that a person chooses, with what it means."""
SHARES: tuple[str, ...] = (*PLACES, "stays", "norm", "top")
"""The measures that lie between 0 and 1."""


class Rows(NamedTuple):
    """A measure of every row."""

    name: str
    values: Tensor
    """(B, L, H, Q), or (B, 1, 1, Q) where all heads have the same."""
    counted: Tensor
    """(B, 1 or L, 1 or H, Q) bool"""


class Sums(NamedTuple):
    """Sums of measures over rows, and how many rows."""

    total: np.ndarray
    """(2, L, H), a half of the corpus each, float64"""
    rows: np.ndarray
    """(2, L, H)"""


class Measured(NamedTuple):
    """What is measured of a batch."""

    sums: dict[Kind, dict[str, Sums]]
    costs: dict[Kind, np.ndarray]
    """(B, L, H, T) the fall of each token's log-probability with the head off, in nats; NaN at padding."""
    cells: dict[Kind, Tensor]


def measure(model: AutoregressiveModel, found: Run, with_costs: bool = True) -> Measured:
    """Measure every head on a batch."""
    halves = torch.tensor([one.line % HALVES for one in found.batch.sentences], device="cpu")
    overlaps, logits = shuffled_overlap(model, found), logit_contributions(model, found)
    changes = log_prob_changes(model, found) if with_costs else {}
    real = found.batch.real("decoder")[0][:, None, None]
    sums: dict[Kind, dict[str, Sums]] = {}
    cells = {kind: cells_of(found, kind) for kind in KINDS}
    for kind in KINDS:
        rows = [*_of_rows(found, kind), *_of_places(found, kind, cells[kind])]
        counted = _choosing(found, kind)[:, None, None]
        rows.append(Rows("stays", overlaps[kind], counted & ~overlaps[kind].isnan()))
        shares = norm_shares(found, kind)
        if shares is not None:
            rows.append(Rows("norm", shares, counted))
        if kind in logits:
            rows.append(Rows("logit", logits[kind], real))
        if kind in changes:
            rows.append(Rows(COST, -changes[kind], real))
        heads = found.weights(kind).shape[1:3]
        sums[kind] = {one.name: _summed(one, halves, heads) for one in rows}
    costs = {kind: torch.where(real, -one, torch.nan).cpu().numpy() for kind, one in changes.items()}
    return Measured(sums, costs, cells)


def _choosing(found: Run, kind: Kind) -> Tensor:
    """(B, Q) bool: the rows with two allowed keys or more."""
    return found.batch.allowed(kind).sum(-1) > 1


def _of_rows(found: Run, kind: Kind) -> Iterator[Rows]:
    """Entropy, distance and top weight."""
    weights, counted = found.weights(kind), _choosing(found, kind)[:, None, None]
    logs = weights.clamp_min(torch.finfo(weights.dtype).tiny).log()
    yield Rows("entropy", -(weights * logs).sum(-1), counted)
    queries, keys = (torch.arange(size, device=weights.device) for size in weights.shape[-2:])
    if kind == "cross":
        real_queries, real_keys = (real.sum(-1)[:, None, None] for real in found.batch.real(kind))
        apart = ((queries[None, :, None] + 0.5) * real_keys / real_queries - (keys[None, None, :] + 0.5)).abs()
    else:
        apart = (queries[:, None] - keys[None, :]).abs()[None]
    yield Rows("distance", (weights * apart[:, None, None]).sum(-1), counted)
    yield Rows("top", weights.max(-1).values, counted)


def _of_places(found: Run, kind: Kind, cells: Tensor) -> Iterator[Rows]:
    """The share of each place, whether it holds more than a half, and whether it would in an even row."""
    masses = torch.einsum("blhqk,bqkp->plhbq", found.weights(kind), cells.to(torch.float32))
    allowed, choosing = found.batch.allowed(kind).sum(-1), _choosing(found, kind)
    for number, place in enumerate(PLACES):
        held = cells[..., number].sum(-1)
        counted = (choosing & (held > 0))[:, None, None]
        if counted.any():
            mass = masses[number].permute(2, 0, 1, 3)
            yield Rows(place, mass, counted)
            yield Rows(f"{place}{HELD}", (mass > 0.5).double(), counted)
            yield Rows(f"{place}{EVEN}", (2 * held > allowed).double()[:, None, None], counted)


def _summed(rows: Rows, halves: Tensor, heads: tuple[int, ...]) -> Sums:
    shape = (len(halves), *heads, rows.values.shape[-1])
    counted = rows.counted.expand(shape)
    values = torch.where(counted, rows.values.expand(shape).double(), 0.0).sum(-1).cpu()
    numbers = counted.sum(-1).cpu()
    totals = [torch.stack([one[halves == half].sum(0) for half in range(HALVES)]).numpy() for one in (values, numbers)]
    return Sums(*totals)
