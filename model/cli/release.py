"""`python -m model release`: measure again all that hangs on a checkpoint's weights, as it was measured before."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..atlas.folder import FORMAT, MANIFEST
from ..checkpoint.bleu_scores import Score, read_scores
from ..checkpoint.files import WEIGHTS, folder_of, read_facts, sha256
from ..checkpoint.snapshots import had_random_start, snapshot_steps
from ..devices import chosen_device
from ..evaluation import attribution_scores, eight_bits, familiarity
from ..heads import pruning_curves, timeline_table
from ..heads.atlas import released_atlas
from ..language.say import say
from ..training.data import read_pairs
from ..translate import Translator
from ..word_alignment import rates
from . import align as align_command
from . import atlas as atlas_command
from . import prune as prune_command
from . import timeline as timeline_command
from . import use, why
from .writable import check_writable

Words = list[str]
"""The words of one command, without `python -m model`."""
COMMANDS: dict[str, tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int]]] = {
    "evaluate": (use.add_evaluate, use.evaluate),
    "quality": (use.add_quality, use.quality),
    "atlas": (atlas_command.add_arguments, atlas_command.run),
    "prune": (prune_command.add_arguments, prune_command.run),
    "align": (align_command.add_arguments, align_command.run),
    "attribution": (why.add_measure, why.run_measure),
    "familiarity": (use.add_familiarity, use.familiarity),
    "timeline": (timeline_command.add_arguments, timeline_command.run),
}
ROOT = Path(__file__).resolve().parents[2]
CLAIMS = (
    "model/checkpoint/test_released_cards.py",
    "model/evaluation",
    "model/heads",
    "model/word_alignment",
    "viz/engine/test_int8_bleu.py",
    "viz/explore/live/test_examples.py",
    "viz/talk",
    "viz/training/test_page.py",
)
"""The tests that hold what is said of released models, below tests/."""


class Text(NamedTuple):
    """One of the texts of a data folder."""

    folder: Path
    split: str
    source_language: str
    target_language: str

    @property
    def source(self) -> Path:
        return self.folder / f"{self.split}.{self.source_language}"

    @property
    def target(self) -> Path:
        return self.folder / f"{self.split}.{self.target_language}"


class Release(NamedTuple):
    """A checkpoint that is measured again."""

    folder: Path
    hash: str
    data: Sequence[Text]
    """The first is what everything but scores is measured on."""
    device: str | None

    def text(self, name: str) -> Text | None:
        """The text that scores are called by: "Tatoeba dev" is dev of a folder tatoeba. None where it is not given."""
        *words, split = name.casefold().split()
        found = (text for word in reversed(words) for text in self.data if text.folder.name.casefold() == word)
        return next((text._replace(split=split) for text in found), None)

    def kept(self, file: str) -> dict[str, Any]:
        """What a JSON file in the folder holds; nothing where there is none."""
        path = self.folder / file
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}

    def is_of_others(self, file: str) -> bool:
        """Whether a file is there that was measured of other weights."""
        found = self.kept(file)
        return bool(found) and found.get("plan", found).get("model_hash") != self.hash

    def command(self, name: str, *words: object) -> Words:
        device = ["--device", self.device] if self.device else []
        return [name, "--checkpoint", str(self.folder), *device, *map(str, words)]


def scores(one: Release) -> Iterator[Words]:
    """Every score that is kept, and on the first text the greedy one of each snapshot."""
    kept = read_scores(one.folder)
    for score in kept:
        if score.step is None:
            yield from _score(one, score, None)
    greedy = next((score for score in kept if score.beam == 1 and score.step is None and one.text(score.set)), None)
    steps = snapshot_steps(one.folder)
    for step in ((0,) if steps and had_random_start(one.folder) else ()) + steps:
        if greedy:
            yield from _score(one, greedy, step)


def _score(one: Release, score: Score, step: int | None) -> Iterator[Words]:
    text = one.text(score.set)
    if text is None:
        print(say("No folder of --data is the text of {set}: its score stays.", set=score.set))
        return
    words = ["--source", text.source, "--reference", text.target, "--beam", score.beam, "--keep", score.set]
    words += ["--tokenized"] if score.protocol == "tokenized" else []
    yield one.command("evaluate", *words, *(["--step", step] if step is not None else []))


def quality(one: Release) -> Iterator[Words]:
    yield one.command("quality")


def atlas(one: Release) -> Iterator[Words]:
    """Built beside the old one, which makes room for it when it is whole."""
    place = released_atlas(one.folder)
    if not one.is_of_others(f"{place.name}/{MANIFEST}"):
        return
    found, built = one.kept(f"{place.name}/{MANIFEST}"), place.with_name("atlas.new")
    begun = one.kept(f"{built.name}/{MANIFEST}")
    if begun and (begun.get("format"), begun["plan"]["model_hash"]) != (FORMAT, one.hash):
        shutil.rmtree(built)  # of a release that was given up
    plan, text = found["plan"], one.data[0]
    words = ["--source", text.source, "--target", text.target, "--sentences", plan["lines"], "--output", built]
    words += ["--part", plan["lines_a_part"], "--least-weight", plan["least_weight"], "--licence", found["licence"]]
    yield one.command("atlas", *words, *([] if plan["costs"] else ["--no-costs"]))
    shutil.rmtree(place)
    built.rename(place)


def prune(one: Release) -> Iterator[Words]:
    found, text = one.kept(pruning_curves.FILE), one.data[0]
    if one.is_of_others(pruning_curves.FILE):
        words = ["--source", text.source, "--target", text.target, "--skip", found["first_line"] - 1]
        words += ["--sentences", found["sentences"], "--points", len(found["left"]), "--orders", len(found["random"])]
        yield one.command("prune", *words)


def align(one: Release) -> Iterator[Words]:
    if one.is_of_others(rates.FILE):
        yield one.command("align")


def attribution(one: Release) -> Iterator[Words]:
    yield from _on_first_text(one, "attribution", attribution_scores.FILE)


def familiar(one: Release) -> Iterator[Words]:
    yield from _on_first_text(one, "familiarity", familiarity.FILE)


def _on_first_text(one: Release, name: str, file: str) -> Iterator[Words]:
    found, text = one.kept(file), one.data[0]
    if one.is_of_others(file):
        words = ["--data", text.folder, "--split", text.split, "--set", found["set"]]
        yield one.command(name, *words, "--sentences", found["sentences"])


def timeline(one: Release) -> Iterator[Words]:
    found, text = one.kept(timeline_table.FILE), one.data[0]
    if snapshot_steps(one.folder) and (not found or one.is_of_others(timeline_table.FILE)):
        words = ["--source", text.source, "--target", text.target, "--sentences", found.get("sentences", 500)]
        yield one.command("timeline", *words, *(["--costs"] if "cost" in found.get("heads", ()) else []))


def in_8_bits(one: Release) -> Iterator[Words]:
    """No command of its own: what 8 bits lose is measured at a release alone."""
    text = one.data[0]
    if one.is_of_others(eight_bits.FILE) or not one.kept(eight_bits.FILE):
        translator = Translator.load(one.folder, chosen_device(one.device))
        pairs = read_pairs([text.folder], text.source_language, text.target_language, text.split)
        found = eight_bits.measure(translator, pairs, f"{text.folder.name}/{text.source.name}")
        eight_bits.write(one.folder, found)
        print(say("BLEU {half:.2f}, in 8 bits {int8:.2f}", half=found.half, int8=found.int8))
    yield from ()


PARTS: dict[str, Callable[[Release], Iterator[Words]]] = {
    "scores": scores,
    "quality": quality,
    "atlas": atlas,
    "prune": prune,
    "align": align,
    "attribution": attribution,
    "familiarity": familiar,
    "timeline": timeline,
    "int8": in_8_bits,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", help=say("name below checkpoints/ or a folder"))
    parser.add_argument(
        "--data",
        type=Path,
        nargs="+",
        required=True,
        help=say("data folders; everything but scores is measured on the first one"),
    )
    parser.add_argument("--split", default="dev", help=say("the text to measure on: SPLIT.en, SPLIT.de (default dev)"))
    parser.add_argument("--only", choices=[*PARTS, "claims"], nargs="+", help=say("these parts alone"))
    parser.add_argument("--device", help=say("cpu or cuda (default: the GPU when there is one)"))


def run(arguments: argparse.Namespace) -> int:
    """Run every part, then the tests that hold what is said of released models.

    What was already measured of these weights is left as it is, so that the same command goes on where it ended.
    """
    folder = folder_of(arguments.checkpoint)
    check_writable(folder / eight_bits.FILE)
    card = read_facts(folder)["card"]
    languages = (str(card.get("source_language", "")), str(card.get("target_language", "")))
    texts = [Text(one, arguments.split, *languages) for one in arguments.data]
    one = Release(folder, sha256((folder / WEIGHTS).read_bytes())[:12], texts, arguments.device)
    asked = arguments.only or [*PARTS, "claims"]
    for name in (name for name in PARTS if name in asked):
        print(f"== {name}", flush=True)
        for words in PARTS[name](one):
            if code := _command(words):
                return code
    return _claims() if "claims" in asked else 0


def _command(words: Words) -> int:
    add_arguments, run = COMMANDS[words[0]]
    parser = argparse.ArgumentParser(prog=words[0])
    add_arguments(parser)
    return run(parser.parse_args(words[1:]))


def _claims() -> int:
    """Say which tests of what is said of released models fail; nothing where the project's tests are not there."""
    files = [str(ROOT / "tests" / one) for one in CLAIMS]
    if not all(Path(one).exists() for one in files):
        return 0
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "--no-header", "--tb=no", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    failed = [line.removeprefix("FAILED ") for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    if not failed:
        print(done.stdout if done.returncode else say("All that is said of released models holds."))
        return int(done.returncode != 0)
    print(say("What no longer holds, {count} of the tests of what is said of released models:", count=len(failed)))
    print("\n".join(f"  {line}" for line in failed))
    return 1
