"""Masks from a configuration: what is shown of each kind of layer, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attenscope.runnable_model import LocalError
from attenscope.viz.masks import masks_from_config
from attenscope.viz.masks.masks_from_config import (
    EXAMPLE_CONFIGURATION,
    MAX_CONFIGURATION_CHARACTERS,
    ShownMask,
    ShownMasks,
    build_masks_from_config,
    render_masks,
    tabulate_masks,
)

TEXT = "one two three four five six seven"


def test_the_example_shows_two_kinds_of_layers() -> None:
    found = build_masks_from_config(EXAMPLE_CONFIGURATION, TEXT)
    assert found.title == "Gemma3TextModel, 7 tokens, random weights"
    assert [one.place for one in found.masks] == ["sliding_attention, layers 1-5", "full_attention, layer 6"]
    offset = np.subtract.outer(np.arange(7), np.arange(7))
    np.testing.assert_array_equal(found.masks[0].allowed, (offset >= 0) & (offset < 4))
    np.testing.assert_array_equal(found.masks[1].allowed, offset >= 0)
    for one, meant in zip(found.masks, ("a causal window of 4", "causal"), strict=True):
        assert one.words[0] == f"in force: {meant}"
        assert one.words[3] == "✓ as the configuration says"


@pytest.mark.parametrize(
    ("configuration", "said"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("{}", "names no model_type"),
        ('{"model_type": "none"}', "no model of the type none"),
        ('{"model_type": "llama", "auto_map": {"AutoModel": "evil.Model"}, "vocab_size": "x"}', "configuration"),
        (" " * (MAX_CONFIGURATION_CHARACTERS + 1), "more than 200,000 characters"),
    ],
)
def test_what_is_no_configuration_gets_a_sentence(configuration: str, said: str) -> None:
    with pytest.raises(LocalError, match=said):
        build_masks_from_config(configuration, TEXT)


def test_no_code_of_a_configuration_runs() -> None:
    hostile = json.loads(EXAMPLE_CONFIGURATION) | {"auto_map": {"AutoModel": "evil.Model", "AutoConfig": "evil.Config"}}
    assert len(build_masks_from_config(json.dumps(hostile), TEXT).masks) == 2


def test_words_are_never_html(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = ShownMask("<b>", np.tri(3, dtype=bool), ("<script>",))
    shown = render_masks(ShownMasks("t", (mask,), ()))
    assert "&lt;script&gt;" in shown
    assert "<script>" not in shown
    assert tabulate_masks(ShownMasks("t", (mask,), ())).to_numpy().tolist() == np.tri(3).tolist()


def test_the_server_imports_no_transformers_for_it() -> None:
    assert "transformers" not in vars(masks_from_config)
