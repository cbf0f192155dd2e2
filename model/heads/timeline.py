"""Every head measured at each snapshot of a training, on one corpus with given translations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from ..atlas.build import sentences_of
from ..atlas.corpus import Corpus, usable
from ..atlas.forward import Sentence, batches, run
from ..atlas.measures import EXPLAINED, measure
from ..atlas.merge import heads_table
from ..atlas.tables import SUMS, PartTables
from ..experiments.training_timeline import Stop
from ..language.say import say
from ..translate import Translator
from .labels import label_of
from .timeline_table import PLACE, Timeline, TimelineError


def timeline(
    stops: Sequence[Stop], corpus: Corpus, costs: bool = False, on_progress: Callable[[int], None] = lambda stops: None
) -> Timeline:
    """Measure the heads of every stop; the released weights come last. TimelineError without a sentence to read."""
    released = stops[-1].translator
    parts = [_part(released, corpus, number) for number in range(-(-corpus.lines // corpus.size))]
    sentences = sum(map(len, parts))
    if not sentences:
        raise TimelineError(say("{model} can read no line of {file}.", model=released.name, file=corpus.source))
    tables = []
    for stop in stops:
        tables.append(_measured(stop.translator, parts, costs, sentences))
        on_progress(1)
    return Timeline(
        released.name,
        released.checkpoint.hash,
        corpus.source.name,
        sentences,
        tuple(stop.step for stop in stops),
        pd.concat(tables, keys=range(len(tables)), names=["stop"]).reset_index("stop").reset_index(drop=True),
    )


def _part(translator: Translator, corpus: Corpus, number: int) -> list[Sentence]:
    return sentences_of(translator, usable(translator, corpus, number)[0])


def _measured(translator: Translator, parts: Sequence[Sequence[Sentence]], costs: bool, sentences: int) -> pd.DataFrame:
    """A row a head: its place, its label, "" for none, and its measures."""
    tables = PartTables(least_weight=1.0)  # of links none are wanted
    for part in parts:
        for batch in batches(part, translator.device):
            found = run(translator.model, batch)
            tables.add(found, measure(translator.model, found, costs))
    sums = tables.tables()[SUMS].to_pandas().drop(columns="half")
    heads = heads_table(sums, [])
    labels = [label_of(row, sentences).place or "" for _, row in heads.iterrows()]
    return heads[PLACE].assign(label=labels).join(heads[[name for name in EXPLAINED if name in heads]])
