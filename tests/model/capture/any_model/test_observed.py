"""What a trace keeps of its making: said to whoever reads it in their language, whatever a stranger has put there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from attenscope.capture.any_model.module_kinds import REMARK_MESSAGES, REMARKS_SETTING, read_saved_remarks, remarks_text
from attenscope.capture.attention import capture_attention
from attenscope.language import PSEUDO_LANGUAGE, load_catalogue, use_language
from attenscope.masks.attention_call_origin import AttentionCall
from attenscope.trace import AttentionTrace


def test_a_trace_is_read_in_another_language_than_it_was_written_in(tmp_path: Path) -> None:
    model = nn.MultiheadAttention(16, 4, batch_first=True).eval()
    x, mask = torch.randn(1, 5, 16), torch.ones(5, 5, dtype=torch.bool).triu(1)
    with use_language(PSEUDO_LANGUAGE), capture_attention(model) as capture:
        model(x, x, x, attn_mask=mask)
        capture.sample(0).save(tmp_path / "t.safetensors")
    trace = AttentionTrace.load(tmp_path / "t.safetensors")
    assert trace.settings["observer_effect"] == read_saved_remarks(trace.settings)
    (one,) = trace.maps.values()
    call = AttentionCall.from_json(one.layer_calls[0])
    assert call.passed == call.passed_masks_description == "attn_mask, added to the scores"
    accents = load_catalogue(PSEUDO_LANGUAGE).gettext
    with use_language(PSEUDO_LANGUAGE):
        assert read_saved_remarks(trace.settings) == accents(REMARK_MESSAGES["unchanged"])
        assert call.passed_masks_description == accents("{name}, added to the scores").format(name="attn_mask")


@pytest.mark.parametrize(
    "remarks",
    [
        [["fused", {"difference": "much"}]],
        [["no code", {}]],
        [["not-laid-out", {"modules": [["path", "axis"]]}]],
        [["not-laid-out", {"modules": 3}]],
        [["unchanged", None]],
        [[]],
        {"fused": 1},
        "fused",
        7,
    ],
)
def test_remarks_of_a_strangers_file_do_no_harm(remarks: Any) -> None:
    assert read_saved_remarks({REMARKS_SETTING: remarks, "observer_effect": "As it was."}) == "As it was."
    call = AttentionCall("a", "B", "softmax", "c", 1, {}, passed="mask", readings=remarks)
    assert call.passed_masks_description == "mask"


def test_modules_that_were_left_out_stand_with_their_reasons() -> None:
    modules = [["a.b", "axis", {"axis": -1, "shape": "(2, 3)"}], ["", "no-product", {}]]
    assert remarks_text([("not-laid-out", {"modules": modules})]).endswith(
        "softmax of a.b (axis -1 of (2, 3)), the model itself (of one projection alone, as in linear attention: "
        "no product of queries and keys)."
    )
