"""Real families of transformers: nothing is wrong with a sound one, and a fault planted in any of them is named."""

from __future__ import annotations

import pytest

from bench.families.__main__ import TABLE, row
from bench.families.models import FAMILIES, Family
from bench.families.run import TOLD, cases

NAMED = 0.98
UNNAMED = {("Llama4ForCausalLM", "shifted"), ("DebertaModel", "inverted")}
"""Planted faults that are told by other names: a leak beside chunks, and what disentangled scores leave of a fill."""


def ids(family: Family) -> str:
    return f"{family.name}, {family.traits}"


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=ids)
def test_a_family(family: Family) -> None:
    pytest.importorskip("transformers")
    found = list(cases(family))
    assert [case for case in found if case.what in TOLD and not case.right] == []
    faults = [case for case in found if case.what not in TOLD]
    missed = [case for case in faults if not case.right and (family.name, case.what) not in UNNAMED]
    assert len(faults) >= 2
    assert len(missed) <= (1 - NAMED) * len(faults), missed
    assert row(family, found) in TABLE.read_text(encoding="utf-8"), "python -m bench.families renews the table"


def test_the_list_has_every_kind_of_attention() -> None:
    assert len({family.name for family in FAMILIES}) >= 30
    for kinds in ({"decoder"}, {"encoder"}, {"encoder", "decoder", "cross"}):
        assert sum(set(family.meant) == kinds for family in FAMILIES) >= 5
    traits = " ".join(family.traits for family in FAMILIES)
    for trait in ("window", "sinks", "softcapping", "ALiBi", "relative bias", "rotary", "one head of keys"):
        assert trait in traits
    assert sum(set(family.kernels) == {"eager", "sdpa"} for family in FAMILIES) >= 20
    table = TABLE.read_text(encoding="utf-8")
    assert all(f"`{family.name}` | {family.traits} |" in table for family in FAMILIES)
