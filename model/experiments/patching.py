"""Activation patching: put activations of one sentence's run into the run of another, one place at a time.

Meng et al. (2022), "Locating and Editing Factual Associations in GPT"; Vig et al. (2020), "Causal Mediation Analysis".
The first sentence is translated with X where the second has Y, after the same prefix. Its residual stream, or the
output of one head, is put into the run of the second, and what comes back of logit X - logit Y is measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ..attribution.target import AttributionError, Target, make_piece_target
from ..capture.attention import find_attention_sites
from ..language import say
from ..network.abstract_model import AutoregressiveModel
from ..network.hooks import OutputHook, Stream, hook_streams, record_streams
from ..runnable_model import RunnableModel, Translation
from ..trace import Kind

ROWS_A_PASS = 128  # of one forward pass at most
MINIMAL_PAIRS_FILE = Path(__file__).with_name("minimal_pairs.json")
LEAST_DIFFERENCE = 1e-3  # a difference of values, in logits, below which nothing can come back
Stack = Literal["encoder", "decoder"]


@dataclass(frozen=True, eq=False)
class Contrast:
    """Two sentences with as many pieces, and the word at which their translations part."""

    target: Target
    """Of the first sentence: X, against Y of the second, after the prefix that both share."""
    second_ids: tuple[int, ...]
    """(S,)"""
    second_tokens: tuple[str, ...]
    first_value: float
    """logit X - logit Y with the first sentence."""
    second_value: float
    """The same with the second."""

    @property
    def difference(self) -> float:
        """What a patch can bring back at most."""
        return self.first_value - self.second_value


@dataclass(frozen=True, eq=False)
class PatchMap:
    """What comes back of logit X - logit Y for a patch at each place."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    change: np.ndarray
    """(rows, columns) float64, how far the patch moves logit X - logit Y of the second sentence."""
    whole: np.ndarray
    """(rows,) the same with all columns of a row patched at once."""
    difference: float
    """The difference that `fraction` is of."""

    @property
    def fraction(self) -> np.ndarray:
        """(rows, columns) 0 where a patch brings nothing back, 1 where it brings all."""
        return self.change / self.difference

    @property
    def whole_row_recovered_fraction(self) -> np.ndarray:
        """(rows,)"""
        return self.whole / self.difference


@dataclass(frozen=True)
class MinimalPair:
    """Two English sentences that differ in one phenomenon and whose translations part at one word."""

    phenomenon: str
    first: str
    second: str
    control: str
    """A sentence with the same answer as the first."""


def read_minimal_pairs() -> tuple[MinimalPair, ...]:
    """Return the pairs that come with the project, of number, tense, negation, pronoun, word sense and word order."""
    return tuple(MinimalPair(**one) for one in json.loads(MINIMAL_PAIRS_FILE.read_text(encoding="utf-8")))


@dataclass(frozen=True, eq=False)
class _PatchPlaces:
    """What is patched: rows of a map, each a stream, and the cells of each that make its columns."""

    rows: Mapping[str, Stream]
    columns: tuple[str, ...]
    cells: Tensor
    """(columns + 1, ...) bool, broadcastable to a stream without its batch axis, True = patched; all of them last."""
    in_encoder: bool


@torch.no_grad()
def compare_at_first_difference(translator: RunnableModel, first: Translation, second: Translation) -> Contrast:
    """Compare two translations at the first piece in which they differ.

    Raises AttributionError for translations that are equal, and for sources with different numbers of pieces.
    """
    pairs = zip(first.target_ids, second.target_ids, strict=False)
    place = next((at for at, (x, y) in enumerate(pairs) if x != y), None)
    if place is None:
        raise AttributionError(say("Both sentences have the same translation: there is no word at which they differ."))
    _check_equal_token_counts(first.source_tokens, second.source_tokens)
    target = make_piece_target(translator, first, place, against=second.target_ids[place])
    values = [_compute_target_value(translator.model, target, ids) for ids in (first.source_ids, second.source_ids)]
    return Contrast(target, second.source_ids, second.source_tokens, *(float(one) for one in values))


@torch.no_grad()
def make_same_answer_control(translator: RunnableModel, pair: Contrast, same: Translation) -> Contrast:
    """Return the contrast of the first sentence with a third that has the same answer as the first.

    A patch between these two should bring nothing; what it does bring has nothing to do with X and Y. Give its map
    the difference of `pair`. Raises AttributionError for a sentence with another number of pieces, and for one that
    has another answer.
    """
    _check_equal_token_counts(pair.target.source_tokens, same.source_tokens)
    end = pair.target.position + 1
    if same.target_ids[:end] != (*pair.target.input_ids[1:], pair.target.token_ids[0]):
        raise AttributionError(
            say(
                "{source} has another answer: {answer}. A control needs the same word X.",
                source=repr(same.source),
                answer=repr(same.text),
            )
        )
    value = float(_compute_target_value(translator.model, pair.target, same.source_ids))
    return Contrast(pair.target, same.source_ids, same.source_tokens, pair.first_value, value)


@torch.no_grad()
def patch_stream(translator: RunnableModel, pair: Contrast, stack: Stack, difference: float | None = None) -> PatchMap:
    """Patch the residual stream after the embedding and after each layer, at each position of one stack.

    Rows are layers, columns positions. `difference` takes the place of the pair's own, for a control.
    """
    streams = translator.model.streams("source" if stack == "encoder" else "target")
    columns = pair.second_tokens if stack == "encoder" else pair.target.prefix_tokens
    if pair.target.continues:  # whose decoder reads the prompt as well
        columns = (*pair.second_tokens, *pair.target.prefix_tokens)
    cells = _make_each_and_all_masks(len(columns))[:, :, None]
    places = _PatchPlaces(streams, tuple(columns), cells, in_encoder=stack == "encoder")
    return _patch_places(translator.model, pair, places, difference)


@torch.no_grad()
def patch_heads(translator: RunnableModel, pair: Contrast, kind: Kind, difference: float | None = None) -> PatchMap:
    """Patch the output of each head, at all positions at once. Rows are layers, columns heads."""
    sites = [one for one in find_attention_sites(translator.model) if one.kind == kind]
    contexts = {f"layer {one.layer + 1}": Stream(one.module.get_submodule("context")) for one in sites}
    heads = sites[0].module.heads
    assert isinstance(heads, int)
    cells = _make_each_and_all_masks(heads)[:, :, None, None]
    columns = tuple(f"head {head + 1}" for head in range(heads))
    return _patch_places(
        translator.model, pair, _PatchPlaces(contexts, columns, cells, in_encoder=kind == "encoder"), difference
    )


def _make_each_and_all_masks(count: int) -> Tensor:
    """Return (count + 1, count) bool: row i selects the i-th alone, the last row all."""
    each = torch.eye(count, dtype=torch.bool, device="cpu")
    return torch.cat([each, torch.ones_like(each[:1])])


def _patch_places(
    model: AutoregressiveModel, pair: Contrast, places: _PatchPlaces, difference: float | None
) -> PatchMap:
    difference = pair.difference if difference is None else difference
    if abs(difference) < LEAST_DIFFERENCE:
        raise AttributionError(
            say("Both sentences give the same logit X - logit Y: there is no difference to bring back.")
        )
    with record_streams(places.rows) as found:
        _compute_target_value(model, pair.target, pair.target.source_ids)
    jobs = [(name, cell) for name in places.rows for cell in places.cells]
    values = []
    rows = model.rows_at_once(ROWS_A_PASS, len(pair.target.input_ids))
    for start in range(0, len(jobs), rows):
        part = jobs[start : start + rows]
        patches = {
            stream: _make_patch_hook(found[name], [cell if at == name else None for at, cell in part])
            for name, stream in places.rows.items()
        }
        with hook_streams(patches):
            values.append(_compute_target_value(model, pair.target, pair.second_ids, len(part), places.in_encoder))
    change = (torch.cat(values) - pair.second_value).reshape(len(places.rows), -1).cpu().numpy()
    return PatchMap(tuple(places.rows), places.columns, change[:, :-1], change[:, -1], difference)


def _make_patch_hook(stream: Tensor, cells: list[Tensor | None]) -> OutputHook:
    """Put the stream (1, ...) into each row of an output (B, ...) where its cells are True."""
    rows = [row for row, cell in enumerate(cells) if cell is not None]
    if not rows:
        return lambda output: None
    where = torch.stack([cell for cell in cells if cell is not None]).to(stream.device)

    def put(output: Tensor) -> Tensor:
        patched = output.clone()
        patched[rows] = torch.where(where, stream, output[rows])
        return patched

    return put


def _compute_target_value(
    model: AutoregressiveModel, target: Target, source_ids: Sequence[int], rows: int = 1, in_encoder: bool = False
) -> Tensor:
    """The target's value after its prefix with another source, (B,); the encoder runs once unless its rows differ."""
    device = next(model.parameters()).device
    source, inputs = (torch.tensor([list(ids)], device=device) for ids in (source_ids, target.input_ids))
    memory = model.encode(source.expand(rows if in_encoder else 1, -1))
    memory = memory.expand(rows, *memory.shape[1:])
    states = model.decode(inputs.expand(rows, -1), memory, model.source_mask(source))
    return target.value(model.generator(states[:, target.position :]))


def _check_equal_token_counts(first: Sequence[str], second: Sequence[str]) -> None:
    if len(first) == len(second):
        return
    pieces = (" | ".join(piece.strip() for piece in one) for one in (first, second))
    raise AttributionError(
        say(
            "The two sentences have {count} ({pieces}) and {other_count} ({other_pieces}) pieces; a patch puts each "
            "position into the same position of the other, so both need as many.",
            count=len(first),
            other_count=len(second),
            **dict(zip(("pieces", "other_pieces"), pieces, strict=True)),
        )
    )
