"""Models that are compiled: recorded as the Python they were compiled from, and compiled again afterwards."""

from __future__ import annotations

import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from attenscope import torch_internals
from attenscope.capture.attention import capture_attention
from attenscope.torch_internals import run_eagerly
from tests.model.capture.any_model.test_hugging_face import SOURCE, built

graphs: list[str] = []


def backend(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
    """A compiler that notes what it runs."""

    def run(*given: torch.Tensor) -> Any:
        graphs.append("run")
        return module.forward(*given)

    return run


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    torch._dynamo.reset()
    graphs.clear()
    yield
    torch._dynamo.reset()


@pytest.mark.sweep
@pytest.mark.parametrize("how", ["returned", "in place", "held"])
@torch.no_grad()
def test_a_compiled_llama(how: str) -> None:
    pytest.importorskip("transformers")
    model = built("LlamaForCausalLM", "sdpa")
    compiled: Any = model
    if how == "in place":
        model.compile(backend=backend)
    else:
        compiled = torch.compile(model, backend=backend)
    alone = compiled(SOURCE).logits
    ran = len(graphs)
    assert ran
    with capture_attention(model if how == "held" else compiled) as capture:
        watched = compiled(SOURCE).logits
    assert len(graphs) == ran
    torch.testing.assert_close(watched, alone)
    one = capture.sample(1).decoder
    assert one is not None
    weights = torch.stack(built("LlamaForCausalLM", "eager")(SOURCE, output_attentions=True).attentions)
    np.testing.assert_allclose(one.weights, weights[:, 1], atol=1e-6)
    torch.testing.assert_close(compiled(SOURCE).logits, alone)
    assert len(graphs) == 2 * ran


def test_blocks_of_several_threads_end_together() -> None:
    double = torch.compile(nn.Linear(2, 2), backend=backend)
    inside, leave = threading.Event(), threading.Event()

    def block() -> None:
        with run_eagerly():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=block)
    with run_eagerly():
        thread.start()
        inside.wait()
    double(torch.ones(1, 2))
    assert not graphs
    leave.set()
    thread.join()
    double(torch.ones(1, 2))
    assert graphs


FIRST_CAPTURE = """
import sys, torch, attenscope
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

class Attention(torch.nn.Module):
    def forward(self, x):
        q = x.unflatten(-1, (heads, -1)).transpose(1, 2)
        block = create_block_mask(lambda b, h, i, j: i >= j, None, None, x.shape[1], x.shape[1], device="cpu")
        return flex_attention(q, q, q, block_mask=block).transpose(1, 2).flatten(2)

assert "torch._dynamo" not in sys.modules
samples, heads, tokens = map(int, sys.argv[1:])
model = torch.nn.Sequential(Attention()).eval()
with torch.no_grad(), attenscope.capture_attention(model) as capture:
    model(torch.randn(samples, tokens, 16 * heads))
print(attenscope.diagnose(**capture.arrays("decoder"), meant="causal").verdict)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)  # a process of its own, which loads the compiler
@pytest.mark.parametrize("sizes", ["1 2 12", "3 4 7"])
def test_the_first_flex_attention_of_a_process_is_captured(sizes: str) -> None:
    """torch loads its compiler in this very call, which then would compile what watches it."""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIRST_CAPTURE, *sizes.split()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == "sound\n", found.stderr


def test_what_flex_attention_compiles_at_its_first_call_runs_eagerly(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = [name for name in sys.modules if name != torch_internals.COMPILER_MODULE]
    loaded.append("torch.nn.attention.flex_attention")
    monkeypatch.setattr(torch_internals, "sys", SimpleNamespace(modules=dict.fromkeys(loaded)))
    double = torch.compile(nn.Linear(2, 2), backend=backend)
    with run_eagerly():
        double(torch.ones(1, 2))
    assert not graphs
