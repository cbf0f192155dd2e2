"""How attention itself knows distances: what a running model makes of them, beside the formula that it follows.

A text of one token repeated has the same query and the same key at every place of the first layer, so that whatever
its scores differ by is the work of positions: rotary ones (Su et al. 2021), ALiBi (Press et al. 2022), or a bias for
each distance (Raffel et al. 2020, section 2.1).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from ..capture.attention import AttentionPoints
from ..network.hooks import hook_outputs
from ..trace import Kind
from .networks import FolderNetwork, get_text_config

PROBE_TOKENS = 64
TOLERANCE = 2e-5
"""The largest difference of scores that are taken for the same, in units of the largest of them; 1 at least."""
COARSE_TOLERANCE = 2e-2
"""The same for a model, or a bias, that is computed in less than float32."""
ROTARY_BASE = 10_000.0

DistanceForm = Literal["rotary", "alibi", "bias", "none", "unknown"]
"""``none``: distances change nothing. ``unknown``: none of the formulas gives what the model computes."""


@dataclass(frozen=True, eq=False)
class DistanceScores:
    """What the first layer of a stack adds to a score for the distance of its key, of each head."""

    kind: Kind
    form: DistanceForm
    distances: np.ndarray
    """(N,) how many tokens the key stands before its query; negative behind it."""
    measured: np.ndarray
    """(H, N) the score at each distance less that of the query's own place, from the weights of the running model."""
    formula: np.ndarray | None
    """(H, N) the same by the formula; None where none is known."""
    facts: Mapping[str, float | str] = field(default_factory=dict)
    """What the formula is filled with: base, dimensions, layout of rotary positions; factor of ALiBi; buckets, most."""

    @property
    def error(self) -> float:
        """The largest difference of the two."""
        return float("nan") if self.formula is None else float(np.nanmax(np.abs(self.measured - self.formula)))


@torch.inference_mode()
def measure_distance_scores(network: FolderNetwork, token: int) -> tuple[DistanceScores, ...]:
    """Return what each stack's self-attention makes of distance; nothing of one where place decides, or a state.

    Args:
        network: a probed model, which adds no table of positions.
        token: the id that is repeated.
    """
    device = next(network.parameters()).device
    ids = torch.full((1, min(PROBE_TOKENS, network.positions - 1)), token, device=device)
    points = {one.kind: one for one in network.modules() if isinstance(one, AttentionPoints) and one.layer == 0}
    found = []
    for kind in ("encoder", "decoder"):
        layers = network.layers(kind)
        first = points.get(kind)
        if first is None or first not in {*layers[0].modules()}:  # a layer without attention has mixed the places
            continue
        seen: dict[str, Tensor] = {}
        kept = {"q": first.q, "k": first.k, "scores": first.scores, "weights": first.weights}
        with hook_outputs({module: _make_recorder(seen, name) for name, module in kept.items()}):
            network(ids, ids if network.model.config.is_encoder_decoder else ids[:, :1])
        one = _make_distance_scores(network, kind, first, seen)
        found += [] if one is None else [one]
    return tuple(found)


def _make_recorder(seen: dict[str, Tensor], name: str) -> Any:
    return lambda output: seen.update({name: output.detach().float().cpu()})


def _make_distance_scores(
    network: FolderNetwork, kind: Kind, points: AttentionPoints, seen: Mapping[str, Tensor]
) -> DistanceScores | None:
    scores = seen["weights"][0].double().log()  # a softmax keeps differences of scores, and only these matter
    scores = scores.masked_fill(scores == -math.inf, math.nan)
    relative = scores - scores.diagonal(dim1=-2, dim2=-1)[..., None]
    before = relative[:, -1].flip(-1).numpy()
    distances, measured = np.arange(before.shape[1]), before
    if kind == "encoder":
        behind = relative[:, 0, 1:].flip(-1).numpy()
        distances = np.arange(-behind.shape[1], before.shape[1])
        measured = np.concatenate([behind, before], 1)
    if _measure_difference(before[:, :-1], relative[:, -2, :-1].flip(-1).numpy()) > COARSE_TOLERANCE:
        return None
    formulas = [*_list_formulas(network, kind, points, seen, distances, measured)]
    single = next(network.parameters()).dtype == torch.float32
    near = []
    for form, formula, facts in formulas:
        # Some models round the bias of ALiBi to bfloat16 whatever else they compute in.
        tolerance = TOLERANCE if single and form != "alibi" else COARSE_TOLERANCE
        difference = _measure_difference(measured, formula)
        if difference <= tolerance:
            near.append((facts.get("base") == 0, difference, form, formula, facts))
    if not near:
        return DistanceScores(kind, "unknown", distances, measured, None)
    *_, form, formula, facts = min(near, key=lambda one: one[:2])  # angles read off the model only where none is told
    return DistanceScores(kind, form, distances, measured, formula, facts)


def _measure_difference(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference, in units of the largest of `one`; 1 at least."""
    seen = np.isfinite(one) & np.isfinite(other)
    return float(np.abs(one - other)[seen].max(initial=0) / np.abs(one[seen]).max(initial=1))


Formula = tuple[DistanceForm, np.ndarray, Mapping[str, float | str]]


def _list_formulas(
    network: FolderNetwork,
    kind: Kind,
    points: AttentionPoints,
    seen: Mapping[str, Tensor],
    distances: np.ndarray,
    measured: np.ndarray,
) -> Iterator[Formula]:
    yield "none", np.zeros((points.heads, len(distances))), {}
    yield from _list_bias_formulas(network, kind, distances)
    for slopes in (compute_alibi_slopes(points.heads), compute_alibi_slopes(points.heads, extra_last=False)):
        line = -slopes[:, None] * np.abs(distances)
        factor = float(np.nanmedian(measured[:, distances != 0] / line[:, distances != 0]))  # Falcon's is not 1
        yield "alibi", factor * line, {"factor": factor}
    if {"q", "k", "scores"} <= set(seen):
        yield from _list_rotary_formulas(network, seen, distances)


def compute_alibi_slopes(heads: int, *, extra_last: bool = True) -> np.ndarray:
    """(H,) the slopes of ALiBi: 2^(-8 h / H) of heads from 1, for a power of two.

    For other numbers of heads every second slope of twice the next lower power comes beside those of that power:
    behind them (Press et al., BLOOM), or first (`extra_last` False, MPT).
    """
    power = 2 ** math.floor(math.log2(heads))
    if power == heads:
        return 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
    if extra_last:
        own, extra = compute_alibi_slopes(power), compute_alibi_slopes(2 * power)[0::2]
        return np.concatenate([own, extra])[:heads]
    both = compute_alibi_slopes(2 * power)
    return np.concatenate([both[1::2], both[0::2]])[:heads]


def compute_bias_buckets(distances: np.ndarray, buckets: int, most: int, *, both_sides: bool) -> np.ndarray:
    """(N,) the bucket of each distance to a key before its query, as T5 counts them.

    Half of the buckets are for one distance each, the others for ranges that grow up to the distance `most`; of an
    encoder one half each is for keys before and behind.
    """
    found = np.zeros(len(distances), dtype=int)
    if both_sides:
        buckets //= 2
        found += buckets * (distances < 0)
        distances = np.abs(distances)
    distances = np.maximum(distances, 0)
    exact = buckets // 2
    # In float32, as the model computes it: at the edges of the ranges the last digit decides.
    ratio = np.log(np.maximum(distances, 1).astype(np.float32) / np.float32(exact)) / np.float32(math.log(most / exact))
    ranged = np.minimum(exact + (ratio * np.float32(buckets - exact)).astype(int), buckets - 1)
    return found + np.where(distances < exact, distances, ranged)


def _list_bias_formulas(network: FolderNetwork, kind: Kind, distances: np.ndarray) -> Iterator[Formula]:
    """The learned bias of each bucket, less that of the own place."""
    settings = get_text_config(network.model)
    buckets, most = (getattr(settings, f"relative_attention_{name}", None) for name in ("num_buckets", "max_distance"))
    tables = [one for path, one in network.layers(kind)[0].named_modules() if path.endswith("relative_attention_bias")]
    if buckets is None or most is None or not tables or not isinstance(tables[0], nn.Embedding):
        return
    table = tables[0].weight.detach().float().cpu().numpy()
    which = compute_bias_buckets(distances, buckets, most, both_sides=kind == "encoder")
    own = compute_bias_buckets(np.zeros(1, int), buckets, most, both_sides=kind == "encoder")
    yield "bias", (table[which] - table[own]).T.astype(float), {"buckets": buckets, "most": most}


def _list_rotary_formulas(
    network: FolderNetwork, seen: Mapping[str, Tensor], distances: np.ndarray
) -> Iterator[Formula]:
    """Query and key of position 0, which is not turned, turned apart by each distance."""
    query, key = (seen[name][0, :, 0].double().numpy() for name in ("q", "k"))
    product = (query * key).sum(-1)
    if not product.any():
        return
    cap = getattr(get_text_config(network.model), "attn_logit_softcapping", None)
    score = seen["scores"][0, :, 0, 0].double().numpy()
    uncapped = cap * np.arctanh(score / cap) if cap else score
    scale = float(np.median(uncapped[product != 0] / product[product != 0]))
    width = query.shape[-1]
    for base, turns in _list_rotary_speeds(network, width):
        count = 2 * len(turns)
        for layout in ("halves", "neighbours"):
            for start in dict.fromkeys((0, width - count)):
                turned = _turn(query, distances, turns, layout, start)  # (H, N, d)
                scores = scale * (turned * key[:, None]).sum(-1)
                formula = (cap * np.tanh(scores / cap) if cap else scores) - score[:, None]
                yield "rotary", formula, {"base": base, "dimensions": count, "layout": layout}


def _list_rotary_speeds(network: FolderNetwork, width: int) -> Iterator[tuple[float, np.ndarray]]:
    """Bases and the angles that pairs turn by a token: by the formula, then as the model holds them (base 0)."""
    settings = get_text_config(network.model)
    named = dict(_walk_numbers(settings.to_dict()))
    bases = [value for name, value in named.items() if "theta" in name or name.endswith("rotary_emb_base")]
    held = [one for name, one in network.named_buffers() if name.endswith("inv_freq")]
    shares = [value for name, value in named.items() if name.endswith(("partial_rotary_factor", "rotary_pct"))]
    counts = [2 * len(one) for one in held]
    counts += [int(value) for name, value in named.items() if name.endswith(("rotary_dim", "qk_rope_head_dim"))]
    counts += [int(share * width) for share in shares] + [width]
    for count in dict.fromkeys(one for one in counts if 0 < one <= width and one % 2 == 0):
        for base in dict.fromkeys([*bases, ROTARY_BASE]):
            yield float(base), float(base) ** (-np.arange(0, count, 2) / count)
    for one in held:
        if 2 * len(one) <= width:
            yield 0.0, one.double().cpu().numpy()


def _walk_numbers(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, float]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _walk_numbers(value, f"{path}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            yield f"{path}{name}", value


def _turn(
    rows: np.ndarray, distances: Sequence[int] | np.ndarray, turns: np.ndarray, layout: str, start: int
) -> np.ndarray:
    """Rows (H, d) turned by each distance: (H, N, d). Pairs are neighbours, or one of each half."""
    pairs = np.arange(len(turns))
    first, second = (2 * pairs, 2 * pairs + 1) if layout == "neighbours" else (pairs, pairs + len(turns))
    first, second = first + start, second + start
    angles = np.asarray(distances)[:, None] * turns
    found = np.repeat(rows[:, None], len(angles), 1)
    one, other = rows[:, None, first], rows[:, None, second]
    found[..., first] = one * np.cos(angles) - other * np.sin(angles)
    found[..., second] = other * np.cos(angles) + one * np.sin(angles)
    return found
