"""A model held against a gold alignment: each pair is read by teacher forcing, and its cross-attention gives links."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..analysis.alignment import READINGS
from ..language.say import say
from ..translate import InputError, Translator
from .attention_links import attention_links, diagonal_links
from .error_rate import Counts, counted
from .gold import Gold, GoldPair
from .links import GoldError, Link
from .rates import Part, Rate, Rates


def measure(translator: Translator, gold: Gold, on_progress: Callable[[int], None] = lambda pairs: None) -> Rates:
    """The error rates of all heads and means. GoldError where the model can read no pair."""
    found, diagonal, read = [], [], []
    for pair in gold.pairs:
        try:
            translation = translator.force(pair.source, pair.target)
        except InputError:
            continue
        finally:
            on_progress(1)
        links = attention_links(translation, pair, translator.tokenizer)
        found.append(counted(links.reshape(-1, *links.shape[2:]), *_gold(pair)))
        diagonal.append(counted(diagonal_links(pair)[None], *_gold(pair)))
        heads = translation.trace.maps["cross"].weights.shape[:2]
        read.append(pair)
    if not read:
        raise GoldError(
            say(
                "{model} can read none of the {count} pairs of {gold}.",
                model=translator.name,
                count=len(gold.pairs),
                gold=gold.name,
            )
        )
    sure = np.array([len(pair.links.sure) for pair in read])
    counts, straight = (Counts.of(one, sure) for one in (found, diagonal))
    places = _places(*heads)
    own = np.array([place[0] == "head" for _ in READINGS for place in places])
    only_heads = Counts(counts.in_sure[:, own], counts.in_possible[:, own], counts.links[:, own], sure)
    return Rates(
        translator.name,
        translator.checkpoint.hash,
        gold.name,
        gold.sha256,
        len(read),
        len(gold.pairs) - len(read),
        int(sure.sum()),
        sum(len(pair.links.possible) for pair in read) - int(sure.sum()),
        float(straight.aer()[0]),
        only_heads.held_out(),
        _rates(counts, places),
    )


def _gold(pair: GoldPair) -> tuple[np.ndarray, np.ndarray]:
    """The sure and the possible links: (S, T) bool each."""
    return _cells(pair, pair.links.sure), _cells(pair, pair.links.possible)


def _cells(pair: GoldPair, links: frozenset[Link]) -> np.ndarray:
    cells = np.zeros((len(pair.source_words), len(pair.target_words)), dtype=bool)
    for source, target in links:
        cells[source, target] = True
    return cells


def _places(layers: int, heads: int) -> list[tuple[Part, int, int]]:
    """What :func:`attention_links` gives, in its order."""
    found: list[tuple[Part, int, int]] = []
    for layer in range(layers):
        found += [("head", layer, head) for head in range(heads)]
        found.append(("layer", layer, -1))
    return [*found, ("all", -1, -1)]


def _rates(counts: Counts, places: list[tuple[Part, int, int]]) -> tuple[Rate, ...]:
    columns = (counts.aer(), *counts.interval(), counts.precision(), counts.recall())
    named = [(*place, reading) for reading in READINGS for place in places]
    return tuple(
        Rate(*name, *(float(value) for value in values)) for name, *values in zip(named, *columns, strict=True)
    )
