"""`python -m model release`: repeat every measurement that depends on a checkpoint's weights, as it was made before."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..atlas import heads_over_training, pruning
from ..atlas.files import ATLAS_FORMAT, MANIFEST_FILE
from ..atlas.query import released_atlas_folder
from ..checkpoint.load import WEIGHTS_FILE, find_checkpoint_folder, read_checkpoint_config, sha256_hex
from ..checkpoint.measurements import Score, read_scores
from ..checkpoint.snapshots import has_random_initial_weights, list_snapshot_steps
from ..devices import choose_device
from ..evaluation import attribution, in_domain_detection, quality
from ..language import say
from ..training.data import read_pairs
from ..translate import Translator
from ..word_alignment import measure
from . import heads, translate_and_evaluate, why
from .translate_and_evaluate import check_writable

CommandWords = list[str]
"""The words of one command, without `python -m model`."""
RELEASE_COMMANDS: dict[str, tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int]]] = {
    "evaluate": (translate_and_evaluate.add_evaluate_arguments, translate_and_evaluate.run_evaluate),
    "quality": (translate_and_evaluate.add_quality_arguments, translate_and_evaluate.run_quality),
    "atlas": (heads.add_atlas_arguments, heads.run_atlas),
    "prune": (heads.add_prune_arguments, heads.run_prune),
    "align": (heads.add_align_arguments, heads.run_align),
    "attribution": (why.add_attribution_arguments, why.run_attribution),
    "familiarity": (translate_and_evaluate.add_familiarity_arguments, translate_and_evaluate.run_familiarity),
    "timeline": (heads.add_timeline_arguments, heads.run_timeline),
}
PROJECT_ROOT = Path(__file__).resolve().parents[2]
CLAIM_TESTS = (
    "model/analysis/test_head_claims.py",
    "model/checkpoint/test_released_cards.py",
    "model/evaluation",
    "model/atlas",
    "model/word_alignment",
    "viz/engine/test_int8_bleu.py",
    "viz/explore/live/test_examples.py",
    "viz/explore/live/test_tour.py",
    "viz/talk",
    "viz/training/test_page.py",
)
"""The tests that hold what is said of released models, below tests/."""


class DataText(NamedTuple):
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
    data: Sequence[DataText]
    """Everything but scores is measured on the first."""
    device: str | None

    def text(self, name: str) -> DataText | None:
        """Return the text that a score is named after: "Tatoeba dev" is dev of a folder tatoeba; None if not given."""
        *words, split = name.casefold().split()
        found = (text for word in reversed(words) for text in self.data if text.folder.name.casefold() == word)
        return next((text._replace(split=split) for text in found), None)

    def read_json(self, file: str) -> dict[str, Any]:
        """Return what a JSON file in the folder holds; nothing where there is none."""
        path = self.folder / file
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}

    def is_from_other_weights(self, file: str) -> bool:
        """Return whether a file is there that was measured with other weights."""
        found = self.read_json(file)
        return bool(found) and found.get("plan", found).get("model_hash") != self.hash

    def command(self, name: str, *words: object) -> CommandWords:
        device = ["--device", self.device] if self.device else []
        return [name, "--checkpoint", str(self.folder), *device, *map(str, words)]


def list_score_commands(one: Release) -> Iterator[CommandWords]:
    """Yield a command for every score that is kept, and for the greedy score of each snapshot on the first text."""
    kept = read_scores(one.folder)
    for score in kept:
        if score.step is None:
            yield from _list_evaluate_commands(one, score, None)
    greedy = next((score for score in kept if score.beam == 1 and score.step is None and one.text(score.set)), None)
    steps = list_snapshot_steps(one.folder)
    for step in ((0,) if steps and has_random_initial_weights(one.folder) else ()) + steps:
        if greedy:
            yield from _list_evaluate_commands(one, greedy, step)


def _list_evaluate_commands(one: Release, score: Score, step: int | None) -> Iterator[CommandWords]:
    text = one.text(score.set)
    if text is None:
        print(say("No folder of --data is the text of {set}: its score stays.", set=score.set))
        return
    words = ["--source", text.source, "--reference", text.target, "--beam", score.beam, "--keep", score.set]
    yield one.command("evaluate", *words, *(["--step", step] if step is not None else []))


def list_quality_commands(one: Release) -> Iterator[CommandWords]:
    yield one.command("quality")


def list_atlas_commands_and_replace_atlas(one: Release) -> Iterator[CommandWords]:
    """Build the atlas beside the old one, and replace that once the new one is whole."""
    place = released_atlas_folder(one.folder)
    if not one.is_from_other_weights(f"{place.name}/{MANIFEST_FILE}"):
        return
    found, built = one.read_json(f"{place.name}/{MANIFEST_FILE}"), place.with_name("atlas.new")
    begun = one.read_json(f"{built.name}/{MANIFEST_FILE}")
    if begun and (begun.get("format"), begun["plan"]["model_hash"]) != (ATLAS_FORMAT, one.hash):
        shutil.rmtree(built)  # of a release that was given up
    plan, text = found["plan"], one.data[0]
    words = ["--source", text.source, "--target", text.target, "--sentences", plan["lines"], "--output", built]
    words += ["--part", plan["lines_a_part"], "--least-weight", plan["least_weight"], "--licence", found["licence"]]
    yield one.command("atlas", *words, *([] if plan["costs"] else ["--no-costs"]))
    shutil.rmtree(place)
    built.rename(place)


def list_prune_commands(one: Release) -> Iterator[CommandWords]:
    found, text = one.read_json(pruning.PRUNING_FILE), one.data[0]
    if one.is_from_other_weights(pruning.PRUNING_FILE):
        words = ["--source", text.source, "--target", text.target, "--skip", found["first_line"] - 1]
        words += ["--sentences", found["sentences"], "--points", len(found["left"]), "--orders", len(found["random"])]
        yield one.command("prune", *words)


def list_align_commands(one: Release) -> Iterator[CommandWords]:
    if one.is_from_other_weights(measure.ALIGNMENT_FILE):
        yield one.command("align")


def list_attribution_commands(one: Release) -> Iterator[CommandWords]:
    yield from _list_remeasurement_commands(one, "attribution", attribution.ATTRIBUTION_FILE)


def list_familiarity_commands(one: Release) -> Iterator[CommandWords]:
    yield from _list_remeasurement_commands(one, "familiarity", in_domain_detection.FAMILIARITY_FILE)


def _list_remeasurement_commands(one: Release, name: str, file: str) -> Iterator[CommandWords]:
    found, text = one.read_json(file), one.data[0]
    if one.is_from_other_weights(file):
        words = ["--data", text.folder, "--split", text.split, "--set", found["set"]]
        yield one.command(name, *words, "--sentences", found["sentences"])


def list_timeline_commands(one: Release) -> Iterator[CommandWords]:
    found, text = one.read_json(heads_over_training.TIMELINE_FILE), one.data[0]
    if list_snapshot_steps(one.folder) and (not found or one.is_from_other_weights(heads_over_training.TIMELINE_FILE)):
        words = ["--source", text.source, "--target", text.target, "--sentences", found.get("sentences", 500)]
        yield one.command("timeline", *words, *(["--costs"] if "cost" in found.get("heads", ()) else []))


def measure_int8_quality_loss(one: Release) -> Iterator[CommandWords]:
    """Measure what 8 bits lose; this has no command of its own, since only a release needs it."""
    text = one.data[0]
    if one.is_from_other_weights(quality.INT8_FILE) or not one.read_json(quality.INT8_FILE):
        translator = Translator.load(one.folder, choose_device(one.device))
        pairs = read_pairs([text.folder], text.source_language, text.target_language, text.split)
        found = quality.measure_int8_quality(translator, pairs, f"{text.folder.name}/{text.source.name}")
        quality.write_int8_quality(one.folder, found)
        print(say("BLEU {half:.2f}, in 8 bits {int8:.2f}", half=found.half, int8=found.int8))
    yield from ()


RELEASE_PARTS: dict[str, Callable[[Release], Iterator[CommandWords]]] = {
    "scores": list_score_commands,
    "quality": list_quality_commands,
    "atlas": list_atlas_commands_and_replace_atlas,
    "prune": list_prune_commands,
    "align": list_align_commands,
    "attribution": list_attribution_commands,
    "familiarity": list_familiarity_commands,
    "timeline": list_timeline_commands,
    "int8": measure_int8_quality_loss,
}


def add_release_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", help=say("name below checkpoints/ or a folder"))
    parser.add_argument(
        "--data",
        type=Path,
        nargs="+",
        required=True,
        help=say("data folders; everything but scores is measured on the first one"),
    )
    parser.add_argument("--split", default="dev", help=say("the text to measure on: SPLIT.en, SPLIT.de (default dev)"))
    parser.add_argument("--only", choices=[*RELEASE_PARTS, "claims"], nargs="+", help=say("these parts alone"))
    parser.add_argument("--device", help=say("cpu or cuda (default: the GPU when there is one)"))


def run_release(arguments: argparse.Namespace) -> int:
    """Run every part, then the tests that hold what is said of released models.

    What was already measured with these weights is left as it is, so that the same command goes on where it ended.
    """
    folder = find_checkpoint_folder(arguments.checkpoint)
    check_writable(folder / quality.INT8_FILE)
    card = read_checkpoint_config(folder)["card"]
    languages = (str(card.get("source_language", "")), str(card.get("target_language", "")))
    texts = [DataText(one, arguments.split, *languages) for one in arguments.data]
    one = Release(folder, sha256_hex((folder / WEIGHTS_FILE).read_bytes())[:12], texts, arguments.device)
    asked = arguments.only or [*RELEASE_PARTS, "claims"]
    for name in (name for name in RELEASE_PARTS if name in asked):
        print(f"== {name}", flush=True)
        for words in RELEASE_PARTS[name](one):
            if code := _run_command(words):
                return code
    return _run_released_model_claim_tests() if "claims" in asked else 0


def _run_command(words: CommandWords) -> int:
    add_arguments, run = RELEASE_COMMANDS[words[0]]
    parser = argparse.ArgumentParser(prog=words[0])
    add_arguments(parser)
    return run(parser.parse_args(words[1:]))


def _run_released_model_claim_tests() -> int:
    """Say which tests of what is said of released models fail; nothing where the project's tests are not there."""
    files = [str(PROJECT_ROOT / "tests" / one) for one in CLAIM_TESTS]
    if not all(Path(one).exists() for one in files):
        return 0
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "--no-header", "--tb=no", *files]
    done = subprocess.run(command, cwd=PROJECT_ROOT, capture_output=True, text=True, check=False)
    failed = [line.removeprefix("FAILED ") for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    if not failed:
        print(done.stdout if done.returncode else say("All that is said of released models holds."))
        return int(done.returncode != 0)
    print(say("What no longer holds, {count} of the tests of what is said of released models:", count=len(failed)))
    print("\n".join(f"  {line}" for line in failed))
    return 1
