"""Hand-worked maps, small enough to check by eye, and what a diagnosis says about them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from attenscope.masks.arrays import DiagnosisError
from attenscope.masks.diagnose import diagnose
from attenscope.masks.findings import Diagnosis

NAN = np.nan
CAUSAL = np.array([[1, 0, 0], [0.4, 0.6, 0], [0.2, 0.3, 0.5]])
FULL = np.array([[0.5, 0.2, 0.3], [0.1, 0.8, 0.1], [0.25, 0.35, 0.4]])


def named(found: Diagnosis) -> list[str]:
    return [one.code for one in found.findings if one.severity != "info"]


def test_causal_attention_is_sound_with_nothing_said() -> None:
    found = diagnose(CAUSAL)
    assert found.sound
    assert found.meaning == "causal"
    assert 0 < found.sure < 1


def test_what_was_meant_decides() -> None:
    assert diagnose(FULL, meant="padding").sound
    assert named(diagnose(FULL, meant="causal")) == ["future-visible"]
    assert named(diagnose(CAUSAL, meant="causal")) == []
    assert "over-blocked" in named(diagnose(CAUSAL, meant="full"))


def test_the_place_is_told_from_zero_and_the_sentence_from_one() -> None:
    heads = np.stack([np.stack([CAUSAL, CAUSAL]), np.stack([CAUSAL, FULL])])[None]
    (one,) = diagnose(heads, meant="causal").findings
    assert (one.code, one.sample, one.layer, one.head) == ("future-visible", 0, 1, 1)
    assert (one.queries, one.keys) == ((0, 1), (1, 2))
    assert one.message.startswith("Layer 2, head 2: ")


def test_the_row_of_a_padding_query_may_be_zero_or_uniform_but_not_nan() -> None:
    keep = np.array([False, True, True])
    rest = [[0, 1, 0], [0, 0.3, 0.7]]
    zero = diagnose(np.array([[0, 0, 0], *rest]), meant="causal", key_keep=keep)
    assert zero.sound
    assert [(one.code, one.severity) for one in zero.findings if one.code == "empty-row"] == [("empty-row", "info")]
    nan = diagnose(np.array([[NAN] * 3, *rest]), meant="causal", key_keep=keep)
    assert named(nan) == ["empty-row"]
    uniform = diagnose(np.array([[1 / 3] * 3, *rest]), meant="causal", key_keep=keep)
    assert next((one.code, one.level) for one in uniform.findings) == ("empty-row", "information")


def test_a_padding_fill_then_an_additive_causal_mask() -> None:
    weights = np.array(
        [[0.25, 0, 0.25, 0.25, 0.25], [0.2] * 5, [0, 0, 1, 0, 0], [0, 0, 0.3, 0.7, 0], [0, 0, 0.1, 0.3, 0.6]]
    )
    keep = np.array([False, False, True, True, True])
    assert named(diagnose(weights, meant="causal", key_keep=keep)) == ["double-fill"]


def test_a_mask_alone_can_be_judged() -> None:
    assert diagnose(mask=np.tri(4, dtype=bool)).sound
    assert named(diagnose(mask=np.tri(4, k=-1, dtype=bool))) == ["diagonal-blocked"]
    assert named(diagnose(mask=~np.tri(4, dtype=bool), meant="causal")) == ["inverted"]


def test_what_cannot_be_told_is_said_and_not_guessed() -> None:
    found = diagnose(FULL)
    assert found.sound
    unknown = {one.code: one for one in found.unknown}
    assert {"future-visible", "soft-mask", "padding-visible", "document-leak"} <= set(unknown)
    assert unknown["soft-mask"].text == "soft-mask (without scores or masked_scores or mask)"


def test_a_causal_mask_on_an_encoder_is_over_blocked_and_on_a_decoder_right() -> None:
    assert named(diagnose(CAUSAL, map="encoder")) == ["over-blocked"]
    assert named(diagnose(CAUSAL, map="decoder")) == []
    assert named(diagnose(CAUSAL, map="cross")) == ["causal-on-cross"]
    assert named(diagnose(FULL, map="decoder")) == ["future-visible"]


def test_pad_queries_are_only_noted() -> None:
    keep = np.array([True, True, False])
    found = diagnose(np.array([[0.5, 0.5, 0], [0.1, 0.9, 0], [0.4, 0.6, 0]]), meant="padding", key_keep=keep)
    assert [(one.code, one.severity, one.queries) for one in found.findings] == [("pad-query", "info", (2,))]


def test_a_hole_in_the_padding_mask_itself() -> None:
    keep = np.array([True, False, True])
    weights = np.array([[0.5, 0, 0.5], [0.1, 0, 0.9], [0.4, 0, 0.6]])
    assert "hole-inside" in named(diagnose(weights, meant="padding", key_keep=keep))


def test_weights_the_wrong_way_round_are_seen_by_the_other_shapes() -> None:
    weights = np.array([[0.5, 0.2, 0.3], [0.5, 0.8, 0.7]])  # (K, Q): the columns sum to 1
    found = diagnose(weights, key_keep=np.array([True, True]), query_keep=np.array([True, True, True]))
    assert named(found) == ["transposed"]


@pytest.mark.parametrize(
    ("weights", "more", "sentence"),
    [
        (np.full((2, 2), -1.0), {}, "negative"),
        (np.full((2, 2), np.inf), {}, "infinite"),
        (np.ones((2, 2), bool), {}, "name it mask"),
        (np.ones((2, 0)), {}, "empty"),
        (np.ones(3), {}, "queries, keys"),
        (FULL, {"mask": np.ones((4, 4), bool)}, "does not fit"),
        (FULL, {"key_keep": np.ones(5, bool)}, "key_keep has the shape"),
        (FULL, {"meant": "sideways"}, "not a kind of mask"),
        (FULL, {"key_keep": np.array([0, 1, 7])}, "0 and 1"),
        (FULL, {"masks": np.ones(3)}, "Unknown arrays"),
        (None, {"scores": FULL}, "nothing to judge"),
    ],
)
def test_what_cannot_be_judged_gets_a_sentence(weights: np.ndarray, more: dict, sentence: str) -> None:
    with pytest.raises(DiagnosisError, match=sentence):
        diagnose(weights, **more)


def test_tensors_of_torch_are_taken_as_they_are() -> None:
    causal = torch.tensor(CAUSAL)
    assert diagnose(causal.requires_grad_(), meant="causal").sound
    assert diagnose(causal.bfloat16(), mask=torch.ones(3, 3).tril().bool(), meant="causal").sound
    leaky = torch.tensor(FULL).expand(2, 1, 3, 3)
    (one,) = diagnose([causal.expand(2, 1, 3, 3), leaky], meant="causal").findings
    assert one.layer == 1
    assert diagnose([causal, causal], meant="causal").sound
    with pytest.raises(DiagnosisError, match="dense tensor"):
        diagnose(causal.detach().to_sparse())


@pytest.mark.parametrize("name", ["Decoder", "foo"])
def test_a_map_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(DiagnosisError, match=f"no map '{name}'; the maps are encoder, decoder, cross"):
        diagnose(FULL, map=name)


def test_no_torch_is_loaded() -> None:
    code = "import sys, attenscope.masks.diagnose, attenscope.cli.diagnose; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
