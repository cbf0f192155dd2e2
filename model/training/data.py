"""Read parallel text, make length-bucketed batches, and copy starting weights from another model."""

from __future__ import annotations

import hashlib
import lzma
import re
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..checkpoint.load import Checkpoint, unique_weights
from ..language import join_items, say
from ..network.abstract_model import pad_ids, shift_right
from ..network.config import PAD_ID, SPECIAL_PIECES
from ..network.transformer import Transformer
from ..text.tokenizer import Tokenizer

# Parallel text, and batches of its token ids: the same ones in the same order for the same seed.


SentencePair = tuple[str, str]
WORD_PATTERN = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
"""A word without its punctuation; an apostrophe inside is part of it."""
REWRITTEN_LINE = re.compile(r"(?P<folder>[^\t]+)\t(?P<at>[0-9]{1,12})\t(?P<target>[^\t]*)")


def read_pairs(folders: Sequence[Path], source: str, target: str, split: str) -> list[SentencePair]:
    """Pair line N of `split`.`source` with line N of `split`.`target`, of every folder in turn."""
    pairs: list[SentencePair] = []
    for folder in folders:
        sides = []
        for language in (source, target):
            path = folder / f"{split}.{language}"
            if not path.is_file():
                raise FileNotFoundError(
                    say(
                        "There is no {path}: a data folder holds {file} and {other}.",
                        path=path,
                        file=f"{split}.{source}",
                        other=f"{split}.{target}",
                    )
                )
            sides.append(path.read_text(encoding="utf-8").removesuffix("\n").split("\n"))
        if len(sides[0]) != len(sides[1]):
            raise ValueError(
                say(
                    "{folder}/{split}: {lines} {language} lines, but {others} {other} lines; line N of one side "
                    "must translate line N of the other.",
                    folder=folder,
                    split=split,
                    lines=len(sides[0]),
                    language=source,
                    others=len(sides[1]),
                    other=target,
                )
            )
        pairs.extend(zip(*sides, strict=True))
    return pairs


def read_pair_table(path: Path) -> list[SentencePair]:
    """Read the pairs of one file, which may be compressed by xz: a line is a source, a tab and its target.

    Raises ValueError, naming the line that is no pair.
    """
    pairs = []
    for number, line in enumerate(_read_lines(path), 1):
        source, _, target = (part.strip() for part in line.partition("\t"))
        if not source or not target or "\t" in target:
            raise ValueError(
                say("Line {line} of {path} is no pair: a source, a tab and its target.", line=number, path=path)
            )
        pairs.append((source, target))
    return pairs


def read_rewritten_pairs(path: Path, texts: Mapping[str, Sequence[SentencePair]]) -> list[SentencePair]:
    """Read pairs of data folders with a target that a model has written in place of the reference.

    A line of the file, which may be compressed by xz, is a folder, the number of one of its pairs counted from 1, and
    the new target, with tabs between; no target where the reference stays. Raises ValueError, naming the line
    that is none of these.
    """
    pairs = []
    for number, line in enumerate(_read_lines(path), 1):
        found = REWRITTEN_LINE.fullmatch(line)
        text = texts.get(found["folder"], ()) if found else ()
        at = int(found["at"]) if found else 0
        if not found or not 0 < at <= len(text):
            raise ValueError(
                say(
                    "Line {line} of {path} is no rewritten line: a folder of --data, a line of it and its new target.",
                    line=number,
                    path=path,
                )
            )
        source, reference = text[at - 1]
        pairs.append((source, found["target"] or reference))
    return pairs


def _read_lines(path: Path) -> list[str]:
    """Return the lines of a text file, unpacked where its name ends in .xz."""
    data = path.read_bytes()
    return (lzma.decompress(data) if path.suffix == ".xz" else data).decode("utf-8").removesuffix("\n").split("\n")


def differs_from_dev(sources: Sequence[str], dev: Sequence[str]) -> np.ndarray:
    """Return whether each source differs from every dev source by more than one word added, removed or changed.

    Case and punctuation do not count. Two sentences of one word each differ. (sources,) bool
    """
    known = {_normalise_words(sentence) for sentence in dev}
    shorter = {words[:place] + words[place + 1 :] for words in known for place in range(len(words))}
    changed = {one for words in known for one in _blank_each_word(words)}

    def is_near(words: tuple[str, ...]) -> bool:
        return (
            words in known
            or words in shorter
            or any(words[:place] + words[place + 1 :] in known for place in range(len(words)))
            or any(one in changed for one in _blank_each_word(words))
        )

    return np.array([not is_near(_normalise_words(sentence)) for sentence in sources], dtype=bool)


def _normalise_words(sentence: str) -> tuple[str, ...]:
    """The words of a sentence in lower case, with straight apostrophes."""
    return tuple(WORD_PATTERN.findall(sentence.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")))


def _blank_each_word(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The words with one of them left open; nothing of a single word."""
    for place in range(len(words) if len(words) > 1 else 0):
        yield (*words[:place], "", *words[place + 1 :])


def compute_pair_frequencies(mixture: Mapping[str, float], names: Sequence[str], sizes: Sequence[int]) -> np.ndarray:
    """Return how often each pair is used in one pass, of folders with these names and numbers of pairs."""
    if unknown := sorted(set(mixture) - set(names)):
        raise ValueError(
            say(
                "The recipe's mixture names {unknown}, but the folders of --data are {names}.",
                unknown=join_items(unknown),
                names=join_items(names),
            )
        )
    return np.repeat([float(mixture.get(name, 1)) for name in names], sizes)


def draw_pairs(often: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Draw the numbers of the pairs of one pass: 2 gives a pair twice, 0.33 gives it with that chance."""
    times = np.floor(often).astype(int)
    if (often > times).any():
        times += random.random(len(often)) < often - times
    return np.repeat(np.arange(len(often)), times)


@dataclass(frozen=True, eq=False)
class Batch:
    """One batch of a training step, padded: ids (B, S), (B, T) and (B, T)."""

    source: Tensor
    target_in: Tensor
    """The target shifted right: <s> first."""
    target_out: Tensor
    """The target with </s> last."""

    @property
    def tokens(self) -> int:
        """Real target tokens, the number the loss is averaged over."""
        return int((self.target_out != PAD_ID).sum())


class TrainingPhase(NamedTuple):
    """A part of the training throughout which each pair is used equally often."""

    done: int
    """The steps before it."""
    often: np.ndarray
    """How often each pair is used in one pass."""


class Batches:
    """Batches of one epoch after another. Sentences of like length stand together, so little is padding."""

    def __init__(
        self,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        tokens: int,
        longest: int,
        seed: int,
        phases: Sequence[TrainingPhase] = (),
    ) -> None:
        """`phases`: the first begins with the training; without any, each pair is used once in every pass."""
        lengths = np.array([(len(s), len(t)) for s, t in zip(sources, targets, strict=True)]).reshape(-1, 2)
        kept = np.flatnonzero(((lengths > 1) & (lengths <= longest)).all(axis=1))
        self.lengths = lengths[kept]
        self.sources, self.targets = [sources[i] for i in kept.tolist()], [targets[i] for i in kept.tolist()]
        self.tokens, self.seed = tokens, seed
        self.phases = [
            TrainingPhase(done, often[kept]) for done, often in phases or [TrainingPhase(0, np.ones(len(lengths)))]
        ]
        if not all(phase.often.any() for phase in self.phases):
            raise ValueError(
                say(
                    "No sentence pair is left to train on: the files are empty, every pair is too long, or the "
                    "mixture leaves all out."
                )
            )

    def epoch(self, number: int, phase: int = 0) -> list[np.ndarray]:
        """Return the batches of an epoch as arrays of pair numbers; they depend on seed, epoch and phase alone."""
        random = np.random.default_rng((self.seed, number))
        used = self._list_pairs_of_phase(phase)  # so that the text of another phase may be another
        shuffled = random.permutation(used[draw_pairs(self.phases[phase].often[used], random)])
        longer = self.lengths.max(axis=1)
        order = shuffled[np.lexsort((self.lengths[shuffled, 1], longer[shuffled]))]
        batches, start = [], 0
        for end in range(1, len(order) + 1):
            # Sorted by the longer side: the last pair of a batch is its longest.
            full = end == len(order) or (end + 1 - start) * longer[order[end]] > self.tokens
            if full:
                batches.append(order[start:end])
                start = end
        return [batches[i] for i in random.permutation(len(batches))]

    def _list_pairs_of_phase(self, phase: int) -> np.ndarray:
        """The numbers of the pairs that a phase draws from."""
        return np.flatnonzero(self.phases[phase].often)

    def texts(self) -> tuple[str, ...]:
        """Return a hash for each phase, of the ids on both sides of its pairs, in their order.

        Another text or vocabulary gives another hash.
        """
        return tuple(self._hash_ids(self._list_pairs_of_phase(phase)) for phase in range(len(self.phases)))

    def _hash_ids(self, pairs: np.ndarray) -> str:
        digest = hashlib.sha256(self.lengths[pairs].tobytes())  # where a text ends is no id
        for number in pairs.tolist():
            digest.update(array("i", self.sources[number]))
            digest.update(array("i", self.targets[number]))
        return digest.hexdigest()

    def batch(self, rows: np.ndarray) -> Batch:
        target_out = pad_ids([self.targets[i] for i in rows])
        target_in = shift_right(target_out).masked_fill(target_out == PAD_ID, PAD_ID)
        return Batch(pad_ids([self.sources[i] for i in rows]), target_in, target_out)

    def steps(self, done: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (epoch, pair numbers) of every step after the first `done` ones, without end."""
        epoch, step = 0, 0
        ends = [*(phase.done for phase in self.phases[1:]), sys.maxsize]
        for phase, end in enumerate(ends):
            while step < end:  # the end of a phase breaks its last epoch off
                batches = self.epoch(epoch, phase)[: end - step]
                for rows in batches[max(0, done - step) :]:
                    yield epoch, rows
                step, epoch = step + len(batches), epoch + 1


# Starting weights: those of a trained model, carried over to another vocabulary.


VOCABULARY_FIELDS = ("vocab_size", "target_vocab_size")


def copy_starting_weights(model: Transformer, tokenizer: Tokenizer, start: Checkpoint) -> None:
    """Copy the weights of `start` into a model of the same architecture, whose vocabulary may be another.

    A piece that both know keeps its row of an embedding or generator; any other gets the mean of the rows of the pieces
    that the old tokenizer splits it into; one that it cannot spell keeps the row it has. Raises ValueError where the
    architectures differ in more than their vocabularies.
    """
    differences = start.model.config.differences(model.config)
    if other := sorted(set(differences) - {*VOCABULARY_FIELDS, "dropout", "dropout_places"}):
        raise ValueError(
            say(
                "{model} cannot be begun with: its {fields} differ from the recipe's. Train from random weights, "
                "or keep the architecture.",
                model=start.name,
                fields=join_items(other),
            )
        )
    shares = _match_pieces(tokenizer, start.tokenizer)
    given = unique_weights(start.model)
    sizes = {getattr(start.model.config, name) for name in VOCABULARY_FIELDS}
    with torch.no_grad():
        for name, own in unique_weights(model).items():
            trained = given[name].to(own)
            own.copy_(
                _compose_vocabulary_rows(own, trained, shares)
                if trained.shape[0] in sizes and _is_vocabulary_weight(name)
                else trained
            )


def _is_vocabulary_weight(name: str) -> bool:
    return name.startswith(("source_embedding", "target_embedding", "generator"))


def _compose_vocabulary_rows(own: Tensor, trained: Tensor, shares: list[list[int]]) -> Tensor:
    """Rows (new vocabulary, ...) made of the rows (old vocabulary, ...) that each new piece consists of."""
    return torch.stack([trained[ids].mean(0) if ids else row for ids, row in zip(shares, own, strict=True)])


def _match_pieces(new: Tokenizer, old: Tokenizer) -> list[list[int]]:
    """The old ids that each new piece consists of; none for one that the old vocabulary cannot spell, or a byte."""
    special = range(len(SPECIAL_PIECES))
    return [
        [index] if index in special else [] if new.is_byte(index) else _spell_piece(new.token(index), old)
        for index in range(len(new))
    ]


def _spell_piece(token: str, old: Tokenizer) -> list[int]:
    """The old ids of a piece's text, each the longest that fits; none where some character has no piece."""
    ids = []
    while token:
        found = ((end, old.piece_id(token[:end])) for end in range(len(token), 0, -1))
        end, known = next(((end, known) for end, known in found if known is not None), (0, None))
        if known is None:
            return []
        ids.append(known)
        token = token[end:]
    return ids
