"""Remove heads one after another, measure the remaining translation quality, and read and write pruning.json.

Heads are removed in the order of their cost, and in random orders to compare. Michel et al. (2019), "Are Sixteen Heads
Really Better than One?", section 4, order heads by an estimate of their importance; see also Voita et al. (2019),
"Analyzing Multi-Head Self-Attention". Nothing is trained again afterwards. A head that is removed adds nothing: its
context is zero.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from ..atomic_write import write_file
from ..capture.attention import find_attention_sites
from ..checkpoint.measurements import MeasurementFile, hash_pairs
from ..decoding.greedy_and_sampling import decode_batch_greedily
from ..evaluation.quality import make_bleu_metric, read_target_language
from ..language import say, to_say
from ..network.abstract_model import pad_ids, shift_right
from ..network.config import PAD_ID
from ..network.hooks import OutputHook, hook_outputs
from ..network.transformer import Transformer
from ..trace import Head
from ..translate import Translator
from .files import AtlasError
from .query import Atlas

TOKENS_A_PASS = 2400
"""Source and target tokens of all rows of one forward pass."""
T = TypeVar("T")


def order_heads_by_cost(atlas: Atlas) -> tuple[Head, ...]:
    """The heads, the one that costs least first. Raises AtlasError for an atlas without costs."""
    if "cost" not in atlas.heads or atlas.heads["cost"].isna().any():
        raise AtlasError(
            say("The atlas in {folder} has no costs: build it again without --no-costs.", folder=atlas.folder)
        )
    order = np.argsort(atlas.heads["cost"].to_numpy(), kind="stable")
    return tuple(atlas.names[at] for at in order)


def check_pruning_matches_atlas(found: Pruning, atlas: Atlas) -> None:
    """Raise PruningError where heads were taken away by other costs than those of an atlas."""
    if found.order != order_heads_by_cost(atlas):
        raise PruningError(
            say(
                "The heads of {model} were taken away in the order of other costs than those of the atlas in {folder}: "
                "measure again with `python -m model prune --checkpoint {model} --source FILE --target FILE`.",
                model=found.model,
                folder=atlas.folder,
            )
        )


def shuffle_heads(heads: Sequence[Head], seed: int) -> tuple[Head, ...]:
    """Return the heads in a random order that does not depend on the order they come in."""
    return tuple(random.Random(seed).sample(sorted(heads), len(heads)))


def choose_head_counts(heads: int, count: int) -> tuple[int, ...]:
    """Return at most `count` numbers of heads left, from all to none, evenly spaced as far as whole numbers are."""
    return tuple(dict.fromkeys(np.linspace(heads, 0, count).round().astype(int).tolist()))


def measure_pruning(
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
    """Measure models with fewer heads on source and reference sentences; `on_progress` gets the number just done."""
    left = choose_head_counts(len(order), count)
    orders = [tuple(order), *(shuffle_heads(order, seed) for seed in range(random_orders))]
    # All orders have their two ends in common.
    removed = {frozenset(one[: len(one) - heads]) for one in orders for heads in left}
    found = {}
    metric = make_bleu_metric(read_target_language(translator))
    for heads in sorted(removed, key=len):
        texts = translate_without_heads(translator, [pair[0] for pair in pairs], [heads])[0]
        bleu = metric.corpus_score(texts, [[pair[1] for pair in pairs]]).score
        found[heads] = float(bleu), mean_log_prob_without_heads(translator, pairs, heads)
        on_progress(1)
    courses = [
        PruningCurve(*zip(*(found[frozenset(one[: len(one) - heads])] for heads in left), strict=True))
        for one in orders
    ]
    facts = translator.name, translator.checkpoint.hash, source, first_line, len(pairs), hash_pairs(pairs)
    return Pruning(*facts, str(metric.get_signature()), left, tuple(order), courses[0], tuple(courses[1:]))


@torch.inference_mode()
def translate_without_heads(
    translator: Translator, sources: Sequence[str], removed: Sequence[Collection[Head]]
) -> list[list[str]]:
    """Return greedy translations by models that lack some heads: a list for each, a text for each source.

    The models are rows of one batch. Raises InputError.
    """
    ids = [translator.encode(text).ids for text in sources]
    found = [[""] * len(sources) for _ in removed]
    places = [
        (model, text) for text in sorted(range(len(ids)), key=lambda at: len(ids[at])) for model in range(len(removed))
    ]
    for rows in _batch_rows_by_tokens(places, lambda place: 2 * len(ids[place[1]])):
        source = pad_ids([ids[text] for _, text in rows]).to(translator.device)
        with hook_outputs(make_silencing_hooks(translator.model, [removed[model] for model, _ in rows])):
            written = decode_batch_greedily(translator.model, source)
        for (model, text), target in zip(rows, written, strict=True):
            found[model][text] = translator.tokenizer.decode(target)
    return found


@torch.inference_mode()
def mean_log_prob_without_heads(
    translator: Translator, pairs: Sequence[tuple[str, str]], removed: Collection[Head]
) -> float:
    """The mean log-probability of a reference token, in nats, of a model that lacks some heads."""
    model, total, tokens = translator.model, 0.0, 0
    ids = [(translator.encode(source).ids, translator.tokenizer.encode_target(target).ids) for source, target in pairs]
    for rows in _batch_rows_by_tokens(
        sorted(ids, key=lambda pair: len(pair[0])), lambda pair: len(pair[0]) + len(pair[1])
    ):
        source, target = (pad_ids(side).to(translator.device) for side in zip(*rows, strict=True))
        with hook_outputs(make_silencing_hooks(model, [removed] * len(rows))):
            log_probs = model(source, shift_right(target, model.start_id)).log_softmax(-1)
        real = target != PAD_ID
        total += float(log_probs.gather(-1, target[..., None])[..., 0][real].double().sum())
        tokens += int(real.sum())
    return total / tokens


def make_silencing_hooks(model: Transformer, removed: Sequence[Collection[Head]]) -> dict[nn.Module, OutputHook]:
    """Return hooks that set to zero the context of the heads that each row of the batch lacks."""
    device = next(model.parameters()).device
    hooks: dict[nn.Module, OutputHook] = {}
    for site in find_attention_sites(model):
        count = site.module.heads
        assert isinstance(count, int)
        of_site = [(site.kind, site.layer, head) for head in range(count)]
        off = torch.tensor([[head in row for head in of_site] for row in removed], device=device)
        if off.any():
            hooks[site.module.get_submodule("context")] = _make_zeroing_hook(off[:, :, None, None])
    return hooks


def _make_zeroing_hook(off: Tensor) -> OutputHook:
    return lambda context: context.masked_fill(off, 0.0)


def _batch_rows_by_tokens(rows: Sequence[T], length: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield the rows, which are ordered by length or nearly so, in passes of at most TOKENS_A_PASS tokens."""
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


# pruning.json, beside a checkpoint.


PRUNING_FILE = "pruning.json"
PRUNING_FORMAT = "attenscope-pruning-2"


class PruningError(ValueError):
    """A pruning.json that cannot be shown; the message says why and what to do."""


_PRUNING_MEASUREMENT = MeasurementFile(
    PRUNING_FILE,
    PRUNING_FORMAT,
    PruningError,
    "python -m model prune --checkpoint {model} --source FILE --target FILE",
    to_say("No heads of {model} have been taken away yet: measure it with `{how}`."),
)


@dataclass(frozen=True)
class PruningCurve:
    """Heads taken away in one order: a number for each number of heads left."""

    bleu: tuple[float, ...]
    log_prob: tuple[float, ...]
    """Mean of a reference token, in nats."""


@dataclass(frozen=True)
class Pruning:
    """What `python -m model prune` measured."""

    model: str
    model_hash: str
    source: str
    """The name of the text, without its folder."""
    first_line: int
    """The line of the text, from 1, that was used first."""
    sentences: int
    pairs_sha256: str
    """Of the sentences and their references, see :func:`model.checkpoint.measurements.hash_pairs`."""
    signature: str
    """Of sacreBLEU."""
    left: tuple[int, ...]
    """How many heads are left, all first, 0 last."""
    order: tuple[Head, ...]
    """The heads as they are taken away by cost, the one that costs least first."""
    by_cost: PruningCurve
    random: tuple[PruningCurve, ...]
    """In random orders; the order of number N is :func:`shuffle_heads` with the seed N."""

    def write(self, folder: Path) -> None:
        """Write pruning.json into a checkpoint's folder."""
        write_file(
            folder / PRUNING_FILE, json.dumps({"format": PRUNING_FORMAT, **asdict(self)}, ensure_ascii=False) + "\n"
        )

    def removed_heads(self, point: int) -> frozenset[Head]:
        """The heads that are gone at a point of :attr:`left`, taken away by cost."""
        return frozenset(self.order[: len(self.order) - self.left[point]])

    def find_fewest_heads_keeping_bleu(self, share: float, bleu: Sequence[float]) -> int:
        """Return the fewest heads left down to which every point of a curve of BLEU keeps a share of the first."""
        enough = self.left[0]
        for heads, score in zip(self.left, bleu, strict=True):
            if score < share * bleu[0]:
                break
            enough = heads
        return enough


def read_pruning(folder: Path, name: str, model_hash: str) -> Pruning:
    """Return what was measured of the model in a folder. Raises PruningError where nothing was, or of another model."""
    return _PRUNING_MEASUREMENT.read(folder, name, model_hash, _parse_pruning)


def _parse_pruning(found: dict[str, Any]) -> Pruning:
    courses = [_parse_curve(one) for one in (found.pop("by_cost"), *found.pop("random"))]
    left = tuple(int(one) for one in found.pop("left"))
    order: tuple[Head, ...] = tuple((kind, int(layer), int(head)) for kind, layer, head in found.pop("order"))
    if any(len(one.bleu) != len(left) or len(one.log_prob) != len(left) for one in courses) or left[0] != len(order):
        raise ValueError("its lists are not of one length")
    if len(courses) < 2 or list(left) != sorted(set(left), reverse=True):
        raise ValueError("it has no random order, or numbers of heads that do not fall")
    return Pruning(**found, left=left, order=order, by_cost=courses[0], random=tuple(courses[1:]))


def _parse_curve(found: dict[str, Any]) -> PruningCurve:
    return PruningCurve(*(tuple(float(one) for one in found[name]) for name in ("bleu", "log_prob")))
