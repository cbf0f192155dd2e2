"""Greedy decoding against Hugging Face's Marian and CTranslate2: same sizes, random weights, as many steps."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attenscope.decoding.greedy_and_sampling import decode_batch_greedily
from attenscope.fast_linear import reorder_linear_weights
from attenscope.network.config import EOS_ID, SPECIAL_PIECES, TransformerConfig
from attenscope.network.transformer import Transformer
from bench.peers import in_ctranslate2, marian, names
from bench.timing import Row, one_thread, side_by_side

SOURCE_TOKENS, STEPS = 30, 30
REPETITIONS = {1: 40, 32: 20}  # by batch size
GOALS = {1: 1.8, 32: 1.4}
CONFIG = TransformerConfig(generator_bias=True)


def measure() -> list[Row]:
    torch.manual_seed(0)
    ours, theirs = our_model(), endless_marian()
    fast = in_ctranslate2(theirs, CONFIG)
    with one_thread():
        return [row for batch in REPETITIONS for row in _rows(ours, theirs, fast, batch)]


def our_model() -> Transformer:
    """A bias forbids </s>, so that every translation takes all the steps."""
    model = Transformer(CONFIG).eval()
    torch.nn.init.zeros_(model.generator.bias)
    with torch.no_grad():
        model.generator.bias[EOS_ID] = -torch.inf
    reorder_linear_weights(model)  # as every checkpoint is when it is loaded
    return model


def endless_marian() -> Any:
    """Return Marian of the same sizes, with the same forbidden </s>."""
    model = marian(CONFIG)
    model.final_logits_bias[0, EOS_ID] = -torch.inf
    return model


def _rows(ours: Transformer, theirs: Any, fast: Any, batch: int) -> list[Row]:
    source = torch.randint(len(SPECIAL_PIECES), CONFIG.vocab_size, (batch, SOURCE_TOKENS))
    mask, pieces = torch.ones_like(source), names(CONFIG)
    tokens = [[pieces[token] for token in row] for row in source.tolist()]

    def our_tokens() -> list[list[int]]:
        return decode_batch_greedily(ours, source, STEPS)

    def their_tokens() -> Tensor:
        with torch.inference_mode():
            return theirs.generate(
                input_ids=source, attention_mask=mask, max_new_tokens=STEPS, num_beams=1, do_sample=False
            )

    def fast_tokens() -> Any:
        return fast.translate_batch(tokens, beam_size=1, max_decoding_length=STEPS, max_batch_size=0)

    written = [[pieces.index(token) for token in one.hypotheses[0]] for one in fast_tokens()]
    if written != their_tokens()[:, 1:].tolist():  # theirs begin with the start token
        raise RuntimeError("CTranslate2 must write what Marian writes, whose weights it has.")
    lengths = {len(row) for row in [*our_tokens(), *written]}
    if lengths != {STEPS}:
        raise RuntimeError(f"All must decode {STEPS} tokens a sentence, but the lengths are {sorted(lengths)}.")
    return [
        _row(f"batch of {batch}, ours / {name}", batch, side_by_side(our_tokens, peer, REPETITIONS[batch], 2), goal)
        for name, peer, goal in (("Marian", their_tokens, GOALS[batch]), ("CTranslate2", fast_tokens, None))
    ]


def _row(what: str, batch: int, took: tuple[float, float], goal: float | None) -> Row:
    our_rate, their_rate = (batch * STEPS / one for one in took)
    ratio, rates = our_rate / their_rate, (f"{our_rate:,.0f}", f"{their_rate:,.0f}")
    said = "none" if goal is None else f"at least {goal:g}"
    return Row(f"greedy: tokens/s, {what}", *rates, ratio, said, goal is None or ratio >= goal)
