"""One word attributed to 18 source pieces, against captum doing the same on Hugging Face's Marian of the same size."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attenscope.attribution.logit import split_logit
from attenscope.attribution.methods import attribute_target, record_target_pass
from attenscope.attribution.target import Target, make_piece_target
from attenscope.experiments.ablation import head_effects
from attenscope.translate import Translator
from bench.peers import marian
from bench.timing import Row, seconds, side_by_side

SENTENCE = "Where did you buy this red bicycle last summer, my dear old friend from work?"
MODEL, POSITION, STEPS = "everyday-en-de", 8, 50
REPETITIONS, GOAL = 5, 2.0
LIMITS = {"leave-one-out": 300, "heads": 300, "effect of each head": 3000}
"""Milliseconds."""


def measure() -> list[Row]:
    translator = Translator.load(MODEL, "cpu")
    result = translator.translate(SENTENCE, capture=False)
    target = make_piece_target(translator, result, POSITION)
    theirs = _captum(marian(translator.config), target)
    rows = [
        _against(method, lambda: attribute_target(translator, target, method), run)  # noqa: B023  (called within the turn)
        for method, run in theirs.items()
    ]
    ours: dict[str, Callable[[], object]] = {
        "leave-one-out": lambda: attribute_target(translator, target, "leave-one-out"),
        "heads": lambda: split_logit(translator.model, target, record_target_pass(translator.model, target)),
        "effect of each head": lambda: head_effects(translator.model, result.source_ids, result.target_ids),
    }
    return rows + [_within(name, run, len(target.source_ids)) for name, run in ours.items()]


def _captum(model: Any, target: Target) -> dict[str, Callable[[], object]]:
    """The same two methods of captum over embeddings of source and prefix; all steps in one batch, as here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from captum.attr import FeatureAblation, IntegratedGradients
    embed = model.get_input_embeddings()
    with torch.no_grad():
        given = tuple(embed(torch.tensor([ids])) for ids in (target.source_ids, target.input_ids))
    pieces = [one.shape[1] for one in given]
    masks = tuple(
        torch.arange(start, start + count)[None, :, None] for start, count in zip((0, pieces[0]), pieces, strict=True)
    )

    def value(source: Tensor, inputs: Tensor) -> Tensor:
        found = model(inputs_embeds=source, decoder_inputs_embeds=inputs, use_cache=False)
        return found.logits[:, -1].log_softmax(-1)[:, target.token_ids[0]]

    def ablate() -> object:
        with torch.no_grad():
            return FeatureAblation(value).attribute(given, feature_mask=masks, perturbations_per_eval=sum(pieces))

    return {
        "leave-one-out": ablate,
        "integrated-gradients": lambda: IntegratedGradients(value).attribute(given, n_steps=STEPS),
    }


def _against(method: str, ours: Callable[[], object], theirs: Callable[[], object]) -> Row:
    our_time, their_time = side_by_side(ours, theirs, REPETITIONS, warm_up=1)
    ratio = our_time / their_time
    return Row(
        f"attribution: ms of {method}, ours / captum on Marian",
        f"{our_time * 1000:.0f}",
        f"{their_time * 1000:.0f}",
        ratio,
        f"at most {GOAL:g}",
        ratio <= GOAL,
    )


def _within(name: str, run: Callable[[], object], pieces: int) -> Row:
    run()
    time = min(seconds(run) for _ in range(REPETITIONS)) * 1000
    limit = LIMITS[name]
    what = f"attribution: ms of {name}, {pieces} source pieces, ours / the limit"
    return Row(what, f"{time:.0f}", str(limit), time / limit, "at most 1", time <= limit)
