"""What 8,192 tokens cost: pooled maps of 32 layers of 32 heads, and one row as it is."""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from attenscope.capture.pooled import PooledAttention, capture_pooled_attention
from attenscope.hugging_face.attention import install_and_verify_hook_points, register_attention
from attenscope.hugging_face.networks import DecoderNetwork
from attenscope.viz.explore.long_text_page import make_pooled_map
from attenscope.viz.figures.figure_style import LIGHT, Look
from attenscope.viz.web.maps import encode_heads_overview
from bench.foreign import read_resident_bytes
from bench.timing import Row, seconds

TOKENS, SIDE = 8192, 32
MEMORY_LIMIT, OVERVIEW_LIMIT = 2e9, 3.0


def measure() -> list[Row]:
    """Return the lines, measured in a process of its own, so that its peak is that of this work."""
    command = [sys.executable, "-c", "from bench.long_text import print_figures; print_figures()"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    pooled, row, plain, grown, overview = map(float, said.split()[-5:])
    what = f"long_text: {SIDE} x {SIDE} heads over {TOKENS:,} tokens"
    return [
        Row(f"{what}, pooled maps / nothing kept", f"{pooled:.0f} s", f"{plain:.0f} s", pooled / plain, "none", True),
        Row(f"{what}, one row / nothing kept", f"{row:.0f} s", f"{plain:.0f} s", row / plain, "none", True),
        _limited(f"{what}, GB above the model / the limit", grown / 1e9, MEMORY_LIMIT / 1e9),
        _limited(f"{what}, s to build the overview / the limit", overview, OVERVIEW_LIMIT),
    ]


def _limited(what: str, ours: float, limit: float) -> Row:
    return Row(what, f"{ours:.2f}", f"{limit:g}", ours / limit, "at most 1", ours <= limit)


def print_figures() -> None:
    """Print the seconds of pooled maps, of a row and of neither, the bytes taken, and the seconds of the overview."""
    register_attention()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=100,
        hidden_size=512,
        intermediate_size=1024,
        num_hidden_layers=SIDE,
        num_attention_heads=SIDE,
        num_key_value_heads=SIDE // 4,
        max_position_embeddings=TOKENS,
        attn_implementation="eager",
    )
    model = LlamaForCausalLM(config).eval().requires_grad_(False)
    network = DecoderNetwork(model, 0, (0,), TOKENS)
    ids = torch.randint(1, 100, (1, TOKENS))
    with torch.inference_mode():
        install_and_verify_hook_points(model, lambda: network(ids[:, :6], ids[:, :8]), 6)
        before, started = read_resident_bytes("VmRSS"), perf_counter()
        found = _read(network, ids, pooled=True)
        pooled = perf_counter() - started
        row = seconds(lambda: _read(network, ids, pooled=False))
        grown = read_resident_bytes("VmHWM") - before
        model.set_attn_implementation("sdpa")
        plain = seconds(lambda: network.read(ids))
    overview = seconds(lambda: encode_heads_overview(make_pooled_map(found), 0, 0, Look(LIGHT)))
    print(pooled, row, plain, grown, overview)


def _read(network: DecoderNetwork, ids: torch.Tensor, *, pooled: bool) -> PooledAttention:
    with capture_pooled_attention(network.sites(), TOKENS, (TOKENS // 2,), pooled=pooled) as capture:
        network.read(ids)
    return capture.attention
