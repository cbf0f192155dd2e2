"""`python -m model train`: a recipe and text in, a checkpoint folder out."""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from tqdm import tqdm

from ..atomic_write import atomic_write, write_file
from ..checkpoint.card import make_model_card
from ..checkpoint.load import OUTPUT_FOLDER, Checkpoint, load_checkpoint, save_checkpoint, unique_weights
from ..checkpoint.measurements import CARD_FILE, HISTORY_FILE, HistoryRow
from ..checkpoint.recipe import RECIPE_FILE, WEIGHT_FREE_FIELDS, Recipe
from ..checkpoint.snapshots import copy_snapshots_to_checkpoint
from ..devices import choose_device
from ..evaluation.quality import make_bleu_metric
from ..language import join_items, say
from ..network.config import TransformerConfig, make_preset_config
from ..network.transformer import Transformer
from ..text.tokenizer import Tokenizer
from ..training import synthetic
from ..training.data import (
    Batches,
    SentencePair,
    TrainingPhase,
    compute_pair_frequencies,
    copy_starting_weights,
    differs_from_dev,
    draw_pairs,
    read_pair_table,
    read_pairs,
    read_rewritten_pairs,
)
from ..training.trainer import STATE_FILE, Trainer, WorkerLostError, join_process_group
from ..translate import Translator

TEXTS_A_SLICE = 20_000
"""Texts cut into pieces at a time: a list of Python's numbers is ten times as large as what is kept."""


def add_train_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, required=True, help=say("the recipe, e.g. checkpoints/NAME/recipe.json"))
    parser.add_argument("--data", type=Path, nargs="+", required=True, help=say("folders with train.XX and dev.XX"))
    parser.add_argument(
        "--begin",
        type=Path,
        metavar="FOLDER",
        help=say("the checkpoint to begin with, where the recipe begins with one"),
    )
    parser.add_argument("--state", type=Path, help=say("folder of the resumable state (default: runs/NAME)"))
    parser.add_argument(
        "--output", type=Path, help=say("folder of the finished checkpoint (default: checkpoints/NAME)")
    )
    parser.add_argument("--device", help=say("cpu or cuda (default: the GPU when there is one)"))
    parser.add_argument("--steps", type=int, help=say("stop (resumably) after this step instead of the recipe's last"))


def run_train(arguments: argparse.Namespace) -> int:
    recipe = Recipe.load(arguments.config)
    if arguments.steps is not None and arguments.steps < 1:
        raise ValueError(say("--steps is {steps}; it must be at least 1.", steps=arguments.steps))
    device = choose_device(arguments.device)
    try:
        with join_process_group(device) as (rank, world):
            _train_checkpoint(recipe, arguments, device, rank, world)
    except WorkerLostError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def build_config(recipe: Recipe) -> TransformerConfig:
    """Return the architecture a recipe asks for; both sides share the recipe's one vocabulary."""
    sizes = {"vocab_size": recipe.vocab_size, "target_vocab_size": recipe.vocab_size}
    fields = sizes | recipe.model
    try:
        return make_preset_config(fields.pop("preset"), **fields) if "preset" in fields else TransformerConfig(**fields)
    except TypeError as error:
        raise ValueError(say("The recipe's model cannot be built: {error}.", error=error)) from error


def _train_checkpoint(
    recipe: Recipe, arguments: argparse.Namespace, device: torch.device, rank: int, world: int
) -> None:
    folder = arguments.state or Path("runs") / recipe.name
    folder.mkdir(parents=True, exist_ok=True)
    texts = _read_phase_texts(recipe, arguments.data, arguments.config.parent)
    if rank == 0 and recipe.unlike_dev:
        print(*(_describe_left_out_pairs(text) for text in texts), sep="\n", flush=True)
    start = _load_initial_checkpoint(recipe, arguments)
    tokenizer = _get_initial_checkpoint_tokenizer(recipe, start) or _learn_tokenizer(recipe, texts[0], folder, rank)
    batches = _make_batches(recipe, texts, tokenizer)
    del texts
    torch.manual_seed(recipe.seed)
    model = Transformer(build_config(recipe)).to(device)
    if start:
        copy_starting_weights(model, tokenizer, start)
    trainer = Trainer(recipe, model, batches, folder, rank, world)
    dev = read_pairs(arguments.data[:1], recipe.source_language, recipe.target_language, recipe.dev_split)
    dev = dev[: recipe.evaluate_sentences]
    last = min(arguments.steps or recipe.steps, recipe.steps)
    _run_trainer(trainer, lambda model: _measure_bleu(model, tokenizer, dev, recipe), last, show=rank == 0)
    if rank == 0 and trainer.step >= recipe.steps:
        output = arguments.output or OUTPUT_FOLDER / recipe.name
        _write_checkpoint(trainer, tokenizer, output)
        _copy_recipe_files(recipe, arguments.config.parent, output)


def _copy_recipe_files(recipe: Recipe, beside: Path, output: Path, kept: frozenset[str] = frozenset()) -> None:
    """Copy to the checkpoint what its recipe names: own text, the recipe that training began with, what that names."""
    own_text = {recipe.frames, *recipe.written, recipe.rewritten, recipe.tuning_rewritten}
    for name in {*own_text, recipe.begin_from} - {"", *kept}:
        shutil.copyfile(beside / name, output / name)
    if recipe.begin_from and recipe.begin_from not in kept:
        _copy_recipe_files(Recipe.load(beside / recipe.begin_from), beside, output, kept | {recipe.begin_from})


def _load_initial_checkpoint(recipe: Recipe, arguments: argparse.Namespace) -> Checkpoint | None:
    """The checkpoint that training begins with. Raises ValueError unless it was trained as the recipe asks."""
    folder, asked = arguments.begin, recipe.begin_from
    if bool(folder) != bool(asked):
        raise ValueError(
            say(
                "This recipe begins with the weights that {recipe} gives: train these first, then name their folder by "
                "--begin.",
                recipe=asked,
            )
            if asked
            else say("This recipe begins with random weights: leave --begin out, or name its start in begin_from.")
        )
    if not folder:
        return None
    own, wanted = (
        dataclasses.asdict(Recipe.load(one)) for one in (folder / RECIPE_FILE, arguments.config.parent / asked)
    )
    differing = sorted(name for name in own if own[name] != wanted[name] and name not in WEIGHT_FREE_FIELDS)
    if differing:
        raise ValueError(
            say(
                "{folder} was not trained by {recipe}: its {fields} differ.",
                folder=folder,
                recipe=asked,
                fields=join_items(differing),
            )
        )
    return load_checkpoint(folder)


class PhaseText(NamedTuple):
    """The text of one phase of the training: until the learning rate falls, while it falls, or of the tuning."""

    pairs: list[SentencePair]
    often: np.ndarray
    """How often each pair is used in one pass, above 0."""
    left_out: int
    """Pairs that are almost dev sentences."""


def _read_phase_texts(recipe: Recipe, folders: list[Path], beside: Path) -> list[PhaseText]:
    """The text of each phase."""
    texts = {
        one.absolute().name: read_pairs([one], recipe.source_language, recipe.target_language, "train")
        for one in folders
    }
    if recipe.frames:
        texts["frames"] = synthetic.fill_sentence_frames(
            synthetic.read_sentence_frames(beside / recipe.frames), recipe.seed
        )
    if recipe.written:
        texts["written"] = [pair for name in recipe.written for pair in read_pair_table(beside / name)]
    dev = _read_dev_sources(recipe, folders) if recipe.unlike_dev else []
    phases = [_mix_pairs(texts, recipe.mixture, dev)]
    if recipe.decay_mixture is not None:
        if recipe.rewritten:
            texts["rewritten"] = read_rewritten_pairs(beside / recipe.rewritten, texts)
        phases.append(_mix_pairs(texts, recipe.decay_mixture, dev))
    if recipe.tuning_mixture is not None:
        if recipe.tuning_rewritten:
            texts["rewritten"] = read_rewritten_pairs(beside / recipe.tuning_rewritten, texts)
        phases.append(_mix_pairs(texts, recipe.tuning_mixture, dev))
    return phases


def _describe_left_out_pairs(text: PhaseText) -> str:
    every = len(text.pairs) + text.left_out
    return say(
        "{left_out:,} of {every:,} pairs ({share:.1%}) are left out: almost dev sentences.",
        left_out=text.left_out,
        every=every,
        share=text.left_out / max(1, every),
    )


def _mix_pairs(texts: Mapping[str, list[SentencePair]], mixture: Mapping[str, float], dev: list[str]) -> PhaseText:
    """The pairs that a mixture uses and that are not almost a dev sentence."""
    often = compute_pair_frequencies(mixture, list(texts), [len(pairs) for pairs in texts.values()])
    pairs = [pair for text in texts.values() for pair in text]
    used = np.flatnonzero(often)
    kept = used[differs_from_dev([pairs[i][0] for i in used], dev)] if dev else used
    return PhaseText([pairs[i] for i in kept], often[kept], len(used) - len(kept))


def _read_dev_sources(recipe: Recipe, folders: list[Path]) -> list[str]:
    """The source side of every dev text."""
    languages = (recipe.source_language, recipe.target_language)
    with_dev = [one for one in folders if (one / f"{recipe.dev_split}.{recipe.source_language}").is_file()]
    return [source for source, _ in read_pairs(with_dev, *languages, recipe.dev_split)]


def _make_batches(recipe: Recipe, texts: list[PhaseText], tokenizer: Tokenizer) -> Batches:
    """Batches of the pairs of each phase and of the copies that the recipe adds to them."""
    sides: tuple[list[array[int]], list[array[int]]] = ([], [])
    often = []
    for text in texts:
        kinds = _make_synthetic_pair_copies(recipe, text.pairs) if text.pairs else ()
        everything = [*text.pairs, *(pair for one in kinds for pair in one.pairs)]
        often.append(_count_pair_uses(text.often, kinds, 1 + recipe.resegmented))
        for side, ids in enumerate(sides):
            ids.extend(_encode_texts(recipe, tokenizer, [pair[side] for pair in everything]))
    phases = [
        TrainingPhase(done, np.concatenate([one if one is own else np.zeros(len(one)) for one in often]))
        for done, own in zip((0, *recipe.list_mixture_switches()), often, strict=True)
    ]
    return Batches(*sides, recipe.tokens_per_batch, recipe.longest, recipe.seed, phases)


def _make_synthetic_pair_copies(recipe: Recipe, pairs: list[SentencePair]) -> tuple[synthetic.PairCopies, ...]:
    return (
        synthetic.make_lowercase_unpunctuated_copies(
            pairs, recipe.sloppy_share, recipe.seed, recipe.sloppy_apostrophes
        ),
        synthetic.make_joined_copies(pairs, recipe.joined_share, recipe.seed),
        synthetic.make_uppercase_copies(pairs, recipe.shouted_share, recipe.seed),
        synthetic.make_replaced_number_copies(pairs, recipe.renumbered, recipe.seed),
        synthetic.make_replaced_name_copies(pairs, recipe.renamed_share, recipe.seed),
    )


def _count_pair_uses(often: np.ndarray, kinds: Sequence[synthetic.PairCopies], times: int) -> np.ndarray:
    """How often the pairs and their copies are used, each `times` times over."""
    return np.tile(np.concatenate([often, *(often[one.origins].min(axis=1) for one in kinds)]), times)


def _encode_texts(recipe: Recipe, tokenizer: Tokenizer, texts: list[str]) -> Iterator[array[int]]:
    """The ids of all texts, then as often as the recipe asks those of the same in other pieces; four bytes an id."""
    for start in range(0, len(texts), TEXTS_A_SLICE):
        yield from (array("i", ids) for ids in tokenizer.encode_ids(texts[start : start + TEXTS_A_SLICE]))
    for seed in range(recipe.seed, recipe.seed + recipe.resegmented):
        yield from (array("i", ids) for ids in tokenizer.encode_ids_with_dropout(texts, recipe.merge_dropout, seed))


def _get_initial_checkpoint_tokenizer(recipe: Recipe, start: Checkpoint | None) -> Tokenizer | None:
    """The tokenizer of the checkpoint that training begins with, where the recipe keeps it."""
    if not start or not recipe.keep_tokenizer:
        return None
    if len(start.tokenizer) != recipe.vocab_size:
        raise ValueError(
            say(
                "The recipe keeps the tokenizer of {name}, which has {pieces} pieces, but its vocab_size is {size}.",
                name=start.name,
                pieces=len(start.tokenizer),
                size=recipe.vocab_size,
            )
        )
    return start.tokenizer


def _learn_tokenizer(recipe: Recipe, text: PhaseText, folder: Path, rank: int) -> Tokenizer:
    """The run's own tokenizer, of its first pass; every process learns the same one, so none waits for another.

    One that no state goes with may be of a run begun otherwise, and is learned again.
    """
    path = folder / "tokenizer.model"
    if path.exists() and (folder / STATE_FILE).exists():
        return Tokenizer.load(path)
    first_pass = draw_pairs(text.often, np.random.default_rng((recipe.seed, 0)))
    sentences = [sentence for number in first_pass for sentence in text.pairs[number]]
    tokenizer = Tokenizer.train(
        sentences, recipe.vocab_size, recipe.character_coverage, recipe.byte_fallback, recipe.split_digits
    )
    if rank == 0:
        with atomic_write(path) as temporary:
            temporary.write_bytes(tokenizer.model)
    return tokenizer


def _run_trainer(trainer: Trainer, evaluate: Callable[[Transformer], float], last: int, show: bool) -> None:
    """Run to the step `last` under a progress bar with loss, tokens/s and time left."""
    with tqdm(total=last, initial=trainer.step, unit=say("step"), disable=not show, mininterval=5) as bar:
        for row in trainer.run(evaluate, last):
            bar.update(row.step - bar.n)
            bar.set_postfix(loss=row.loss, tokens_s=row.tokens_per_second)
            if row.bleu is not None:
                bar.write(_progress_line(row))


def _progress_line(row: HistoryRow) -> str:
    return say(
        "step {step} · epoch {epoch} · loss {loss} · dev BLEU {bleu} · {seconds} s",
        step=row.step,
        epoch=row.epoch + 1,
        loss=row.loss,
        bleu=row.bleu,
        seconds=row.seconds,
    )


def _measure_bleu(model: Transformer, tokenizer: Tokenizer, dev: list[SentencePair], recipe: Recipe) -> float:
    checkpoint = Checkpoint("dev", model.eval(), tokenizer, card={})
    found = Translator(checkpoint).translate_batch([source for source, _ in dev])
    return make_bleu_metric(recipe.target_language).corpus_score(found, [[target for _, target in dev]]).score


def _write_checkpoint(trainer: Trainer, tokenizer: Tokenizer, output: Path) -> None:
    """Average the last weights and write the checkpoint folder; recipe, history, snapshots and a card beside them."""
    weights = trainer.average_weights()
    with torch.no_grad():
        for name, parameter in unique_weights(trainer.model).items():
            parameter.copy_(weights[name])
    recipe = trainer.recipe
    card = {"source_language": recipe.source_language, "target_language": recipe.target_language, **recipe.facts}
    checkpoint = Checkpoint(recipe.name, trainer.model, tokenizer, card)
    save_checkpoint(checkpoint, output)
    recipe.save(output / RECIPE_FILE)
    if not (output / CARD_FILE).exists():  # one written by hand says more
        write_file(output / CARD_FILE, make_model_card(checkpoint, recipe, output))
    shutil.copyfile(trainer.folder / HISTORY_FILE, output / HISTORY_FILE)
    copy_snapshots_to_checkpoint(trainer.folder, output)
    print(say("Wrote {path}", path=output))
