"""The architecture of a model beside the presets, on the page and in the README."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from model.checkpoint.files import available, config_of, folder_of, read_facts
from model.network.config import TransformerConfig
from model.network.presets import FROM_SOURCE, PRESETS, SOURCES, preset
from viz.training.architecture import SIZES, built_from, value_text

README = Path(__file__).resolve().parents[3] / "README.md"
FIELDS = [field.name for field in dataclasses.fields(TransformerConfig) if field.name != "preset"]


def test_the_readme_has_every_field_of_every_preset() -> None:
    """In italics what was chosen here."""
    rows = [["", *(f"`{name}`" for name in PRESETS)], ["---"] * (1 + len(PRESETS))]
    for field in FIELDS:
        values = [(value_text(getattr(preset(name), field)), field in FROM_SOURCE[name]) for name in PRESETS]
        rows.append([f"`{field}`", *(value if fixed else f"*{value}*" for value, fixed in values)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    assert f"<!-- presets -->\n\n{table}\n\n<!-- end of presets -->" in README.read_text(encoding="utf-8"), table


@pytest.mark.parametrize("name", [one for one in available() if one.startswith("preset-")])
def test_a_released_model_names_the_choices_that_its_preset_does_not_make(name: str) -> None:
    folder = folder_of(name)
    config = config_of(folder, read_facts(folder))
    own = preset(config.preset)
    differ = [field for field in FIELDS if field not in SIZES and getattr(config, field) != getattr(own, field)]
    but = f", but for {', '.join(differ)}" if differ else ""
    assert built_from(config).endswith(f"the preset {config.preset} ({SOURCES[config.preset]}){but}.")
    assert differ == {"preset-shared_bpe": ["dropout_places"], "preset-torch_like": ["equal_layers"]}.get(name, [])


def test_what_was_built_from_no_preset_says_nothing() -> None:
    assert built_from(TransformerConfig()) == ""


def test_every_preset_has_a_released_checkpoint() -> None:
    assert set(PRESETS) <= {config_of(folder_of(name), read_facts(folder_of(name))).preset for name in available()}
