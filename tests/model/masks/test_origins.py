"""Where in the code a captured fault sits: path, class, file and line, and the argument that carries it."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attenscope.capture.attention import capture_attention
from attenscope.cli.diagnose import diagnose_file, run_diagnose
from attenscope.masks.arrays import DiagnosisError
from attenscope.masks.attention_call_origin import AttentionCall
from attenscope.masks.diagnose import diagnose
from attenscope.masks.findings import Finding
from attenscope.masks.read_files import read_array_file
from attenscope.trace import AttentionMap, AttentionTrace, TraceError
from attenscope.viz.traces.verdict import diagnose_map


class Explicit(nn.Module):
    """One attention of two heads, by a softmax of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.width = 8

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        heads = x.unflatten(-1, (2, -1)).transpose(1, 2)
        scores = heads @ heads.mT
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return scores.softmax(-1) @ heads


class Fused(nn.Module):
    """The same by the fused kernel."""

    def forward(self, x: Tensor, **masks: Any) -> Tensor:
        heads = x.unflatten(-1, (2, -1)).transpose(1, 2)
        return F.scaled_dot_product_attention(heads, heads, heads, **masks)


class Model(nn.Module):
    def __init__(self, attention: type[nn.Module]) -> None:
        super().__init__()
        self.attention = nn.ModuleList([attention() for _ in range(3)])

    def forward(self, x: Tensor, *masks: dict[str, Any]) -> Tensor:
        for attention, given in zip(self.attention, masks, strict=True):
            x = x + attention(x, **given).transpose(1, 2).flatten(2)
        return x


def finding(model: nn.Module, *masks: dict[str, Any], meant: str = "causal") -> Finding:
    torch.manual_seed(0)
    with torch.no_grad(), capture_attention(model.eval(), modules={"attention.*": "decoder"}) as capture:
        model(torch.randn(2, 6, 8), *masks)
    arrays: dict[str, Any] = capture.arrays("decoder")
    (found,) = diagnose(**arrays, meant=meant).findings
    return found


def line_of(cls: type, text: str) -> int:
    lines, start = inspect.getsourcelines(cls)
    return start + next(number for number, line in enumerate(lines) if text in line)


CAUSAL = torch.ones(6, 6).tril().bool()


def test_no_mask_arrived_at_one_layer_of_a_fused_model() -> None:
    found = finding(Model(Fused), {"is_causal": True}, {}, {"attn_mask": CAUSAL})
    assert (found.code, found.layers) == ("future-visible", (1,))
    line = line_of(Fused, "scaled_dot_product_attention")
    assert found.origin == (
        f"attention.1 (Fused), {__file__}:{line}, calls F.scaled_dot_product_attention; "
        "none arrived: attn_mask=None, is_causal=False"
    )


def test_the_argument_that_arrived_carries_the_fault() -> None:
    given = {"attn_mask": CAUSAL}, {"attn_mask": torch.ones(6, 6).bool()}, {"attn_mask": torch.ones(6, 6).bool()}
    found = finding(Model(Fused), *given)
    assert found.layers == (1, 2)
    assert found.origin.endswith("carried by attn_mask=bool (6, 6); and 1 more layer")
    assert finding(Model(Fused), *[{"is_causal": True}] * 3, meant="causal+window:2").origin.endswith(
        "carried by is_causal=True; and 2 more layers"
    )


def test_a_softmax_names_the_mask_of_the_function_around_it() -> None:
    found = finding(Model(Explicit), {"mask": CAUSAL}, {"mask": None}, {"mask": CAUSAL})
    line = line_of(Explicit, "softmax(-1)")
    assert found.origin == f"attention.1 (Explicit), {__file__}:{line}, calls softmax; none arrived: mask=None"


def test_padding_and_future_have_arguments_of_their_own_in_torchs_attention() -> None:
    torch.manual_seed(0)
    model = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(2, 6, 8)
    with torch.no_grad(), capture_attention(model) as capture:
        model(x, x, x, attn_mask=~CAUSAL)
    keep = torch.arange(6) >= torch.tensor([[0], [2]])
    arrays: dict[str, Any] = capture.arrays(next(iter(capture.sample(0).maps)))
    origins = {one.code: one.origin for one in diagnose(**arrays, key_keep=keep, meant="causal").findings}
    assert origins["padding-visible"].endswith("calls nn.MultiheadAttention; none arrived: key_padding_mask=None")
    call = AttentionCall.from_json(arrays["captured_calls"][0])
    assert (call.path, call.file) == ("", __file__)
    assert call.words("leak").endswith("carried by attn_mask=float32 (6, 6)")
    assert call.words("dropout-on") == call.place


def test_calls_that_are_none_are_refused() -> None:
    call = AttentionCall("a", "B", "softmax", "c.py", 3, {"mask": "None"})
    assert AttentionCall.from_json(call.as_json()) == call
    with pytest.raises(DiagnosisError, match="captured_calls is not what"):
        diagnose(torch.eye(3), captured_calls=["nonsense"])


def test_a_saved_trace_keeps_where_each_layer_was_called(tmp_path: Path) -> None:
    model = Model(Fused).eval()
    torch.manual_seed(0)
    with torch.no_grad(), capture_attention(model, modules={"attention.*": "decoder"}) as capture:
        model(torch.randn(1, 6, 8), {"is_causal": True}, {}, {"attn_mask": CAUSAL})
    file = tmp_path / "trace.safetensors"
    capture.trace.save(file)
    kept, again = capture.trace.decoder, AttentionTrace.load(file).decoder
    assert kept is not None
    assert again is not None
    assert again.layer_calls == kept.layer_calls
    assert len(kept.layer_calls) == 3
    (found,) = diagnose_file(str(file), meant="causal").findings
    line = line_of(Fused, "scaled_dot_product_attention")
    assert found.origin.startswith(
        f"attention.1 (Fused), {__file__}:{line}, calls F.scaled_dot_product_attention; none"
    )
    out = io.StringIO()
    run_diagnose(argparse.Namespace(files=[str(file)], meant="causal", api=None, json=False), out)
    assert f"\n    where: {found.origin}\n    fix: " in out.getvalue()


BAD_LINE = AttentionCall("a", "B", "softmax", "c.py", "3", {}).as_json()  # type: ignore[arg-type]
BAD_ARGUMENTS = AttentionCall("a", "B", "softmax", "c.py", 3, "none").as_json()  # type: ignore[arg-type]


@pytest.mark.parametrize("call", ["nonsense", "[]", "[" * 9999, "3", '{"path": "a"}', BAD_LINE, BAD_ARGUMENTS])
def test_calls_of_a_file_that_are_none_are_left_out(call: str, tmp_path: Path) -> None:
    one = AttentionMap("decoder", np.full((1, 1, 2, 2), 0.5), ("a", "b"), ("a", "b"), np.ones((2, 2), bool))
    trace = AttentionTrace(decoder=dataclasses.replace(one, layer_calls=(call,)))
    trace.save(tmp_path / "t.safetensors")
    (contents,) = read_array_file(tmp_path / "t.safetensors")
    assert contents.calls == ()
    assert diagnose_map(trace, "decoder").diagnosis is not None


def test_calls_are_as_many_as_layers() -> None:
    with pytest.raises(TraceError, match="layer calls have the shape"):
        AttentionMap("decoder", np.full((2, 1, 1, 1), 1.0), ("a",), ("a",), np.ones((1, 1), bool), layer_calls=("x",))


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_fix_of_a_transformer_of_torch_is_an_argument_of_it(wrapped: bool) -> None:
    model = nn.Transformer(16, 4, 1, 2, 32, batch_first=True).eval()
    src, tgt = torch.randn(2, 5, 16), torch.randn(2, 4, 16)

    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.translate = model

        def forward(self, src: torch.Tensor, tgt: torch.Tensor, **masks: torch.Tensor) -> torch.Tensor:
            return self.translate(src, tgt, **masks)

    whole = Whole() if wrapped else model
    with capture_attention(whole) as broken:
        whole(src, tgt)
    (found,) = diagnose(**broken.arrays("decoder"), meant="causal", map="decoder").findings
    assert (found.code, "tgt_mask=" in found.fix) == ("future-visible", True)
    with capture_attention(whole) as mended:
        exec(found.fix, {"torch": torch, "model": whole, "src": src, "tgt": tgt, "Q": 4, "K": 4})
    assert diagnose(**mended.arrays("decoder"), meant="causal", map="decoder").verdict == "sound"
    (of_cross,) = diagnose(**broken.arrays("cross"), meant="window:2", map="cross").findings
    assert "tgt_mask" not in of_cross.fix
