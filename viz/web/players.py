"""Components that play through steps in the browser: one decoding, or the snapshots of a training."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attenscope.language import say
from attenscope.trace import AttentionMap
from attenscope.viz.figures.figure_style import KIND_NAMES, Look, name_tokens_apart, readable_token, shorten_token
from attenscope.viz.figures.heatmap import RowLabel
from attenscope.viz.web.component_scripts import component_value, create_mount_function, pack_arrays, quantise_weights
from attenscope.viz.web.text_components import build_token_data

if TYPE_CHECKING:
    from attenscope.decoding.greedy_and_sampling import Candidate, DecodingStep
    from attenscope.runnable_model import Translation

# One decoding, step by step: both sentences, the attention of the step and its candidates; scrubbed in the browser.


_mount_decode_player = create_mount_function("decode_player")
MAX_CANDIDATES = 8


@dataclass(frozen=True)
class PlayerStart:
    """What the player begins with; changed in the browser from then on."""

    step: int
    """From 0."""
    cross: str
    """Cross-attention of ``aligning``, or ``3.1``: a head, or ``3.mean``: a layer's mean; counted from 1."""
    own: str
    """The same for the decoder's self-attention, which has no aligning head."""
    aligning: tuple[int, int] | None
    """Layer and head, from 0, of the best aligning head; None where none is offered."""


def draw_decode_player(
    result: Translation,
    start: PlayerStart,
    look: Look,
    *,
    key: str,
    run: str,
    on_step: Callable[[int], None],
    on_view: Callable[[str, str], None],
    on_pick: Callable[[int, int], None],
    on_forbid: Callable[[int, int], None],
    on_word: Callable[[int], None],
) -> None:
    """Draw all steps of `result`; another `run` starts anew.

    Callbacks, with steps from 0: `on_step(step)` hears of a step one has come to rest at, `on_view(cross, own)` of the
    heads chosen, `on_pick(step, token_id)` and `on_forbid(step, token_id)` of a candidate to go on from or never to
    write, `on_word(step)` of a word of the translation that was pressed.
    """
    state = lambda: component_value(key)  # noqa: E731  (what the browser sent, read when a callback runs)
    _mount_decode_player(
        key=key,
        data=encode_decode_player(result, start, look, run),
        on_step_change=lambda: on_step(int(state().step)),
        on_view_change=lambda: on_view(str(state().view["cross"]), str(state().view["own"])),
        on_pick_change=lambda: on_pick(int(state().pick["step"]), int(state().pick["id"])),
        on_word_change=lambda: on_word(int(state().word)),
        on_forbid_change=lambda: on_forbid(int(state().forbid["step"]), int(state().forbid["id"])),
    )


def encode_decode_player(result: Translation, start: PlayerStart, look: Look, run: str) -> bytes:
    """What decode_player.js reads: the words, then the cross (L, H + 1, T, S) and the decoder's (L, H + 1, T, T) bytes.

    After a layer's heads stands their mean: a mean of bytes would not have the decimals of the mean.
    """
    cross, own = result.to_source, result.to_target
    header = {
        "id": run,
        "start": min(start.step, len(result.steps) - 1),
        "source": build_token_data(result.source_tokens, result.special_tokens),
        "target": build_token_data((own.query_tokens[0], *result.target_tokens), result.special_tokens),
        "steps": _step_data(result.steps),
        "cross": {"shape": cross.weights.shape, "chosen": start.cross, "name": _get_cross_attention_label(result)},
        "own": {"shape": own.weights.shape, "chosen": start.own},
        "aligning": start.aligning,
        "stops": look.stops,
        "scale": look.scale,
        "masked": look.palette.masked,
        "background": look.palette.background,
        "inks": (look.palette.ink, look.palette.background),
        "line": look.palette.line,
        "accent": look.palette.accent,
    }
    return pack_arrays(
        header, b"".join(quantise_weights(_append_head_means(one.weights), one.mask).tobytes() for one in (cross, own))
    )


def _get_cross_attention_label(result: Translation) -> str:
    """What the attention to the first line is called."""
    return say("attention to the prompt") if result.trace.cross is None else say("cross-attention")


def _append_head_means(weights: np.ndarray) -> np.ndarray:
    """Return weights (L, H, Q, K) and the mean of each layer's heads as (L, H + 1, Q, K) float64."""
    return np.concatenate([weights, weights.mean(axis=1, keepdims=True, dtype=np.float64)], axis=1)


def _step_data(steps: Sequence[DecodingStep]) -> list[dict[str, Any]]:
    total, found = 0.0, []
    for step in steps:
        total += step.log_prob
        chosen = {
            "id": step.token_id,
            "text": readable_token(step.token),
            "p": math.exp(step.log_prob),
            "rank": step.rank,
        }
        shown = step.candidates[:MAX_CANDIDATES]
        names = name_tokens_apart([one.token for one in shown])
        candidates = [_candidate_data(one, name) for one, name in zip(shown, names, strict=True)]
        found.append({"total": total, "chosen": chosen, "candidates": candidates})
    return found


def _candidate_data(one: Candidate, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"id": one.token_id, "text": name, "p": math.exp(one.log_prob)}
    if one.drawn is not None:
        row["drawn"] = one.drawn
    return row | {"forbidden": True} if one.forbidden else row


# One sentence at every snapshot of a training: all heads are sent at once and scrubbed without asking the server.


_mount_snapshots = create_mount_function("snapshots")


@dataclass(frozen=True)
class SnapshotText:
    """One stop in words."""

    tick: str
    """Under the slider: "366"."""
    name: str
    """"step 366 of 7,000"."""
    text: str | None
    """What the model writes of its own there; None where only its attention is known."""
    belief: float | None
    """The probability it gives a token of the fixed translation; None where that is not known."""
    quality: str
    """"dev BLEU 12.3", or that it is not known; "" where the model has no such measure."""


@dataclass(frozen=True, eq=False)
class SnapshotSequence:
    """All stops of one sentence and one kind of attention."""

    shown: Sequence[SnapshotText]
    maps: Sequence[AttentionMap]
    """One a stop, all of one shape."""
    start: int
    """The stop it begins at, from 0."""
    place: tuple[int, int]
    """Layer and head shown large, from 0."""
    look: Look
    rows: RowLabel
    run: str
    """Another one starts anew."""
    plays: bool = False
    """Whether it plays once by itself, from the first stop to the last, for whom moving pictures are welcome."""


def draw_snapshot_player(
    scrubbed: SnapshotSequence, *, key: str, on_stop: Callable[[int], None], on_pick: Callable[[int, int], None]
) -> None:
    """Draw the snapshots.

    `on_stop(number)` hears of a stop one has come to rest at, `on_pick(layer, head)` of a head that is opened.
    """
    state = lambda: component_value(key)  # noqa: E731  (what the browser sent, read when a callback runs)
    _mount_snapshots(
        key=key,
        data=encode_snapshot_player(scrubbed),
        on_stop_change=lambda: on_stop(int(state().stop)),
        on_pick_change=lambda: on_pick(int(state().pick["layer"]), int(state().pick["head"])),
    )


def encode_snapshot_player(scrubbed: SnapshotSequence) -> bytes:
    """What snapshots.js reads: words, sizes and colours, then (stops, L, H, Q, K) bytes."""
    maps, look, rows = scrubbed.maps, scrubbed.look, scrubbed.rows
    first = maps[0]
    if len({one.weights.shape for one in maps}) != 1 or len(maps) != len(scrubbed.shown):
        raise ValueError("Every stop needs one map, and all maps must be of one shape.")
    layers, heads, queries, keys = first.weights.shape
    header = {
        "id": scrubbed.run,
        "kind": say(KIND_NAMES[first.kind]),
        "moments": [asdict(one) for one in scrubbed.shown],
        "start": scrubbed.start,
        "plays": scrubbed.plays,
        "layers": layers,
        "heads": heads,
        "queries": queries,
        "keys": keys,
        "layer": scrubbed.place[0],
        "head": scrubbed.place[1],
        "rows": [shorten_token(token) for token in first.rows(rows)],
        "columns": [shorten_token(token) for token in first.key_tokens],
        "stops": look.stops,
        "scale": look.scale,
        "masked": look.palette.masked,
        "background": look.palette.background,
    }
    return pack_arrays(header, np.stack([quantise_weights(one.weights, one.masks) for one in maps]).tobytes())
