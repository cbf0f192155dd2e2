"""One family at work: built, made sharp, captured with padding at either side, and with a fault put into its masks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from attenscope.capture.attention import Capture, capture_attention
from attenscope.masks.diagnose import diagnose
from attenscope.masks.findings import Diagnosis
from attenscope.trace import Kind
from bench.families.models import Family, Kernel
from bench.families.planted import Plant, planted, plants

Side = Literal["left", "right"]
SIDES: tuple[Side, ...] = ("right", "left")
TOLD = ("told", "not told")
"""Whether a diagnosis is told what is meant."""
LENGTHS, WIDTH = (11, 8, 6), 11
"""Real tokens of each sample, and those of the batch."""
PEAKED, DOUBLINGS = 0.5, 24
"""The median of the largest weight of a row from which a model is sharp; how often its scores are doubled for that."""
_QUERIES_AND_KEYS = re.compile(
    r"(^|[._])(q|k|Wq|Wk|query|key|q_proj|k_proj|q_lin|k_lin|c_attn|qkv_proj|query_key_value|Wqkv|in_proj"
    r"|q_norm|k_norm|query_proj|key_proj|q_b_proj|kv_b_proj|q_layernorm|k_layernorm)\.weight$"
)


def keep_of(side: Side) -> Tensor:
    """Return (B, T) bool, True = a real token."""
    places, lengths = torch.arange(WIDTH), torch.tensor(LENGTHS)[:, None]
    return places < lengths if side == "right" else places >= WIDTH - lengths


def inputs_of(model: Any, side: Side) -> dict[str, Tensor]:
    """Return what a tokenizer would give, and a target for a model of two stacks."""
    keep = keep_of(side)
    ids = torch.randint(5, 50, keep.shape, generator=torch.Generator().manual_seed(1)) * keep
    given = {"input_ids": ids, "attention_mask": keep.long()}
    if getattr(model.config, "is_encoder_decoder", False):
        target = ids[:, 2:] if side == "right" else ids[:, :-2] * keep[:, :-2]
        given |= {"decoder_input_ids": target, "decoder_attention_mask": (target != 0).long()}
    return given


def built(family: Family, kernel: Kernel) -> Any:
    """Return the model of a family with random weights whose attention is sharp."""
    import transformers

    cls = getattr(transformers, family.name)
    torch.manual_seed(0)
    model = cls(cls.config_class(**family.configuration, attn_implementation=kernel)).eval()
    for _ in range(DOUBLINGS + 1):
        if _sharpness(captured(family, model, "right")) >= PEAKED:
            return model
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if _QUERIES_AND_KEYS.search(name):
                    parameter.mul_(2**0.5)
    raise RuntimeError(f"The weights of {family.name} do not get sharp.")


def _sharpness(capture: Capture) -> float:
    """The median of the largest weight of each row that has four keys or more, in the map that is least sharp."""
    medians = []
    for one in capture.sample(0).maps.values():
        rows = torch.from_numpy(one.weights)[torch.from_numpy(one.masks.copy()).expand(one.weights.shape).sum(-1) > 3]
        medians.append(float(rows.amax(-1).median()))
    return min(medians)


def tokens_of(given: dict[str, Tensor]) -> Any:
    """Return the names of the tokens of each sample, padding as ``<pad>``."""
    names = {
        name: _names(given[f"{prefix}input_ids"])
        for name, prefix in (("source", ""), ("target", "decoder_"))
        if f"{prefix}input_ids" in given
    }
    return names if len(names) > 1 else names["source"]


def _names(ids: Tensor) -> list[list[str]]:
    return [[f"t{one}" if one else "<pad>" for one in row] for row in ids.tolist()]


@torch.no_grad()
def captured(family: Family, model: Any, side: Side, kind: Kind | None = None, plant: Plant | None = None) -> Capture:
    """Return the capture of one run over a padded batch, with a fault in the attention of one kind if it is given."""
    given = inputs_of(model, side)
    fault: AbstractContextManager[None] = nullcontext()
    if kind is not None and plant is not None:
        paths = {kind: captured(family, model, side).sample(0).maps[kind].layer_paths}
        fault = planted(model, paths, kind, plant, lambda: model(**given))
    with fault, capture_attention(model, modules=family.modules, tokens=tokens_of(given)) as capture:
        model(**given)
    return capture


def diagnosed(family: Family, capture: Capture, kind: Kind, stated: bool = True) -> Diagnosis:
    """Return the diagnosis of one kind, told what is meant or left to guess."""
    return diagnose(**capture.arrays(kind), map=kind, meant=family.meant[kind] if stated else None)


@dataclass(frozen=True)
class Case:
    """One diagnosis of one family."""

    kernel: Kernel
    side: Side
    kind: Kind
    what: str
    """One of :data:`TOLD`, of a sound model, or the name of the fault that was planted."""
    right: bool
    found: tuple[str, ...]
    """The codes above information."""


def cases(family: Family) -> Iterator[Case]:
    """Yield the diagnoses of a family, sound and with every fault planted, by each kernel and padded at either side."""
    for kernel in family.kernels:
        model = built(family, kernel)
        for side in SIDES:
            sound = captured(family, model, side)
            for kind, meant in family.meant.items():
                for what in TOLD:
                    found = codes(diagnosed(family, sound, kind, what == TOLD[0]))
                    yield Case(kernel, side, kind, what, not found, found)
                if family.own_triangle and side == "right":
                    continue  # no real query sees padding that comes after it
                for plant in plants(meant, sound.sample(0).maps[kind].layers, family.own_triangle):
                    diagnosis = diagnosed(family, captured(family, model, side, kind, plant), kind)
                    yield Case(kernel, side, kind, plant.name, _is_named(diagnosis, plant), codes(diagnosis))


def codes(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return the codes above information."""
    return tuple(one.code for one in diagnosis.findings if one.severity != "info")


def _is_named(diagnosis: Diagnosis, plant: Plant) -> bool:
    """Whether the fault has its name, and its layer where it is in one."""
    found = [one for one in diagnosis.findings if one.code in plant.codes and one.severity != "info"]
    return bool(found) and (plant.layer is None or all(one.layers == (plant.layer,) for one in found))
