"""Build an atlas from a corpus, part by part, and merge the parts into one set of tables.

A part is a fixed number of lines of the corpus, and its tables depend on these lines alone. So one process and several
give the same atlas, and a build that was killed goes on with the parts that are not there yet. The processes share
nothing but the folder.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice, takewhile, zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch

from ..atomic_write import is_file_being_written
from ..decoding.greedy_and_sampling import decode_batch_greedily
from ..language import format_number, join_items, say, to_say
from ..network.abstract_model import pad_ids
from ..network.config import PAD_ID
from ..runnable_model import InputError, RunnableModel
from ..text.tokenizer import EncodedText
from ..text.words import detect_foreign_language, guess_language
from ..trace import KINDS
from .files import (
    COSTS_TABLE,
    HALVES_TABLE,
    HEADS_TABLE,
    LINKS_TABLE,
    MANIFEST_FILE,
    PART_SUMS,
    PARTS_FOLDER,
    SENTENCES_TABLE,
    SINGLE_FILE_TABLES,
    TAGS_TABLE,
    AtlasError,
    AtlasPlan,
    Manifest,
    PartTables,
    TablesByName,
    read_manifest,
)
from .measure import (
    COST_MEASURE,
    EVEN_SUFFIX,
    HAS_SUFFIX,
    HELD_SUFFIX,
    MEASURE_EXPLANATIONS,
    REPEATED_PLACES,
    REPEATED_SUFFIX,
    measure_heads,
    measure_repeated_token_attention,
)
from .teacher_forced_batches import (
    PLACES,
    TOKENS_A_BATCH,
    Sentence,
    SpecialIds,
    make_batches,
    run_batch,
    tag_parts_of_speech,
)

REPORT_FILE = "report.json"
LINES_A_PART = 100
POLL_SECONDS = 0.2
"""Seconds between two looks whether the other processes have written their parts."""

OnProgress = Callable[[int], None]
"""Called with the number of lines that were done since the last call."""


class WorkerShare(NamedTuple):
    """Which of the parts a process runs."""

    rank: int = 0
    world: int = 1

    @classmethod
    def from_environment(cls) -> WorkerShare:
        """Read the variables that torchrun sets for the processes it starts."""
        return cls(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))


def build_atlas(
    translator: RunnableModel,
    corpus: Corpus,
    folder: Path,
    *,
    costs: bool = True,
    least_weight: float = 0.0,
    licence: str = "",
    share: WorkerShare = WorkerShare(),  # noqa: B008  (a tuple)
    on_progress: OnProgress = lambda lines: None,
) -> Manifest | None:
    """Build an atlas, or go on with one; the first process finishes it and returns its manifest, others None.

    Raises AtlasError where the folder holds anything else.
    """
    target = corpus.target.name if corpus.target else ""
    facts = translator.name, translator.weights_hash, corpus.source.name, target
    plan = AtlasPlan(*facts, corpus.lines, corpus.size, corpus.sha256, costs, least_weight)
    start = translator.tokenizer.token(translator.model.start_id)
    found = _create_or_read_manifest(folder, plan, licence, start)
    if found.complete:
        return found if share.rank == 0 else None
    for number in range(share.rank, plan.part_count, share.world):
        if not _part_folder(folder, number).is_dir():
            _write_part(folder, number, *_build_part_tables(translator, corpus, number, plan))
        on_progress(min(corpus.size, corpus.lines - number * corpus.size))
    if share.rank:
        return None
    while missing := [number for number in range(plan.part_count) if not _part_folder(folder, number).is_dir()]:
        time.sleep(POLL_SECONDS if len(missing) < plan.part_count else 10 * POLL_SECONDS)
    return merge_atlas_parts(folder, found, [_part_folder(folder, number) for number in range(plan.part_count)])


def _create_or_read_manifest(folder: Path, plan: AtlasPlan, licence: str, start: str) -> Manifest:
    """Return the manifest of a new atlas, or of the one in the folder if its plan is the same."""
    if (folder / MANIFEST_FILE).exists():
        found = read_manifest(folder)
        if found.plan != plan:
            changed = [name for name, value in vars(plan).items() if vars(found.plan)[name] != value]
            raise AtlasError(
                say(
                    "{folder} holds an atlas that is made of something else ({changed}): choose another --output, or "
                    "remove that folder.",
                    folder=folder,
                    changed=join_items(changed),
                )
            )
        return found
    # Another process may just be beginning the same atlas: its manifest, or one half written, is no other file.
    others = (path.name for path in folder.iterdir()) if folder.exists() else iter(())
    if any(name not in (PARTS_FOLDER, MANIFEST_FILE) and not is_file_being_written(name) for name in others):
        raise AtlasError(say("{folder} holds other files: choose an empty folder for --output.", folder=folder))
    (folder / PARTS_FOLDER).mkdir(parents=True, exist_ok=True)
    manifest = Manifest(plan, licence=licence, start=start)
    manifest.write(folder)
    return manifest


def _build_part_tables(
    translator: RunnableModel, corpus: Corpus, number: int, plan: AtlasPlan
) -> tuple[TablesByName, dict[str, object]]:
    started = time.perf_counter()
    pairs, skipped = read_usable_pairs(translator, corpus, number)
    sentences = encode_or_translate_pairs(translator, pairs)
    tables = PartTables(plan.least_weight)
    for batch in make_batches(sentences, translator.device, SpecialIds.from_model(translator.model)):
        found = run_batch(translator.model, batch)
        tables.add(found, measure_heads(translator.model, found, plan.costs))
    repeats = plan_repeated_sequences(translator) if number == 0 and translator.model.is_decoder_alone else None
    if repeats:  # The same whatever the corpus is, so one part of the atlas has them.
        repeated = make_repeated_sequences(translator, repeats)
        for batch in make_batches(repeated, translator.device, SpecialIds.from_model(translator.model)):
            tables.add_sums("decoder", measure_repeated_token_attention(run_batch(translator.model, batch)))
    made = tables.tables()
    report: dict[str, object] = {
        "sentences": made[SENTENCES_TABLE].num_rows,
        "links": made[LINKS_TABLE].num_rows,
        "tokens": sum(len(one.target_ids) for one in sentences),
        "seconds": time.perf_counter() - started,
        "skipped": vars(skipped),
        "repeats": repeats._asdict() if repeats else {},
    }
    return made, report


def encode_or_translate_pairs(translator: RunnableModel, pairs: Sequence[CorpusPair]) -> list[Sentence]:
    """Return every pair as token ids; the model translates the sources that have no target.

    Of a decoder alone, which has no translations, every text as it is read.
    """
    card, tokenizer = translator.card, translator.tokenizer
    if translator.model.is_decoder_alone:
        language = guess_language(" ".join(pair.source for pair in pairs)) or ""
        return [_make_decoder_only_sentence(pair, language) for pair in pairs]
    start = tokenizer.token(translator.model.start_id)
    languages = str(card.get("source_language", "")), str(card.get("target_language", ""))
    written = _translate_pairs(translator, [pair for pair in pairs if pair.target_encoded is None])
    found = []
    for pair in pairs:
        ids = (
            written[pair.line] if pair.target_encoded is None else translator.add_forced_prefix(pair.target_encoded.ids)
        )
        text = translator.decode_target(ids) if pair.target_encoded is None else pair.target
        sides = (pair.source_encoded.ids, ids)
        found.append(
            Sentence.from_source_and_target(pair.line, (pair.source, text), sides, tokenizer, languages, start)
        )
    return found


def _make_decoder_only_sentence(pair: CorpusPair, language: str) -> Sentence:
    whole = tag_parts_of_speech(pair.source_encoded.tokens, language)
    return Sentence.from_decoder_only_text(pair.line, pair.source, pair.source_encoded.ids, whole)


@torch.inference_mode()
def _translate_pairs(translator: RunnableModel, pairs: Sequence[CorpusPair]) -> dict[int, list[int]]:
    """Return greedy translations by line, each closed by the end token, even one that was cut off."""
    found: dict[int, list[int]] = {}
    model, end = translator.model, next(iter(translator.model.end_ids))
    ordered = sorted(pairs, key=lambda pair: (len(pair.source_encoded.ids), pair.line))
    while ordered:
        longest = len(ordered[-1].source_encoded.ids)
        count = 1 if model.pad_id is None else max(1, TOKENS_A_BATCH // longest)
        rows, ordered = ordered[-count:], ordered[:-count]
        fill = PAD_ID if model.pad_id is None else model.pad_id
        source = pad_ids([pair.source_encoded.ids for pair in rows], fill).to(translator.device)
        written = decode_batch_greedily(model, source, constraints=translator.forced)
        for pair, ids in zip(rows, written, strict=True):
            found[pair.line] = [*ids[: translator.max_length - 1], end]
    return found


def _part_folder(folder: Path, number: int) -> Path:
    return folder / PARTS_FOLDER / f"{number:06}"


def _write_part(folder: Path, number: int, tables: TablesByName, report: dict[str, object]) -> None:
    """Write the tables of a part beside its place, then rename their folder: it is there whole or not at all."""
    place = _part_folder(folder, number)
    beside = place.with_name(f".{place.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    for name, table in tables.items():
        pq.write_table(table, beside / f"{name}.parquet", compression="zstd")
    (beside / REPORT_FILE).write_text(json.dumps(report), encoding="utf-8")
    beside.replace(place)


# The corpus, read in parts; lines that cannot be used are counted with their reason.


EMPTY_LINE, LINE_TOO_LONG, LINE_TOO_SHORT, INVALID_UNICODE, OTHER_LANGUAGE, NO_COUNTERPART = (
    to_say("empty"),
    to_say("too long for the model"),
    to_say("of one token"),
    to_say("not valid Unicode"),
    to_say("another language"),
    to_say("no line on the other side"),
)
LINES_PER_REASON = 5
"""Lines of each reason that a report names."""


@dataclass(frozen=True)
class CorpusPair:
    """A line of the corpus that can be used."""

    line: int
    """From 0."""
    source: str
    source_encoded: EncodedText
    target: str = ""
    target_encoded: EncodedText | None = None
    """None where the model is to translate."""


@dataclass
class SkippedLines:
    """The lines of a corpus that were left out."""

    counts: dict[str, int] = field(default_factory=dict)
    lines: dict[str, list[int]] = field(default_factory=dict)
    """The first lines of each reason, from 1."""

    def add(self, reason: str, line: int) -> None:
        """Count a line, from 0."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        self.lines.setdefault(reason, [])
        if len(self.lines[reason]) < LINES_PER_REASON:
            self.lines[reason].append(line + 1)

    def merge(self, other: SkippedLines) -> None:
        """Add what another part left out, which comes after this one."""
        for reason, count in other.counts.items():
            self.counts[reason] = self.counts.get(reason, 0) + count
            self.lines[reason] = [*self.lines.get(reason, []), *other.lines[reason]][:LINES_PER_REASON]

    def sentence(self) -> str:
        """Return what was left out, in words."""
        if not self.counts:
            return say("No line was left out.")
        said = [
            say(
                "{count:,} {reason} (line {lines})",
                count=count,
                reason=say(reason),
                lines=self._format_first_line_numbers(reason),
            )
            for reason, count in self.counts.items()
        ]
        return say("Left out: {reasons}.", reasons="; ".join(said))

    def _format_first_line_numbers(self, reason: str) -> str:
        """The first lines of a reason, and whether there are more."""
        first = join_items(format_number(line, ",") for line in self.lines[reason])
        return f"{first} ..." if self.counts[reason] > len(self.lines[reason]) else first


@dataclass(frozen=True)
class Corpus:
    """A source file, and a target file unless the model is to translate, cut into parts."""

    source: Path
    target: Path | None
    size: int
    """Lines of a part; the last may have fewer."""
    lines: int
    offsets: tuple[tuple[int, ...], ...]
    """Where each part begins in each file, in bytes."""
    sha256: str
    """Of the lines that are used, both sides."""

    @classmethod
    def read(cls, source: Path, target: Path | None, size: int, most: int | None = None) -> Corpus:
        """Find the parts of the first `most` lines, or of all. Raises ValueError where there are none, and OSError."""
        digest, count, offsets = hashlib.sha256(), 0, []
        at = [0] * (1 if target is None else 2)
        for lines in islice(_read_parallel_lines(source, target, at), most):
            if count % size == 0:
                offsets.append(tuple(at))
            digest.update(b"\n".join(line or b"" for line in lines))
            at = [place + len(line or b"") for place, line in zip(at, lines, strict=True)]
            count += 1
        if not count:
            raise ValueError(say("{file} is empty: give a text with one sentence a line.", file=source))
        return cls(source, target, size, count, tuple(offsets), digest.hexdigest())

    def part(self, number: int) -> Iterator[tuple[int, tuple[bytes | None, ...]]]:
        """Yield the lines of a part, each with its number and its sides; None where a side has ended before."""
        first = number * self.size
        lines = _read_parallel_lines(self.source, self.target, self.offsets[number])
        yield from enumerate(islice(lines, min(self.size, self.lines - first)), first)


def read_usable_pairs(translator: RunnableModel, corpus: Corpus, number: int) -> tuple[list[CorpusPair], SkippedLines]:
    """Return what can be used of a part, in the order of the lines, and what cannot."""
    found, skipped = [], SkippedLines()
    for line, sides in corpus.part(number):
        pair = _parse_corpus_pair(translator, line, sides)
        if isinstance(pair, str):
            skipped.add(pair, line)
        else:
            found.append(pair)
    return found, skipped


def _parse_corpus_pair(translator: RunnableModel, line: int, sides: tuple[bytes | None, ...]) -> CorpusPair | str:
    """A usable line, or the reason why it is none."""
    languages = (str(translator.card.get(f"{side}_language", "")) for side in ("source", "target"))
    read: list[tuple[str, EncodedText]] = []
    for data, language, encode in zip(sides, languages, (translator.encode, translator.encode_target), strict=False):
        found = NO_COUNTERPART if data is None else _parse_corpus_side(data, language, encode, translator.max_length)
        if isinstance(found, str):
            return found
        read.append(found)
    (text, encoded), *other = read
    if translator.model.is_decoder_alone and len(encoded.ids) < 2:
        return LINE_TOO_SHORT  # nothing in it is predicted
    return CorpusPair(line, text, encoded, *(other[0] if other else ()))


def _parse_corpus_side(
    data: bytes, language: str, encode: Callable[[str], EncodedText], max_length: int
) -> tuple[str, EncodedText] | str:
    try:
        text = data.decode("utf-8").strip()
    except UnicodeDecodeError:
        return INVALID_UNICODE
    if not text:
        return EMPTY_LINE
    try:
        encoded = encode(text)
    except InputError:
        return LINE_TOO_LONG if len(data) >= max_length else EMPTY_LINE
    return OTHER_LANGUAGE if language and detect_foreign_language(text, language) else (text, encoded)


def _read_parallel_lines(
    source: Path, target: Path | None, offsets: Sequence[int]
) -> Iterator[tuple[bytes | None, ...]]:
    """The lines of one file or of two side by side, each from a place on."""
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("rb")) for path in (source, target) if path is not None]
        for file, offset in zip(files, offsets, strict=True):
            file.seek(offset)
        yield from zip_longest(*files)


# Merging the parts: tables are concatenated, sums added, costs resampled.


ROWS_A_FILE = 4_000_000
"""About how many links a file holds; a part is never split."""
ROWS_A_GROUP = 250_000
"""Rows that a query can skip or share among threads."""
COST_RESAMPLES, RESAMPLE_GROUPS, RESAMPLE_SEED = 1000, 20_000, 0
"""Draws of the bootstrap; the most groups that sentences are put into before drawing; the seed."""
CONFIDENCE_LEVEL = 0.95
COST_DIGITS = 3
"""Decimals of a sentence's cost in nats; more are noise that compresses badly."""
HEAD_COLUMNS = ["map", "layer", "head"]


def merge_atlas_parts(folder: Path, manifest: Manifest, parts: Sequence[Path]) -> Manifest:
    """Write the tables of a whole atlas and its manifest, and take the parts away. AtlasError names a damaged part."""
    reports = [json.loads(_require_readable(part / REPORT_FILE).read_text(encoding="utf-8")) for part in parts]
    shutil.rmtree(folder / LINKS_TABLE, ignore_errors=True)
    (folder / LINKS_TABLE).mkdir()
    for number, group in enumerate(_group_parts_by_link_count(parts, [report["links"] for report in reports])):
        _write_concatenated_tables(group, LINKS_TABLE, folder / LINKS_TABLE / f"{number:04}.parquet")
    for name in (SENTENCES_TABLE, COSTS_TABLE):
        _write_concatenated_tables(parts, name, folder / f"{name}.parquet")
    sums = _sum_tables(parts, PART_SUMS, ["half", *HEAD_COLUMNS, "measure"])
    tags = _sum_tables(parts, TAGS_TABLE, [*HEAD_COLUMNS, "query_tag", "key_tag"])
    costs = (
        bootstrap_cost_intervals(parts)
        if manifest.plan.costs
        else pd.DataFrame(columns=[*HEAD_COLUMNS, "cost_low", "cost_high"])
    )
    tables = {
        HEADS_TABLE: build_heads_table(sums.drop(columns="half"), []).merge(costs, "left", HEAD_COLUMNS),
        HALVES_TABLE: build_heads_table(sums, ["half"]),
        TAGS_TABLE: tags[tags["even"] > 0],  # the pairs that may attend
    }
    for name, table in tables.items():
        _write_parquet(pa.Table.from_pandas(table, preserve_index=False), folder / f"{name}.parquet")
    skipped = SkippedLines()
    for report in reports:
        skipped.merge(SkippedLines(**report["skipped"]))
    names = [f"{name}.parquet" for name in SINGLE_FILE_TABLES]
    names += [f"{LINKS_TABLE}/{one.name}" for one in sorted((folder / LINKS_TABLE).iterdir())]
    found = dataclasses.replace(
        manifest,
        complete=True,
        **{name: sum(report[name] for report in reports) for name in ("sentences", "links", "tokens", "seconds")},
        skipped=skipped.counts,
        skipped_lines=skipped.lines,
        repeats=reports[0]["repeats"],
        files={name: (folder / name).stat().st_size for name in names},
    )
    found.write(folder)
    shutil.rmtree(folder / PARTS_FOLDER)
    return found


def build_heads_table(sums: pd.DataFrame, more: list[str]) -> pd.DataFrame:
    """Return a row a head (and a value of the columns `more`), a column a measure: means over the rows that count."""
    by = [*more, *HEAD_COLUMNS]
    added = sums.groupby([*by, "measure"], sort=False)[["total", "rows"]].sum()
    means = (added["total"] / added["rows"].where(added["rows"] > 0)).unstack("measure")
    rows = added["rows"].unstack("measure")
    for place in PLACES:
        means[f"{place}{HAS_SUFFIX}"] = rows[place] / rows["top"] if place in rows else 0.0
    places = [f"{place}{end}" for end in (HELD_SUFFIX, EVEN_SUFFIX, HAS_SUFFIX) for place in PLACES]
    places += [f"{place}{REPEATED_SUFFIX}{end}" for end in (HELD_SUFFIX, EVEN_SUFFIX) for place in REPEATED_PLACES]
    columns = [name for name in (*MEASURE_EXPLANATIONS, *places) if name in means]
    found = means[columns].reset_index()
    order = found["map"].map({kind: at for at, kind in enumerate(KINDS)})
    found = found.assign(order=order).sort_values([*more, "order", "layer", "head"], kind="stable")
    return found.drop(columns="order").reset_index(drop=True)


def bootstrap_cost_intervals(parts: Sequence[Path]) -> pd.DataFrame:
    """The interval of each head's cost: sentences drawn with replacement, 1,000 times (Efron 1979), percentiles.

    The cost is a mean over tokens, so each draw is a ratio of sums over its sentences. The columns
    are map, layer, head, cost_low and cost_high.
    """
    totals = []
    for part in parts:
        costs = pd.read_parquet(_require_readable(part / f"{COSTS_TABLE}.parquet"))
        costs["group"] = costs["sentence"] % RESAMPLE_GROUPS
        totals.append(
            costs.groupby(["group", *HEAD_COLUMNS], sort=False)[[COST_MEASURE, "tokens"]].sum().astype("float64")
        )
    joined = pd.concat(totals).groupby(level=["group", *HEAD_COLUMNS], sort=False).sum()
    cost, tokens = (joined[name].unstack("group").fillna(0.0) for name in (COST_MEASURE, "tokens"))
    random = np.random.default_rng(RESAMPLE_SEED)
    count = cost.shape[1]
    draws = np.stack(
        [np.bincount(random.integers(count, size=count), minlength=count) for _ in range(COST_RESAMPLES)], 1
    ).astype(np.float64)
    means = (cost.to_numpy() @ draws) / (tokens.to_numpy()[:1] @ draws)
    low, high = np.quantile(means, [(1 - CONFIDENCE_LEVEL) / 2, (1 + CONFIDENCE_LEVEL) / 2], axis=1)
    return cost.index.to_frame(index=False).assign(cost_low=low, cost_high=high)


def _sum_tables(parts: Sequence[Path], name: str, by: list[str]) -> pd.DataFrame:
    """A table of sums, those of all parts added in their order."""
    found: pd.DataFrame | None = None
    for part in parts:
        own = pd.read_parquet(_require_readable(part / f"{name}.parquet"))
        both = own if found is None else pd.concat([found, own])
        found = both.groupby(by, sort=False, as_index=False).sum()
    assert found is not None
    return found


def _write_concatenated_tables(parts: Sequence[Path], name: str, path: Path) -> None:
    """Write the same table of several parts as one file."""
    tables = [pq.read_table(_require_readable(part / f"{name}.parquet")) for part in parts]
    joined = pa.concat_tables(tables).unify_dictionaries()
    for column in (COST_MEASURE, "token_cost") if name == COSTS_TABLE else ():
        place = joined.schema.get_field_index(column)
        joined = joined.set_column(place, column, pc.round(joined[column], COST_DIGITS).cast(pa.float32()))
    _write_parquet(joined, path)


def _write_parquet(table: pa.Table, path: Path) -> None:
    plain = [one.name for one in table.schema if pa.types.is_dictionary(one.type)]
    # Strings stay dictionary-encoded in the file whatever they are called in memory.
    for name in plain:
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table[name].cast(pa.string()))
    pq.write_table(table, path, compression="zstd", compression_level=9, row_group_size=ROWS_A_GROUP)


def _group_parts_by_link_count(parts: Sequence[Path], links: Sequence[int]) -> Iterator[list[Path]]:
    """Yield runs of parts that together have about ROWS_A_FILE links."""
    group: list[Path] = []
    count = 0
    for part, number in zip(parts, links, strict=True):
        if group and count + number > ROWS_A_FILE:
            yield group
            group, count = [], 0
        group.append(part)
        count += number
    if group:
        yield group


def _require_readable(path: Path) -> Path:
    """The path of a readable file of a part. AtlasError names one that is damaged."""
    try:
        if path.suffix == ".parquet":
            pq.read_metadata(path)
        elif not path.is_file():
            raise FileNotFoundError(path)
    except (OSError, pa.ArrowException) as error:
        raise AtlasError(
            say(
                "{path} is damaged ({error}): remove the folder {folder}, and the same command makes this part again.",
                path=path,
                error=type(error).__name__,
                folder=path.parent,
            )
        ) from error
    return path


# Random tokens that are repeated, on which heads of a decoder alone are measured beside a corpus.
#
# Nothing but repetition tells what comes next, so that a head which looks where a token stood before, or at what
# followed it, does so by induction. As in Olsson et al. (2022), "In-context Learning and Induction Heads", 25 tokens
# stand four times in a row behind what the tokenizer begins every text with. They are drawn from all tokens that stand
# for text; the paper leaves out the most and the least common ones.


SEED = 0


class Repeats(NamedTuple):
    """How many sequences there are, of how many random tokens, and how often these stand in a row."""

    sequences: int = 50
    tokens: int = 25
    times: int = 4


def plan_repeated_sequences(model: RunnableModel) -> Repeats | None:
    """Return what a model reads of repeated tokens, fewer where it has not so many; None where they are one or none."""
    wanted = Repeats()
    room = model.max_length - len(_find_start_token_ids(model)) - 1
    tokens = min(wanted.tokens, room // wanted.times, len(_sample_text_token_ids(model, wanted.tokens, SEED)))
    return wanted._replace(tokens=tokens) if tokens > 1 else None


def make_repeated_sequences(model: RunnableModel, repeats: Repeats) -> list[Sentence]:
    """Return the sequences, drawn from the vocabulary the same way every time; their numbers count from 0.

    The token that is predicted last is the first once more, so that all repetitions are fed in.
    """
    found = []
    for number in range(repeats.sequences):
        drawn = _sample_text_token_ids(model, repeats.tokens, SEED + number)
        ids = [*_find_start_token_ids(model), *drawn * repeats.times, drawn[0]]
        whole = tag_parts_of_speech([model.tokenizer.token(one) for one in ids], "")
        found.append(Sentence.from_decoder_only_text(number, "", ids, whole))
    return found


def _sample_text_token_ids(model: RunnableModel, count: int, seed: int) -> list[int]:
    """So many ids, or as many as there are, of tokens that stand for some text and are written in different ways."""
    tokenizer = model.tokenizer
    found: dict[str, int] = {}
    for one in np.random.default_rng(seed).permutation(len(tokenizer)).tolist():
        if len(found) == count:
            break
        if _is_text(model, one):
            found.setdefault(tokenizer.token(one), one)
    return list(found.values())


def _find_start_token_ids(model: RunnableModel) -> list[int]:
    """The ids of the special tokens that every text begins with; often one, or none."""
    return list(takewhile(lambda one: not _is_text(model, one), model.tokenizer.encode("a").ids))


def _is_text(model: RunnableModel, token_id: int) -> bool:
    """Whether a token stands for whole characters, one of which is no space."""
    text = model.tokenizer.decode([token_id])
    return text.strip() != "" and "\ufffd" not in text
