"""Decoding against Hugging Face's Marian of the same size, with and without a cache; growth with length; capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attenscope.capture.attention import capture_attention
from attenscope.decoding.beam import beam_search
from attenscope.decoding.greedy_and_sampling import decode_batch_greedily, teacher_force
from attenscope.network.attention import make_padding_mask
from attenscope.network.config import BOS_ID, PAD_ID, SPECIAL_PIECES
from attenscope.network.layers import DecoderCache
from attenscope.network.transformer import Transformer
from bench.greedy import CONFIG, GOALS, SOURCE_TOKENS, STEPS, endless_marian, our_model
from bench.timing import Row, one_thread, side_by_side

WIDTH = 4
BATCHES = (1, 32)
REPETITIONS = {1: 15, 32: 5}
CAPTURE_GOAL = 1.5
SHORT, LONG = 128, 511
"""Lengths between which a cached token may become this much dearer: attention itself reads every key there is."""
GROWTH_GOAL = 1.5


def measure() -> list[Row]:
    torch.manual_seed(0)
    ours, theirs = our_model(), endless_marian()
    with one_thread():
        rows = [_against(ours, theirs, *case) for case in _cases()]
        return [*rows, _capture(ours), _growth(ours)]


def _cases() -> list[tuple[int, int, bool]]:
    """Beams, batch and whether with a cache. Greedy with a cache is measured by `bench.greedy`."""
    return [(beams, batch, cache) for beams in (1, WIDTH) for batch in BATCHES for cache in (True, False)]


def _against(ours: Transformer, theirs: Any, beams: int, batch: int, cache: bool) -> Row:
    source = _source(batch)
    mask = torch.ones_like(source)
    settings = {"max_new_tokens": STEPS, "num_beams": beams, "do_sample": False, "use_cache": cache}

    def our_tokens() -> object:
        if not cache:
            return _uncached(ours, source, beams)
        return decode_batch_greedily(ours, source, STEPS) if beams == 1 else _beams(ours, source)

    def their_tokens() -> Tensor:
        with torch.inference_mode():
            return theirs.generate(input_ids=source, attention_mask=mask, **settings)

    if their_tokens().shape[1] - 1 != STEPS:
        raise RuntimeError(f"Both must decode {STEPS} tokens a sentence.")
    repetitions = REPETITIONS[batch] if cache else max(3, REPETITIONS[batch] // 3)
    our_rate, their_rate = (batch * STEPS / one for one in side_by_side(our_tokens, their_tokens, repetitions))
    name = f"{'greedy' if beams == 1 else f'beam {beams}'}, {'cached' if cache else 'no cache'}"
    ratio = our_rate / their_rate
    goal = f"at least {GOALS[batch]:g}" if cache else "none"
    what = f"decode: tokens/s, {name}, batch of {batch}, ours / Marian"
    return Row(what, f"{our_rate:,.0f}", f"{their_rate:,.0f}", ratio, goal, ratio >= GOALS[batch] or not cache)


def _source(batch: int) -> Tensor:
    return torch.randint(len(SPECIAL_PIECES), CONFIG.vocab_size, (batch, SOURCE_TOKENS))


def _beams(model: Transformer, source: Tensor) -> list[int]:
    *_, last = beam_search(model, source, WIDTH, max_tokens=STEPS)
    return list(last.best(0)[0].token_ids)


@torch.inference_mode()
def _uncached(model: Transformer, source: Tensor, beams: int) -> Tensor:
    """What decoding costs when every step computes all tokens again: the same rows, the same choice of a next token."""
    rows = source.repeat_interleave(beams, 0)
    memory, mask = model.encode(rows), make_padding_mask(rows, PAD_ID)
    target = torch.full((len(rows), 1), BOS_ID)
    for _ in range(STEPS):
        log_probs = model.generator(model.decode(target, memory, mask)[:, -1]).log_softmax(-1)
        target = torch.cat([target, log_probs.topk(2 * beams).indices[:, :1]], 1)
    return target


def _capture(model: Transformer) -> Row:
    """A search, and the attention of the translation found, against the search alone."""
    source = _source(1)

    def looking() -> None:
        ids = _beams(model, source)
        with capture_attention(model) as recording:
            teacher_force(model, source, ids)
        assert recording.trace.cross is not None

    with_capture, alone = side_by_side(looking, lambda: _beams(model, source), REPETITIONS[1], warm_up=2)
    ratio = with_capture / alone
    return Row(
        f"decode: time of beam {WIDTH} over {STEPS} steps, with the attention of the best / without",
        f"{with_capture * 1e3:.0f} ms",
        f"{alone * 1e3:.0f} ms",
        ratio,
        f"at most {CAPTURE_GOAL}",
        ratio <= CAPTURE_GOAL,
    )


def _growth(model: Transformer) -> Row:
    """Near linear: a token of a long cached decoding costs about what one of a short decoding costs."""
    source = _source(1)
    long, short = side_by_side(_cached(model, source, LONG), _cached(model, source, SHORT), 3)
    ratio = (long / LONG) / (short / SHORT)
    return Row(
        f"decode: time a token, {LONG} tokens / {SHORT} tokens, cached",
        f"{long / LONG * 1e3:.2f} ms",
        f"{short / SHORT * 1e3:.2f} ms",
        ratio,
        f"at most {GROWTH_GOAL}",
        ratio <= GROWTH_GOAL,
    )


@torch.inference_mode()
def _steps(model: Transformer, source: Tensor, count: int) -> None:
    memory, mask = model.encode(source), make_padding_mask(source, PAD_ID)
    cache, last = DecoderCache(CONFIG.decoder_layers), torch.full((1, 1), BOS_ID)
    for _ in range(count):
        last = model.generator(model.decode(last, memory, mask, cache=cache)[:, -1]).argmax(-1, keepdim=True)


def _cached(model: Transformer, source: Tensor, count: int) -> Callable[[], None]:
    return lambda: _steps(model, source, count)
