"""An atlas built from a corpus, part after part, by one process or by many that share a folder.

A part is so many lines of the corpus, whoever runs it, and its tables depend on these lines alone: so one process and
several give the same atlas, and a build that was killed goes on with the parts that are not there yet. Nothing is sent
between the processes; the folder is all that they share.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import torch

from ..decoding.steps import greedy_batch
from ..language.say import listed, say
from ..live.live_model import LiveModel
from ..network.autoregressive import pad
from ..network.config import PAD_ID
from .corpus import Corpus, Pair, Skipped, usable
from .folder import MANIFEST, PARTS, AtlasError, Manifest, Plan, read_manifest
from .forward import TOKENS_A_BATCH, Ids, Sentence, batches, run
from .measures import measure
from .merge import finish
from .tables import LINKS, SENTENCES, PartTables, Tables

REPORT = "report.json"
LINES_A_PART = 100
POLL = 0.2
"""Seconds between two looks whether the other processes have written their parts."""

OnProgress = Callable[[int], None]
"""Called with the number of lines that were done since the last call."""


class Share(NamedTuple):
    """Which of the parts a process runs."""

    rank: int = 0
    world: int = 1

    @classmethod
    def of_environment(cls) -> Share:
        """As torchrun says it to the processes that it starts."""
        return cls(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))


def build(
    translator: LiveModel,
    corpus: Corpus,
    folder: Path,
    *,
    costs: bool = True,
    least_weight: float = 0.0,
    licence: str = "",
    share: Share = Share(),  # noqa: B008  (a tuple)
    on_progress: OnProgress = lambda lines: None,
) -> Manifest | None:
    """Build an atlas, or go on with one; the first process finishes it and returns its manifest, others None.

    Raises AtlasError where the folder holds anything else.
    """
    target = corpus.target.name if corpus.target else ""
    facts = translator.name, translator.weights_hash, corpus.source.name, target
    plan = Plan(*facts, corpus.lines, corpus.size, corpus.sha256, costs, least_weight)
    start = translator.tokenizer.token(translator.model.start_id)
    found = _begin(folder, plan, licence, start)
    if found.complete:
        return found if share.rank == 0 else None
    for number in range(share.rank, plan.parts, share.world):
        if not _part(folder, number).is_dir():
            _write_part(folder, number, *_built(translator, corpus, number, plan))
        on_progress(min(corpus.size, corpus.lines - number * corpus.size))
    if share.rank:
        return None
    while missing := [number for number in range(plan.parts) if not _part(folder, number).is_dir()]:
        time.sleep(POLL if len(missing) < plan.parts else 10 * POLL)
    return finish(folder, found, [_part(folder, number) for number in range(plan.parts)])


def _begin(folder: Path, plan: Plan, licence: str, start: str) -> Manifest:
    """The manifest of a new atlas, or of the one that is there if it is made of the same."""
    if (folder / MANIFEST).exists():
        found = read_manifest(folder)
        if found.plan != plan:
            changed = [name for name, value in vars(plan).items() if vars(found.plan)[name] != value]
            raise AtlasError(
                say(
                    "{folder} holds an atlas that is made of something else ({changed}): choose another --output, or "
                    "remove that folder.",
                    folder=folder,
                    changed=listed(changed),
                )
            )
        return found
    # Another process may just be beginning the same atlas: its manifest, or one half written, is no other file.
    others = (path.name for path in folder.iterdir()) if folder.exists() else iter(())
    if any(name not in (PARTS, MANIFEST) and not name.startswith(f".{MANIFEST}.") for name in others):
        raise AtlasError(say("{folder} holds other files: choose an empty folder for --output.", folder=folder))
    (folder / PARTS).mkdir(parents=True, exist_ok=True)
    manifest = Manifest(plan, licence=licence, start=start)
    manifest.write(folder)
    return manifest


def _built(translator: LiveModel, corpus: Corpus, number: int, plan: Plan) -> tuple[Tables, dict[str, object]]:
    started = time.perf_counter()
    pairs, skipped = usable(translator, corpus, number)
    sentences = sentences_of(translator, pairs)
    tables = PartTables(plan.least_weight)
    for batch in batches(sentences, translator.device, Ids.of(translator.model)):
        found = run(translator.model, batch)
        tables.add(found, measure(translator.model, found, plan.costs))
    made = tables.tables()
    report: dict[str, object] = {
        "sentences": made[SENTENCES].num_rows,
        "links": made[LINKS].num_rows,
        "tokens": sum(len(one.target_ids) for one in sentences),
        "seconds": time.perf_counter() - started,
        "skipped": vars(skipped),
    }
    return made, report


def sentences_of(translator: LiveModel, pairs: Sequence[Pair]) -> list[Sentence]:
    """Every pair as the model reads it, the translations that are not given made by the model."""
    card, tokenizer = translator.card, translator.tokenizer
    start = tokenizer.token(translator.model.start_id)
    languages = str(card.get("source_language", "")), str(card.get("target_language", ""))
    written = _translated(translator, [pair for pair in pairs if pair.target_encoded is None])
    found = []
    for pair in pairs:
        ids = written[pair.line] if pair.target_encoded is None else translator.begun(pair.target_encoded.ids)
        text = translator.written(ids) if pair.target_encoded is None else pair.target
        sides = (pair.source_encoded.ids, ids)
        found.append(Sentence.of(pair.line, (pair.source, text), sides, tokenizer, languages, start))
    return found


@torch.inference_mode()
def _translated(translator: LiveModel, pairs: Sequence[Pair]) -> dict[int, list[int]]:
    """Greedy translations by line, their end with them, also of one that was cut off."""
    found: dict[int, list[int]] = {}
    model, end = translator.model, next(iter(translator.model.end_ids))
    ordered = sorted(pairs, key=lambda pair: (len(pair.source_encoded.ids), pair.line))
    while ordered:
        longest = len(ordered[-1].source_encoded.ids)
        count = 1 if model.pad_id is None else max(1, TOKENS_A_BATCH // longest)
        rows, ordered = ordered[-count:], ordered[:-count]
        fill = PAD_ID if model.pad_id is None else model.pad_id
        source = pad([pair.source_encoded.ids for pair in rows], fill).to(translator.device)
        written = greedy_batch(model, source, constraints=translator.forced)
        for pair, ids in zip(rows, written, strict=True):
            found[pair.line] = [*ids[: translator.max_length - 1], end]
    return found


def _part(folder: Path, number: int) -> Path:
    return folder / PARTS / f"{number:06}"


def _write_part(folder: Path, number: int, tables: Tables, report: dict[str, object]) -> None:
    """Write the tables of a part beside its place, then rename their folder: it is there whole or not at all."""
    place = _part(folder, number)
    beside = place.with_name(f".{place.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    for name, table in tables.items():
        pq.write_table(table, beside / f"{name}.parquet", compression="zstd")
    (beside / REPORT).write_text(json.dumps(report), encoding="utf-8")
    beside.replace(place)


__all__ = ["LINES_A_PART", "Share", "Skipped", "build"]
