"""Fixes in the words of an interface, executed by that interface where it is installed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from attenscope.capture.attention import capture_attention
from attenscope.masks.arrays import DiagnosisError
from attenscope.masks.attention_call_origin import AttentionCall
from attenscope.masks.diagnose import diagnose
from attenscope.masks.fault_catalogue import FAULTS
from attenscope.masks.fixes import API_NAMES, APIS, CODES_FIXED_BY_CALL, write_fixes_for_api, write_mask_call
from attenscope.masks.structure import parse_structure
from attenscope.trace import Kind

B, H, D = 2, 2, 16
NAMES = (
    *("causal", "padding", "causal+window:3", "window:2", "prefix:2", "causal+packed:3,5", "packed:4,4"),
    *("causal+window:3+sinks:1", "causal+span:3-6", "causal+window:2+span:3-6", "causal+chunked:3"),
    *("ahead:2", "window:3+ahead:1", "blocks:3", "blocks:3+causal+window:4", "causal+window:2+keys:2-3"),
    *("causal+keys:1-2+packed:3,5", "keys:1-2+packed:3,5", "causal+chunked:3+keys:1-2", "tree:0,0,1,1"),
)
SIZES = (5, 8)
"""Queries and keys: as many steps of a cached decoder, the newest query at the newest key."""


def reference(name: str, queries: int, keys: int, key_keep: Tensor | None) -> Tensor:
    allowed = torch.from_numpy(parse_structure(name).build_mask(queries, keys)).expand(B, 1, -1, -1)
    return allowed if key_keep is None else allowed & key_keep[:, None, None, :]


def run(line: str, queries: int, keys: int, **names: Any) -> dict[str, Any]:
    known = {"torch": torch, "F": F, "Q": queries, "K": keys, "B": B, "H": H, **names}
    known |= {"create_block_mask": create_block_mask, "flex_attention": flex_attention}
    known |= {"document": torch.arange(8) >= (3 if "3,5" in names.get("name", "") else 4)}
    exec(line, known)
    return known


@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("api", ["sdpa", "flex_attention"])
def test_a_kernel_gets_the_mask_that_was_meant(api: Any, name: str, padded: bool) -> None:
    queries, keys = SIZES
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(B, H, size, D, generator=generator) for size in (queries, keys, keys))
    keep = torch.arange(keys) < torch.tensor([[keys], [keys - 2]])
    line = write_mask_call(api, parse_structure(name), padded)
    with torch.compiler.set_stance("force_eager"):  # Or flex_attention is traced anew for every mask.
        made = run(line, queries, keys, q=q, k=k, v=v, key_keep=keep, name=name)["out"]
    allowed = reference(name, queries, keys, keep if padded else None)
    scores = (q @ k.mT / D**0.5).masked_fill(~allowed, -torch.inf)
    rows = allowed.any(-1).expand(B, H, -1)
    torch.testing.assert_close(made[rows], (scores.softmax(-1).nan_to_num() @ v)[rows])


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_torchs_attention_gets_the_mask_that_was_meant(name: str, padded: bool) -> None:
    queries, keys = SIZES
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(D, H, batch_first=True).eval()
    q, k = torch.randn(B, queries, D), torch.randn(B, keys, D)
    keep = torch.arange(keys) < torch.tensor([[keys], [keys - 2]])
    line = write_mask_call("multihead_attention", parse_structure(name), padded)
    weights = run(line, queries, keys, q=q, k=k, v=k, key_keep=keep, attention=attention, name=name)["weights"]
    allowed = reference(name, queries, keys, keep if padded else None)[:, 0]
    live = allowed.any(-1)
    assert torch.equal((weights > 0)[live], allowed[live])


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", ["causal", "causal+window:3", "padding"])
def test_torchs_transformer_gets_the_mask_that_was_meant(name: str, padded: bool) -> None:
    torch.manual_seed(0)
    model = nn.Transformer(D, H, 1, 1, 32, batch_first=True).eval()
    src, tgt = torch.randn(B, 8, D), torch.randn(B, 8, D)
    keep = torch.arange(8) < torch.tensor([[8], [6]])
    future = torch.ones(8, 8).triu(1).bool()
    line = write_mask_call("transformer", parse_structure(name), padded)
    with torch.no_grad(), capture_attention(model) as capture:
        run(line, 8, 8, model=model, src=src, tgt=tgt, key_keep=keep, future=future)
    kinds: tuple[Kind, ...] = ("encoder", "cross") if name == "padding" else ("decoder",)
    for kind in kinds:
        allowed = reference(name, 8, 8, keep if padded else None)[:, 0]
        for sample in range(B):
            assert (capture.sample(sample).maps[kind].mask == allowed[sample].numpy()).all()


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", ["causal", "causal+window:3", "causal+packed:3,5"])
def test_a_model_of_hugging_face_gets_the_mask_that_was_meant(name: str, padded: bool) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_embd=D, n_layer=1, n_head=H, vocab_size=9, bos_token_id=0, eos_token_id=0)
    model = transformers.GPT2LMHeadModel(config).eval()
    keep = torch.arange(8) < torch.tensor([[8], [6]])
    line = write_mask_call("hugging_face", parse_structure(name), padded)
    with torch.no_grad(), capture_attention(model) as capture:
        run(line, 8, 8, model=model, input_ids=torch.ones(B, 8, dtype=torch.long), key_keep=keep, name=name)
    allowed = reference(name, 8, 8, keep if padded else None)[:, 0]
    for sample in range(B):
        assert (capture.sample(sample).maps["decoder"].mask == allowed[sample].numpy()).all()


@pytest.mark.parametrize("api", APIS)
def test_every_interface_has_a_line_for_every_mask(api: Any) -> None:
    assert api in API_NAMES
    for name in NAMES:
        for padded in (False, True):
            compile(write_mask_call(api, parse_structure(name), padded), "fix", "exec")


def test_who_says_the_interface_gets_its_line() -> None:
    weights = torch.randn(1, 2, 5, 5).softmax(-1)
    (plain,) = diagnose(weights, meant="causal").findings
    (flex,) = diagnose(weights, meant="causal", api="flex_attention").findings
    assert "tril" in plain.fix
    assert flex.fix == write_mask_call("flex_attention", parse_structure("causal"), False)
    meant = torch.ones(5, 5).tril().bool() & (torch.arange(5) < 4)
    padded = diagnose(weights, meant=meant, api="sdpa").findings
    assert {one.fix for one in padded if one.severity != "info"} == {
        write_mask_call("sdpa", parse_structure("causal"), True)
    }
    with pytest.raises(DiagnosisError, match="There is no interface 'mps'; there are sdpa"):
        diagnose(weights, meant="causal", api="mps")
    assert set(CODES_FIXED_BY_CALL) <= set(FAULTS)


def test_a_capture_knows_the_interface() -> None:
    torch.manual_seed(0)
    model = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(2, 6, 8)
    with torch.no_grad(), capture_attention(model) as capture:
        model(x, x, x)
    arrays: dict[str, Any] = capture.arrays(next(iter(capture.sample(0).maps)))
    (found,) = diagnose(**arrays, meant="causal").findings
    assert found.fix == write_mask_call("multihead_attention", parse_structure("causal"), False)


def test_layers_that_call_several_interfaces_get_the_fix_of_none() -> None:
    weights = torch.full((1, 2, 1, 6, 6), 1 / 6)
    sdpa, flex = (
        AttentionCall("a", "A", function, "a.py", 1, {}).as_json()
        for function in ("F.scaled_dot_product_attention", "flex_attention")
    )
    (plain,), (same,), (mixed,) = (
        diagnose(weights, meant="causal", captured_calls=calls).findings for calls in ([], [sdpa, sdpa], [sdpa, flex])
    )
    assert "F.scaled_dot_product_attention" in same.fix
    assert mixed.fix == plain.fix != same.fix


def test_what_is_no_fault_keeps_its_own_remedy() -> None:
    found = diagnose(torch.full((6, 6), 1 / 6), meant="causal")
    harmless = replace(found, findings=tuple(replace(one, severity="info") for one in found.findings))
    assert write_fixes_for_api(found, "sdpa").findings != found.findings
    assert write_fixes_for_api(harmless, "sdpa").findings == harmless.findings
