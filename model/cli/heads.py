"""The commands `atlas`, `heads`, `align`, `prune` and `timeline`, which measure and search attention heads."""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Hashable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from tqdm import tqdm

from ..analysis.heads import head_name
from ..atlas.build import LINES_A_PART, Corpus, SkippedLines, WorkerShare, build_atlas
from ..atlas.files import Manifest
from ..atlas.heads_over_training import TIMELINE_FILE, Timeline, TimelineError, measure_timeline
from ..atlas.pruning import PRUNING_FILE, Pruning, choose_head_counts, measure_pruning, order_heads_by_cost
from ..atlas.query import (
    Atlas,
    SearchResult,
    open_atlas,
    parse_question,
    released_atlas_folder,
    sample_example_links,
    search_atlas,
)
from ..atlas.teacher_forced_batches import PLACE_NAMES
from ..checkpoint.load import (
    WEIGHTS_FILE,
    find_checkpoint_folder,
    load_checkpoint,
    read_checkpoint_config,
    read_verified_file,
    sha256_hex,
)
from ..checkpoint.snapshots import list_snapshot_steps
from ..devices import choose_device
from ..experiments.lens import load_training_snapshots
from ..language import format_number, join_items, say
from ..runnable_model import InputError, RunnableModel
from ..text.parts_of_speech import TAGGER_MODELS
from ..translate import Translator
from ..user_model import load_user_model
from ..word_alignment.gold import GoldError, find_bundled_gold_folder, read_gold
from ..word_alignment.measure import ALIGNMENT_FILE, AlignmentRate, AlignmentRates, measure_alignment
from .translate_and_evaluate import (
    add_checkpoint_and_device_arguments,
    add_checkpoint_argument,
    check_writable,
    format_table,
    read_lines,
)

# `python -m model atlas`: what every head does over a whole corpus, written as Parquet.


def add_atlas_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_and_device_arguments(parser)
    parser.add_argument("--model", metavar="hf:FOLDER", help=say("a folder of Hugging Face instead of a checkpoint"))
    parser.add_argument("--source", type=Path, required=True, help=say("one sentence a line"))
    parser.add_argument("--target", type=Path, help=say("translations, line by line (default: the model translates)"))
    parser.add_argument("--sentences", type=_parse_positive, metavar="N", help=say("only the first N lines"))
    parser.add_argument("--output", type=Path, required=True, help=say("the folder of the atlas"))
    parser.add_argument(
        "--part",
        type=_parse_positive,
        default=LINES_A_PART,
        metavar="LINES",
        help=say("lines that are written together, by one process (default {lines})", lines=LINES_A_PART),
    )
    parser.add_argument(
        "--no-costs", action="store_true", help=say("do not switch off every head: most of the time is spent on that")
    )
    parser.add_argument(
        "--least-weight", type=float, default=0.0, metavar="W", help=say("keep no link below this weight")
    )
    parser.add_argument("--licence", default="", metavar="TEXT", help=say("the corpus's licence and whom to name"))


def run_atlas(arguments: argparse.Namespace) -> int:
    """Build an atlas, or go on with one that was begun."""
    share = WorkerShare.from_environment()
    for path in (arguments.source, arguments.target):
        if path is not None and not path.is_file():
            raise ValueError(say("There is no file {path}: give a text with one sentence a line.", path=path))
    if not 0 <= arguments.least_weight < 1:
        raise ValueError(
            say("--least-weight is a weight from 0 to 1, not {least_weight}.", least_weight=arguments.least_weight)
        )
    translator = _load_model(arguments)
    corpus = Corpus.read(arguments.source, arguments.target, arguments.part, arguments.sentences)
    first = share.rank == 0
    if first and (missing := _describe_languages_without_tagger(translator)):
        print(missing)
    # Of the corpus each process has its share; the bar of the first shows its own.
    own = sum(
        min(corpus.size, corpus.lines - at)
        for at in range(share.rank * corpus.size, corpus.lines, share.world * corpus.size)
    )
    with tqdm(total=own, unit=f" {say('lines')}", disable=not first) as bar:
        found = build_atlas(
            translator,
            corpus,
            arguments.output,
            costs=not arguments.no_costs,
            least_weight=arguments.least_weight,
            licence=arguments.licence,
            share=share,
            on_progress=bar.update,
        )
    if found is not None:
        print(describe_atlas(found, arguments.output))
    return 0


def describe_atlas(found: Manifest, folder: Path) -> str:
    """Return what an atlas holds, in words."""
    size = sum(found.files.values()) / 1e6
    speed = found.sentences / max(found.seconds, 1e-9)
    held = say(
        "{sentences:,} sentences, {links:,} links, {size:.1f} MB in {folder}; {speed:.1f} sentences a second and "
        "process.",
        sentences=found.sentences,
        links=found.links,
        size=size,
        folder=folder,
        speed=speed,
    )
    return f"{SkippedLines(found.skipped, found.skipped_lines).sentence()}\n{held}"


def _load_model(arguments: argparse.Namespace) -> RunnableModel:
    """Load the checkpoint, or the model that writes which ``--model`` names."""
    if not arguments.model:
        return Translator.load(arguments.checkpoint, _choose_device(arguments.device))
    found = load_user_model(arguments.model)
    if not (isinstance(found, RunnableModel) and found.can("atlas")):
        raise ValueError(say("{model} writes no text, so it has no atlas.", model=found.name))
    if found.model.is_decoder_alone and arguments.target is not None:
        raise ValueError(say("{model} is a decoder alone, which reads one text: leave out --target.", model=found.name))
    return found


def _choose_device(name: str | None) -> torch.device:
    """The device asked for; on a machine with several GPUs each process of torchrun has its own."""
    device = choose_device(name)
    if device == torch.device("cuda") and "LOCAL_RANK" in os.environ:
        return choose_device(f"cuda:{os.environ['LOCAL_RANK']}")
    return device


def _describe_languages_without_tagger(translator: RunnableModel) -> str:
    """Return which languages of the model have no tagger, in words; "" where both have one.

    That of a decoder alone is guessed from its texts.
    """
    if translator.model.is_decoder_alone:
        return ""
    languages = {str(translator.card.get(f"{side}_language", "")) for side in ("source", "target")}
    missing = sorted(
        one or say("a language that the model card does not name") for one in languages - set(TAGGER_MODELS)
    )
    if not missing:
        return ""
    return say(
        "Parts of speech are known for these languages alone: {known}; none for {missing}.",
        known=join_items(sorted(TAGGER_MODELS)),
        missing=join_items(missing),
    )


def _parse_positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(say("{text} is not a number above 0", text=text))
    return value


# `python -m model heads`: what an atlas says of a model's heads, and where they do what one asks for.


EXAMPLES_SHOWN = 20
"""Heads and sentences printed without --json."""


def add_heads_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_argument(parser)
    parser.add_argument(
        "--atlas", type=Path, metavar="FOLDER", help=say("an atlas of your own (default: the released one)")
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--find", metavar="QUESTION", help=say('such as "pos=NOUN -> pos=DET distance=-1 map=encoder"'))
    what.add_argument("--measures", action="store_true", help=say("every measure of every head, with its label"))
    parser.add_argument("--json", action="store_true", help=say("print one JSON object; layers and heads count from 0"))


def run_heads(arguments: argparse.Namespace) -> int:
    """Print every measure of every head, or the answer to a question."""
    folder = find_checkpoint_folder(arguments.checkpoint)
    model_hash = sha256_hex(read_verified_file(folder, WEIGHTS_FILE, read_checkpoint_config(folder)))[:12]
    atlas = open_atlas(arguments.atlas or released_atlas_folder(arguments.checkpoint), folder.name, model_hash)
    if arguments.measures:
        print(
            json.dumps(build_head_measures_json(atlas), ensure_ascii=False)
            if arguments.json
            else _format_measures_table(atlas)
        )
        return 0
    found = search_atlas(atlas, parse_question(arguments.find))
    shown = sample_example_links(atlas, found.question)
    if arguments.json:
        print(json.dumps(_convert_search_result_to_dict(found, shown), ensure_ascii=False))
        return 0
    print(f"{found.question.words}\n{found.sentence}\n")
    heads = [_format_head_hit_row(one) for one in found.heads[:EXAMPLES_SHOWN].to_dict("records")]
    lines = [_format_attention_link_row(one) for one in shown[:EXAMPLES_SHOWN].to_dict("records")]
    print("\n".join(f"  {line}" for line in (*format_table(heads), *format_table(lines, texts=3))))
    return 0


def build_head_measures_json(atlas: Atlas) -> dict[str, Any]:
    """Return what the corpus was, and a list of heads with their labels and measures; null where one has none."""
    rows = json.loads(atlas.heads.to_json(orient="records"))
    heads = [row | {"label": atlas.label(head).text} for head, row in zip(atlas.names, rows, strict=True)]
    manifest = atlas.manifest
    plan = {"model": manifest.plan.model, "model_hash": manifest.plan.model_hash, "source": manifest.plan.source}
    return {**plan, "licence": manifest.licence, "sentences": manifest.sentences, "heads": heads}


def _convert_search_result_to_dict(found: SearchResult, shown: pd.DataFrame) -> dict[str, Any]:
    facts = {"question": found.question.text, "words": found.question.words, "sentence": found.sentence}
    heads = json.loads(found.heads.to_json(orient="records"))
    links = json.loads(shown.to_json(orient="records"))
    return {**facts, "hits": found.hits, "links": found.links, "heads": heads, "examples": links}


def _format_head_hit_row(one: Mapping[Hashable, Any]) -> list[str]:
    """A head with how often it does what was asked for."""
    hits = say("{hits:,} of {links:,}", hits=one["hits"], links=one["links"])
    return [_row_head_name(one), hits, format_number(one["share"], ".1%"), say("lift {lift:.2f}", lift=one["lift"])]


def _format_attention_link_row(one: Mapping[Hashable, Any]) -> list[str]:
    """A link of a sentence."""
    line = say("line {line}", line=one["sentence"] + 1)
    return [line, _row_head_name(one), f"{one['query_word']} -> {one['key_word']}", format_number(one["weight"], ".2f")]


def _row_head_name(one: Mapping[Hashable, Any]) -> str:
    return head_name((one["map"], one["layer"], one["head"]))


def _format_measures_table(atlas: Atlas) -> str:
    shown = [name for name in ("cost", "entropy", "distance", "top") if name in atlas.heads]
    rows = [[say("head"), say("label"), *shown]]
    for head, row in zip(atlas.names, atlas.heads[shown].to_dict("records"), strict=True):
        rows.append([head_name(head), atlas.label(head).text, *(format_number(row[name], ".4f") for name in shown)])
    return "\n".join(format_table(rows, texts=2))


# `python -m model align`: the alignment error rate of every cross-attention head.


ALIGNMENTS_SHOWN = 10
"""Heads printed without --json."""


def add_align_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_and_device_arguments(parser)
    parser.add_argument(
        "--gold",
        type=Path,
        metavar="FOLDER",
        help=say("with source.txt, target.txt and links.txt (default: the released one of the model's languages)"),
    )
    parser.add_argument("--tokenized", action="store_true", help=say("words of the gold are parted by spaces"))
    parser.add_argument("--json", action="store_true", help=say("print one JSON object; layers and heads count from 0"))


def run_align(arguments: argparse.Namespace) -> int:
    """Measure, print, and keep the file beside the checkpoint."""
    folder = find_checkpoint_folder(arguments.checkpoint)
    check_writable(folder / ALIGNMENT_FILE)
    translator = Translator.load(arguments.checkpoint, choose_device(arguments.device))
    source, target = (str(translator.card.get(f"{side}_language", "")) for side in ("source", "target"))
    place = arguments.gold or find_bundled_gold_folder(source, target)
    if place is None:
        raise GoldError(
            say(
                "No gold alignment of {language} and {other} comes with the project: give one by --gold.",
                language=source,
                other=target,
            )
        )
    gold = read_gold(place, arguments.tokenized)
    with tqdm(total=len(gold.pairs), unit=f" {say('pairs')}", disable=arguments.json) as bar:
        found = measure_alignment(translator, gold, bar.update)
    found.write(folder)
    print(json.dumps(asdict(found), ensure_ascii=False) if arguments.json else describe_alignment(found))
    return 0


def describe_alignment(found: AlignmentRates) -> str:
    """Return the best heads and the means as a table for people."""
    heads = sorted((one for one in found.rates if one.part == "head"), key=lambda one: one.aer)
    facts = {"model": found.model, "pairs": found.pairs, "gold": found.gold}
    links = {"sure": found.sure, "possible": found.possible}
    said = (
        say(
            "{model} on {pairs} pairs of {gold}, {left_out} left out: {sure:,} sure links, {possible:,} possible",
            **facts,
            **links,
            left_out=found.left_out,
        )
        if found.left_out
        else say("{model} on {pairs} pairs of {gold}: {sure:,} sure links, {possible:,} possible", **facts, **links)
    )
    rows = [
        ["", say("AER"), "(95%)", say("link precision"), say("link recall")],
        *(
            _format_alignment_rate_row(one)
            for one in (*heads[:ALIGNMENTS_SHOWN], found.best("layer"), found.best("all"))
        ),
        [say("diagonal"), _format_rate(found.diagonal), "", "", ""],
        [say("best head, held out"), _format_rate(found.held_out), "", "", ""],
    ]
    return "\n".join([said, *(f"  {line}" for line in format_table(rows))])


def _format_alignment_rate_row(one: AlignmentRate) -> list[str]:
    names = {
        "head": say("head {place}", place=f"{one.layer + 1}.{one.head + 1}"),
        "layer": say("mean of layer {layer}", layer=one.layer + 1),
        "all": say("mean of all"),
    }
    bounds = say("({low:.1%} to {high:.1%})", low=one.low, high=one.high)
    name = f"{names[one.part]}, {one.reading}"
    return [
        name,
        _format_rate(one.aer),
        bounds,
        _format_rate(one.precision),
        _format_rate(one.recall),
    ]


def _format_rate(value: float) -> str:
    return "–" if math.isnan(value) else format_number(value, ".1%")


# `python -m model prune`: what is left of the translations as heads are taken away.


def add_prune_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_and_device_arguments(parser)
    parser.add_argument("--source", type=Path, required=True, help=say("one sentence a line"))
    parser.add_argument("--target", type=Path, required=True, help=say("their references, line by line"))
    parser.add_argument(
        "--atlas", type=Path, metavar="FOLDER", help=say("where costs are read (default: the released one)")
    )
    parser.add_argument("--skip", type=int, default=0, metavar="N", help=say("leave out the first N lines"))
    parser.add_argument(
        "--sentences",
        type=int,
        default=500,
        metavar="N",
        help=say("lines that are used (default {default})", default=500),
    )
    parser.add_argument("--points", type=int, default=13, metavar="N", help=say("numbers of heads, both ends included"))
    parser.add_argument(
        "--orders", type=int, default=5, metavar="N", help=say("random orders (default {default})", default=5)
    )


def run_prune(arguments: argparse.Namespace) -> int:
    """Measure, print a table, and keep the file beside the checkpoint."""
    if min(arguments.skip, arguments.orders - 1, arguments.sentences - 1, arguments.points - 2) < 0:
        raise ValueError(say("--skip is 0 or more, --orders and --sentences 1 or more, --points 2 or more."))
    folder = find_checkpoint_folder(arguments.checkpoint)
    check_writable(folder / PRUNING_FILE)
    translator = Translator.load(arguments.checkpoint, choose_device(arguments.device))
    place = arguments.atlas or released_atlas_folder(arguments.checkpoint)
    order = order_heads_by_cost(open_atlas(place, folder.name, translator.checkpoint.hash))
    sides = [read_lines(path)[arguments.skip :][: arguments.sentences] for path in (arguments.source, arguments.target)]
    if len(sides[0]) != len(sides[1]) or not sides[0]:
        raise ValueError(
            say(
                "From line {line} on there are {sources} sources and {references} references; there must be as many of "
                "both, and one at least.",
                line=arguments.skip + 1,
                sources=len(sides[0]),
                references=len(sides[1]),
            )
        )
    check_sentences_fit_model(translator, sides[0], arguments.skip + 1)
    models = (arguments.orders + 1) * (len(choose_head_counts(len(order), arguments.points)) - 2) + 2
    with tqdm(total=models, unit=f" {say('models')}") as bar:
        found = measure_pruning(
            translator,
            list(zip(*sides, strict=True)),
            order,
            source=arguments.source.name,
            first_line=arguments.skip + 1,
            random_orders=arguments.orders,
            count=arguments.points,
            on_progress=bar.update,
        )
    found.write(folder)
    print(describe_pruning(found))
    return 0


def check_sentences_fit_model(translator: Translator, sentences: list[str], first_line: int) -> None:
    """Raise InputError, naming the line, for a sentence that the model cannot read."""
    for line, sentence in enumerate(sentences, first_line):
        try:
            translator.encode(sentence)
        except InputError as error:
            raise InputError(say("Line {line}: {error}", line=line, error=error)) from error


def describe_pruning(found: Pruning) -> str:
    """Return the curves as a table for people."""
    said = say(
        "{model} on {sentences:,} sentences of {source}, from line {line:,} on",
        model=found.model,
        sentences=found.sentences,
        source=found.source,
        line=found.first_line,
    )
    rows = [[say("heads left"), say("by cost: BLEU"), "log p", say("at random: BLEU (least to most)")]]
    for at, heads in enumerate(found.left):
        bleu = [one.bleu[at] for one in found.random]
        own = found.by_cost
        ends = say("{least:.1f} to {most:.1f}", least=min(bleu), most=max(bleu))
        rows.append([str(heads), format_number(own.bleu[at], ".1f"), format_number(own.log_prob[at], ".2f"), ends])
    return "\n".join([said, *format_table(rows, texts=0), found.signature])


# `python -m model timeline`: every head measured at each snapshot of a training.


def add_timeline_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_and_device_arguments(parser)
    parser.add_argument("--source", type=Path, required=True, help=say("one sentence a line"))
    parser.add_argument("--target", type=Path, required=True, help=say("their translations, line by line"))
    parser.add_argument(
        "--sentences",
        type=int,
        default=500,
        metavar="N",
        help=say("lines that are used (default {default})", default=500),
    )
    parser.add_argument(
        "--costs", action="store_true", help=say("switch off every head too, which takes most of the time")
    )


def run_timeline(arguments: argparse.Namespace) -> int:
    """Measure, print how many heads carry each label, and keep the file beside the checkpoint."""
    folder = find_checkpoint_folder(arguments.checkpoint)
    check_writable(folder / TIMELINE_FILE)
    if arguments.sentences < 1:
        raise ValueError(say("--sentences is a number above 0, not {sentences}.", sentences=arguments.sentences))
    if not list_snapshot_steps(folder):
        raise TimelineError(
            say(
                "No snapshots of {folder} are here: train with `snapshots` in its recipe, or take its folder from the "
                "project.",
                folder=folder.name,
            )
        )
    checkpoint = load_checkpoint(arguments.checkpoint, choose_device(arguments.device))
    corpus = Corpus.read(arguments.source, arguments.target, LINES_A_PART, arguments.sentences)
    stops = load_training_snapshots(checkpoint, folder)
    with tqdm(total=len(stops), unit=f" {say('snapshots')}") as bar:
        found = measure_timeline(stops, corpus, arguments.costs, bar.update)
    found.write(folder)
    print(describe_timeline(found))
    return 0


def describe_timeline(found: Timeline) -> str:
    """Return how many heads carry each label at each stop, as a table for people."""
    names = [say("released") if step is None else format_number(step, ",") for step in found.steps]
    counts = {name: found.count_labelled_heads(place) for place, name in PLACE_NAMES.items()}
    said = say(
        "{model}: heads by label on {sentences:,} sentences of {source}",
        model=found.model,
        sentences=found.sentences,
        source=found.source,
    )
    rows = [[say(name), *map(str, row)] for name, row in counts.items() if any(row)]
    return "\n".join([said, *format_table([[say("step"), *names], *rows])])
