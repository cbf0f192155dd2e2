"""Greedy decoding against Hugging Face's Marian: same sizes, random weights, key/value cache, same number of steps."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from model.decoding.steps import greedy_batch
from model.network.config import EOS_ID, SPECIAL_PIECES, TransformerConfig
from model.network.inference.linear import lay_out
from model.network.transformer import Transformer

from .peers import marian
from .timing import Row, side_by_side

SOURCE_TOKENS, STEPS = 30, 30
REPETITIONS = {1: 40, 32: 20}  # by batch size
GOAL = 2.0
CONFIG = TransformerConfig(generator_bias=True)


def measure() -> list[Row]:
    torch.manual_seed(0)
    ours, theirs = our_model(), endless_marian()
    return [_row(ours, theirs, batch) for batch in REPETITIONS]


def our_model() -> Transformer:
    """A bias forbids </s>, so that every translation takes all the steps."""
    model = Transformer(CONFIG).eval()
    torch.nn.init.zeros_(model.generator.bias)
    with torch.no_grad():
        model.generator.bias[EOS_ID] = -torch.inf
    lay_out(model)  # as every checkpoint is when it is loaded
    return model


def endless_marian() -> Any:
    """Return Marian of the same sizes, with the same forbidden </s>."""
    model = marian(CONFIG)
    model.final_logits_bias[0, EOS_ID] = -torch.inf
    return model


def _row(ours: Transformer, theirs: Any, batch: int) -> Row:
    source = torch.randint(len(SPECIAL_PIECES), CONFIG.vocab_size, (batch, SOURCE_TOKENS))
    mask = torch.ones_like(source)

    def our_tokens() -> list[list[int]]:
        return greedy_batch(ours, source, STEPS)

    def their_tokens() -> Tensor:
        with torch.inference_mode():
            return theirs.generate(
                input_ids=source, attention_mask=mask, max_new_tokens=STEPS, num_beams=1, do_sample=False
            )

    lengths = {len(row) for row in our_tokens()} | {their_tokens().shape[1] - 1}  # theirs begin with the start token
    if lengths != {STEPS}:
        raise RuntimeError(f"Both must decode {STEPS} tokens a sentence, but the lengths are {sorted(lengths)}.")
    our_rate, their_rate = (
        batch * STEPS / one for one in side_by_side(our_tokens, their_tokens, REPETITIONS[batch], warm_up=2)
    )
    ratio = our_rate / their_rate
    return Row(
        f"greedy: tokens/s, batch of {batch}, ours / Marian",
        f"{our_rate:,.0f}",
        f"{their_rate:,.0f}",
        ratio,
        f"at least {GOAL:g}",
        ratio >= GOAL,
    )
