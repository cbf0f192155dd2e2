"""The architecture of a model beside the presets, on the page and in the documents."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from attenscope.checkpoint.load import find_checkpoint_folder, list_checkpoints, parse_config, read_checkpoint_config
from attenscope.network.config import FIELDS_FROM_SOURCE, PRESET_SOURCES, PRESETS, TransformerConfig, make_preset_config
from attenscope.viz.training.architecture_and_card_views import SIZE_FIELDS, describe_preset, format_config_value

PRESETS_PAGE = Path(__file__).resolve().parents[3] / "docs" / "presets.md"
FIELDS = [field.name for field in dataclasses.fields(TransformerConfig) if field.name != "preset"]


def test_the_documents_have_every_field_of_every_preset() -> None:
    """In italics what was chosen here."""
    rows = [["field", *(f"`{name}`" for name in PRESETS)], ["---"] * (1 + len(PRESETS))]
    for field in FIELDS:
        values = [
            (format_config_value(getattr(make_preset_config(name), field)), field in FIELDS_FROM_SOURCE[name])
            for name in PRESETS
        ]
        rows.append([f"`{field}`", *(value if fixed else f"*{value}*" for value, fixed in values)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    assert f"<!-- presets -->\n\n{table}\n\n<!-- end of presets -->" in PRESETS_PAGE.read_text(encoding="utf-8"), table


@pytest.mark.parametrize("name", [one for one in list_checkpoints() if one.startswith("preset-")])
def test_a_released_model_names_the_choices_that_its_preset_does_not_make(name: str) -> None:
    folder = find_checkpoint_folder(name)
    config = parse_config(folder, read_checkpoint_config(folder))
    own = make_preset_config(config.preset)
    differ = [field for field in FIELDS if field not in SIZE_FIELDS and getattr(config, field) != getattr(own, field)]
    but = f", but for {', '.join(differ)}" if differ else ""
    assert describe_preset(config).endswith(f"the preset {config.preset} ({PRESET_SOURCES[config.preset]}){but}.")
    assert differ == {"preset-shared_bpe": ["dropout_places"], "preset-torch_like": ["equal_layers"]}.get(name, [])


def test_what_was_built_from_no_preset_says_nothing() -> None:
    assert describe_preset(TransformerConfig()) == ""


def test_every_preset_has_a_released_checkpoint() -> None:
    assert set(PRESETS) <= {
        parse_config(find_checkpoint_folder(name), read_checkpoint_config(find_checkpoint_folder(name))).preset
        for name in list_checkpoints()
    }
