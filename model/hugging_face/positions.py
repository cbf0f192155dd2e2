"""Which table of positions a folder's model adds to its token embeddings: seen while it runs, not read off names."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..network.abstract_model import Side
from ..network.hooks import replace_modules
from ..network.layers import AddedPositions, compute_sinusoidal_rows
from .networks import FolderNetwork

SINUSOID_BASE = 10_000.0
SUM_TOLERANCE = 1e-5
"""The largest difference between a sum that was seen and the one expected, in units of its own size."""
FORMULA_TOLERANCE = 1e-3
"""The largest difference of a table in float32 from the formula: angles of late positions are rounded."""

PositionRun = Callable[[], object]


@dataclass(frozen=True, eq=False)
class _SideRecording:
    """What passed through the modules of one side: outputs by module, and whatever any of them was given."""

    outputs: dict[nn.Module, Tensor] = field(default_factory=dict)
    inputs: list[tuple[nn.Module, Tensor]] = field(default_factory=list)


def find_added_positions(
    network: FolderNetwork, run: PositionRun, lengths: Mapping[Side, int]
) -> dict[Side, AddedPositions]:
    """Return what each side adds, of those that have `lengths` tokens in `run`; no side where nothing was seen added.

    A table counts if a module gives consecutive rows of it, and the sum of these and the token embeddings, or of these
    and the embeddings times sqrt(D), is what another module is given.
    """
    found = {side: _find_side_positions(network, side, run, length) for side, length in lengths.items()}
    return {side: one for side, one in found.items() if one is not None}


def _find_side_positions(network: FolderNetwork, side: Side, run: PositionRun, length: int) -> AddedPositions | None:
    embedding = network.token_embedding(side)
    with torch.inference_mode(), _record_per_token_tensors(network.part(side), length) as seen:
        run()
    embedded = seen.outputs.get(embedding)
    if embedded is None:
        return None
    for module, output in seen.outputs.items():
        place = None if module is embedding else _find_table_name_and_first_row(module, output)
        total = None if place is None else _find_embedding_scale_and_reader(seen.inputs, embedded, output)
        if place is not None and total is not None:
            return _make_added_positions(network, embedding, module, place, *total)
    return None


@contextmanager
def _record_per_token_tensors(part: nn.Module, length: int) -> Iterator[_SideRecording]:
    """Keep what has a row for each of so many tokens."""
    seen = _SideRecording()

    def fits(one: Any) -> bool:
        return isinstance(one, Tensor) and one.is_floating_point() and one.dim() >= 2 and one.shape[-2] == length

    def note_input(module: nn.Module, arguments: Any, named: Any) -> None:
        seen.inputs.extend((module, one) for one in (*arguments, *named.values()) if fits(one))

    def note_output(module: nn.Module, arguments: Any, output: Any) -> None:
        if fits(output):
            seen.outputs[module] = output

    with ExitStack() as stack:
        for module in part.modules():
            stack.callback(module.register_forward_pre_hook(note_input, with_kwargs=True).remove)
            stack.callback(module.register_forward_hook(note_output).remove)
        yield seen


def _find_table_name_and_first_row(module: nn.Module, output: Tensor) -> tuple[str, int] | None:
    """The name of the module's table, (rows, D), and the first of the consecutive rows of it that the output is."""
    rows = output.flatten(0, -3)[0] if output.dim() > 2 else output
    tensors = (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False))
    for name, table in tensors:
        if table.dim() != 2 or table.shape[1] != rows.shape[1]:
            continue
        for first in (table == rows[0]).all(-1).nonzero()[:, 0].tolist():
            if torch.equal(table[first : first + len(rows)], rows):
                return name, first
    return None


def _find_embedding_scale_and_reader(
    inputs: list[tuple[nn.Module, Tensor]], embedded: Tensor, added: Tensor
) -> tuple[float, nn.Module] | None:
    """What the embeddings were multiplied by and the first module that was given the sum; None where none was."""
    if added.shape[-1] != embedded.shape[-1]:  # a table that turns queries and keys, as RoFormer's
        return None
    for factor in (1.0, math.sqrt(embedded.shape[-1])):
        total = embedded * factor + added
        for module, given in inputs:
            if given.shape == total.shape and (given - total).abs().max() <= SUM_TOLERANCE * total.abs().max():
                return factor, module
    return None


def _make_added_positions(
    network: FolderNetwork,
    embedding: nn.Module,
    module: nn.Module,
    place: tuple[str, int],
    factor: float,
    reader: nn.Module,
) -> AddedPositions:
    name, first = place
    table: Tensor = getattr(module, name).detach()
    rows = table[first : first + network.positions].clone()
    own = copy.deepcopy(module)

    def replace_rows(other: Tensor) -> Any:
        copied = copy.deepcopy(own)
        getattr(copied, name).data[first : first + len(rows)] = other.to(table)
        return replace_modules({module: copied})

    scale = factor * float(getattr(embedding, "embed_scale", 1.0))
    return AddedPositions(
        module, rows, _find_position_formula(rows, first), replace_rows, factor, scale, "Norm" in type(reader).__name__
    )


def _find_position_formula(rows: Tensor, first: int) -> Callable[[Tensor], Tensor] | None:
    """The formula that a table (P, D) is made by, its positions counted from 0 or from its place in the table."""
    positions = torch.arange(len(rows), dtype=torch.float64, device=rows.device)
    for form in (_interleaved_sinusoids, _sines_before_cosines, _inclusive_sinusoids):
        for offset in (0, first):
            if (form(positions + offset, width=rows.shape[1]) - rows).abs().max() <= FORMULA_TOLERANCE:
                return partial(_apply_position_formula, form, offset, rows.shape[1])
    return None


def _apply_position_formula(form: Callable[..., Tensor], offset: int, width: int, positions: Tensor) -> Tensor:
    return form(positions + offset, width=width)


def _interleaved_sinusoids(positions: Tensor, width: int) -> Tensor:
    """Section 3.5: sine, cosine, sine, cosine."""
    return compute_sinusoidal_rows(positions, width, SINUSOID_BASE)


def _sines_before_cosines(positions: Tensor, width: int) -> Tensor:
    """The same with all sines before all cosines, as Marian stores it."""
    rows = _interleaved_sinusoids(positions, width)
    return torch.cat([rows[:, 0::2], rows[:, 1::2]], 1)


def _inclusive_sinusoids(positions: Tensor, width: int) -> Tensor:
    """Sines before cosines with exponents from 0 to 1, as in tensor2tensor and M2M100; an odd D ends in a zero."""
    pairs = width // 2
    exponent = torch.arange(pairs, dtype=torch.float64, device=positions.device) / max(pairs - 1, 1)
    angle = positions[:, None] / SINUSOID_BASE**exponent
    return torch.cat([angle.sin(), angle.cos(), angle.new_zeros(len(angle), width % 2)], 1)
