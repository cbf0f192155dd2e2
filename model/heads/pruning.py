"""Heads taken away one after another, and what is left of the translation: in the order of their cost, and by chance.

After Michel et al. (2019), "Are Sixteen Heads Really Better than One?", section 4, who order heads by an estimate of
their importance, and Voita et al. (2019), "Analyzing Multi-Head Self-Attention". Nothing is trained again afterwards.
A head that is taken away adds nothing: its context is zero. Many models with fewer heads are rows of one batch.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

import numpy as np
import sacrebleu
import torch
from torch import Tensor, nn

from ..capture.sites import attention_sites
from ..checkpoint.measurement_file import pairs_sha256
from ..decoding.steps import greedy_batch
from ..language.say import say
from ..network.autoregressive import pad, shift_right
from ..network.config import PAD_ID
from ..network.hooks import OutputHook, hook_outputs
from ..network.transformer import Transformer
from ..trace import Head
from ..translate import Translator
from .atlas import Atlas, AtlasError
from .pruning_curves import Course, Pruning, PruningError

TOKENS_A_PASS = 2400
"""Source and target tokens of all rows of one forward pass."""
T = TypeVar("T")


def cost_order(atlas: Atlas) -> tuple[Head, ...]:
    """The heads, the one that costs least first. AtlasError for an atlas without costs."""
    if "cost" not in atlas.heads or atlas.heads["cost"].isna().any():
        raise AtlasError(
            say("The atlas in {folder} has no costs: build it again without --no-costs.", folder=atlas.folder)
        )
    order = np.argsort(atlas.heads["cost"].to_numpy(), kind="stable")
    return tuple(atlas.names[at] for at in order)


def check_order(found: Pruning, atlas: Atlas) -> None:
    """Raise PruningError where heads were taken away by other costs than those of an atlas."""
    if found.order != cost_order(atlas):
        raise PruningError(
            say(
                "The heads of {model} were taken away in the order of other costs than those of the atlas in {folder}: "
                "measure again with `python -m model prune --checkpoint {model} --source FILE --target FILE`.",
                model=found.model,
                folder=atlas.folder,
            )
        )


def random_order(heads: Sequence[Head], seed: int) -> tuple[Head, ...]:
    """The heads in an order of chance that is the same whatever order they come in."""
    return tuple(random.Random(seed).sample(sorted(heads), len(heads)))


def points(heads: int, count: int) -> tuple[int, ...]:
    """At most `count` numbers of heads left, from all to none, as even as whole numbers are."""
    return tuple(dict.fromkeys(np.linspace(heads, 0, count).round().astype(int).tolist()))


def prune(
    translator: Translator,
    pairs: Sequence[tuple[str, str]],
    order: Sequence[Head],
    *,
    source: str,
    first_line: int = 1,
    random_orders: int = 5,
    count: int = 13,
    on_progress: Callable[[int], None] = lambda models: None,
) -> Pruning:
    """Measure models with fewer heads on source and reference sentences; `on_progress` hears how many were done."""
    left = points(len(order), count)
    orders = [tuple(order), *(random_order(order, seed) for seed in range(random_orders))]
    # All orders have their two ends in common.
    removed = {frozenset(one[: len(one) - heads]) for one in orders for heads in left}
    found = {}
    metric = _metric(translator)
    for heads in sorted(removed, key=len):
        texts = translations(translator, [pair[0] for pair in pairs], [heads])[0]
        bleu = metric.corpus_score(texts, [[pair[1] for pair in pairs]]).score
        found[heads] = float(bleu), log_prob(translator, pairs, heads)
        on_progress(1)
    courses = [
        Course(*zip(*(found[frozenset(one[: len(one) - heads])] for heads in left), strict=True)) for one in orders
    ]
    facts = translator.name, translator.checkpoint.hash, source, first_line, len(pairs), pairs_sha256(pairs)
    return Pruning(*facts, str(metric.get_signature()), left, tuple(order), courses[0], tuple(courses[1:]))


@torch.inference_mode()
def translations(
    translator: Translator, sources: Sequence[str], removed: Sequence[Collection[Head]]
) -> list[list[str]]:
    """Greedy translations by models that lack some heads: a list for each, a text for each source. InputError."""
    ids = [translator.encode(text).ids for text in sources]
    found = [[""] * len(sources) for _ in removed]
    places = [
        (model, text) for text in sorted(range(len(ids)), key=lambda at: len(ids[at])) for model in range(len(removed))
    ]
    for rows in _passes(places, lambda place: 2 * len(ids[place[1]])):
        source = pad([ids[text] for _, text in rows]).to(translator.device)
        with hook_outputs(silences(translator.model, [removed[model] for model, _ in rows])):
            written = greedy_batch(translator.model, source)
        for (model, text), target in zip(rows, written, strict=True):
            found[model][text] = translator.tokenizer.decode(target)
    return found


@torch.inference_mode()
def log_prob(translator: Translator, pairs: Sequence[tuple[str, str]], removed: Collection[Head]) -> float:
    """The mean log-probability of a reference token, in nats, of a model that lacks some heads."""
    model, total, tokens = translator.model, 0.0, 0
    ids = [(translator.encode(source).ids, translator.tokenizer.encode_target(target).ids) for source, target in pairs]
    for rows in _passes(sorted(ids, key=lambda pair: len(pair[0])), lambda pair: len(pair[0]) + len(pair[1])):
        source, target = (pad(side).to(translator.device) for side in zip(*rows, strict=True))
        with hook_outputs(silences(model, [removed] * len(rows))):
            log_probs = model(source, shift_right(target, model.start_id)).log_softmax(-1)
        real = target != PAD_ID
        total += float(log_probs.gather(-1, target[..., None])[..., 0][real].double().sum())
        tokens += int(real.sum())
    return total / tokens


def silences(model: Transformer, removed: Sequence[Collection[Head]]) -> dict[nn.Module, OutputHook]:
    """Hooks that set to zero the context of the heads that each row of the batch lacks."""
    device = next(model.parameters()).device
    hooks: dict[nn.Module, OutputHook] = {}
    for site in attention_sites(model):
        count = site.module.heads
        assert isinstance(count, int)
        of_site = [(site.kind, site.layer, head) for head in range(count)]
        off = torch.tensor([[head in row for head in of_site] for row in removed], device=device)
        if off.any():
            hooks[site.module.get_submodule("context")] = _silence(off[:, :, None, None])
    return hooks


def _silence(off: Tensor) -> OutputHook:
    return lambda context: context.masked_fill(off, 0.0)


def _metric(translator: Translator) -> sacrebleu.BLEU:
    return sacrebleu.BLEU(tokenize="zh" if translator.card.get("target_language") == "zh" else "13a")


def _passes(rows: Sequence[T], length: Callable[[T], int]) -> Iterator[list[T]]:
    """The rows, which are ordered by length or nearly so, in passes of so many tokens."""
    batch: list[T] = []
    longest = 0
    for row in rows:
        longest = max(longest, length(row))
        if batch and (len(batch) + 1) * longest > TOKENS_A_PASS:
            yield batch
            batch, longest = [], length(row)
        batch.append(row)
    if batch:
        yield batch
