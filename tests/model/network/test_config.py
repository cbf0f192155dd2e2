"""The configuration refuses what cannot be built, with a sentence, and survives a round trip through JSON."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from attenscope.network.config import DROPOUT_PLACES, PRESETS, SPECIAL_PIECES, TransformerConfig, make_preset_config


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"d_model": 100, "heads": 8}, r"d_model \(100\) must be divisible by heads \(8\)"),
        ({"heads": 0}, "heads is 0; it must be a whole number of at least 1"),
        ({"encoder_layers": 2.0}, "encoder_layers is 2.0; it must be a whole number"),
        ({"decoder_layers": True}, "decoder_layers is True; it must be a whole number"),
        ({"max_length": -1}, "max_length is -1"),
        ({"vocab_size": "8000", "target_vocab_size": "8000"}, "vocab_size is '8000'; it must be a whole number"),
        ({"dropout": 1.0}, "dropout is 1.0; it must be at least 0 and below 1"),
        ({"dropout": -0.1}, "dropout is -0.1"),
        ({"dropout": float("nan")}, "dropout is nan"),
        ({"norm_eps": 0.0}, "norm_eps is 0.0; it must be above 0"),
        ({"norm_eps": float("nan")}, "norm_eps is nan; it must be above 0 and finite"),
        ({"norm_eps": float("inf")}, "norm_eps is inf; it must be above 0 and finite"),
        ({"vocab_size": 5000}, "A shared embedding needs one joint vocabulary, but the source side has 5000"),
        ({"vocab_size": 4, "target_vocab_size": 4}, "more than its 4 special pieces"),
        ({"norm_order": "middle"}, "norm_order is 'middle'; it must be one of 'pre', 'post'"),
        ({"norm_form": "rms"}, "norm_form is 'rms'"),
        ({"positions": "rotary"}, "positions is 'rotary'"),
        ({"init": "zeros"}, "init is 'zeros'"),
        ({"dropout_places": ("embedding", "everywhere")}, "dropout_places is 'everywhere'"),
        ({"scale_scores": "yes"}, "scale_scores is 'yes'; it must be true or false"),
        ({"norm_form": "std_eps", "d_model": 1, "heads": 1}, "sample standard deviation .* at least 2"),
    ],
)
def test_wrong_combinations_are_refused_with_a_sentence(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        TransformerConfig(**fields)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize("name", [*PRESETS, "default"])
def test_json_round_trip(name: str) -> None:
    config = TransformerConfig() if name == "default" else make_preset_config(name)
    assert TransformerConfig.from_json(config.to_json()) == config


def test_a_list_of_dropout_places_is_as_good_as_a_tuple() -> None:
    places: Any = ["attention"]
    assert TransformerConfig(dropout_places=places) == TransformerConfig(dropout_places=("attention",))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not a JSON configuration"),
        ("[1, 2]", "a JSON object"),
        ('{"width": 3, "depth": 2}', "Unknown configuration fields: depth, width"),
        ('{"dropout": "much"}', "wrong type"),
        ('{"norm_eps": null}', "wrong type"),
        ('{"dropout_places": 3}', "dropout_places is 3; it must be a list of places"),
        ('{"dropout_places": "attention"}', "must be a list of places"),
    ],
)
def test_other_json_is_refused_with_a_sentence(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        TransformerConfig.from_json(text)


def test_an_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no preset 'tiny'; the presets are pad_row, torch_like, annotated"):
        make_preset_config("tiny")


def test_a_preset_keeps_its_numerics_under_overrides() -> None:
    small = make_preset_config("annotated", d_model=64, heads=4)
    assert small.preset == "annotated"
    assert small.differences(make_preset_config("annotated")) == {"d_model": (64, 512), "heads": (4, 8)}


def test_differences_name_field_mine_and_theirs() -> None:
    changed = dataclasses.replace(TransformerConfig(), norm_order="post", preset="mine")
    assert changed.differences(TransformerConfig()) == {"norm_order": ("post", "pre")}


def test_dropout_at_its_places_only() -> None:
    config = TransformerConfig(dropout=0.3, dropout_places=("attention", "sublayer"))
    found = {place: config.dropout_at(place) for place in DROPOUT_PLACES}
    assert found == {"embedding": 0.0, "attention": 0.3, "feed_forward": 0.0, "sublayer": 0.3}


def test_configuration_is_frozen_and_plain_json() -> None:
    config = TransformerConfig()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.heads = 4  # type: ignore[misc]
    assert json.loads(config.to_json())["d_model"] == 256
    assert SPECIAL_PIECES == ("<pad>", "<unk>", "<s>", "</s>")
