"""Text in, translation and trace out: what the pages, the command line and scripts share."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from unicodedata import category

import torch

from .capture.attention import capture_attention
from .capture.base import Capture
from .checkpoint.load import Checkpoint, available, load_checkpoint
from .decoding.beam_search import BeamStep, Stop, beam_batch, beam_search
from .decoding.beam_tree import BeamTree, beam_tree
from .decoding.constraints import FREE, Constraints
from .decoding.observer_check import ObserverCheck, check_observer
from .decoding.steps import GREEDY, DecodingStep, Stopped, Strategy, greedy_batch
from .decoding.teacher_forcing import forced
from .devices import chosen_device
from .network.token_ids import pad
from .text.token_names import name_translation
from .text.tokenizer import Encoded
from .trace import AttentionTrace

__all__ = ["InputError", "Translation", "Translator", "available"]

BATCH_TOKENS = 4000  # padded source tokens translated at once
CHARACTERS_A_TOKEN = 30  # a text longer than this times the limit is not even tokenised
TEACHER_FORCING = "teacher forcing"
"""What a trace's settings call the decoding of a translation that was only read."""


OnStep = Callable[[Callable[[], "Translation"]], bool]
"""Called after every step with what gives the translation so far; when it returns False, decoding stops there."""


class InputError(ValueError):
    """A text that cannot be translated; the message is the sentence to show."""


@dataclass(frozen=True, eq=False)
class Translation:
    """One sentence translated."""

    source: str
    text: str
    steps: tuple[DecodingStep, ...]
    source_ids: tuple[int, ...]
    source_tokens: tuple[str, ...]
    """Pieces as text; a leading space begins a word, </s> is last."""
    unknown: tuple[str, ...]
    """Source text of pieces the vocabulary does not hold."""
    seconds: float
    captured: AttentionTrace | None = None

    @property
    def trace(self) -> AttentionTrace:
        if self.captured is None:
            raise ValueError("This translation was made with capture=False and has no trace.")
        return self.captured

    @property
    def target_ids(self) -> tuple[int, ...]:
        """The tokens predicted, </s> included if the model wrote it."""
        return tuple(step.token_id for step in self.steps)

    @property
    def target_tokens(self) -> tuple[str, ...]:
        return tuple(step.token for step in self.steps)

    @property
    def stopped(self) -> Stopped | None:
        """``eos``: the model ended the sentence. ``length``: it was cut off at the limit."""
        return self.steps[-1].stopped

    @property
    def log_prob(self) -> float:
        """Sum over the tokens, natural logarithm."""
        return sum(step.log_prob for step in self.steps)


class Translator:
    """A loaded checkpoint that translates. Holds no state between calls, so one serves every visitor."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.model, self.tokenizer = checkpoint.model, checkpoint.tokenizer
        self.name, self.card, self.config = checkpoint.name, checkpoint.card, checkpoint.model.config
        self.device = next(self.model.parameters()).device

    @classmethod
    def load(cls, name: str | Path, device: str | torch.device | None = None) -> Self:
        """Load by name below checkpoints/ or by folder; on the GPU when there is one and no device is given."""
        return cls(load_checkpoint(name, device or chosen_device()))

    def encode(self, text: str) -> Encoded:
        """Text -> pieces. InputError for a text that is empty or too long for the model."""
        limit = self.config.max_length
        words = f"This model reads {limit} tokens at most, about {limit * 2 // 3} words; please shorten the text."
        if len(text) > limit * CHARACTERS_A_TOKEN:
            raise InputError(f"This text has {len(text):,} characters. {words}")
        if any(category(character) == "Cs" for character in text):  # half of a surrogate pair, which no UTF-8 can hold
            raise InputError("This text is not valid Unicode: it holds half of a character. Please type it again.")
        encoded = self.tokenizer.encode(text)
        if len(encoded.ids) == 1 or all(one.isspace() or category(one) in ("Cc", "Cf") for one in text):
            raise InputError("There is nothing to translate yet: please type a sentence.")
        if len(encoded.ids) > limit:
            raise InputError(f"This text has {len(encoded.ids):,} tokens. {words}")
        return encoded

    def translate(
        self,
        text: str,
        strategy: Strategy = GREEDY,
        *,
        max_tokens: int | None = None,
        capture: bool = True,
        on_step: OnStep | None = None,
    ) -> Translation:
        """Translate one sentence and keep the attention of every step. Raises InputError."""
        encoded = self.encode(text)
        source = torch.tensor([encoded.ids], device=self.device)
        started = time.perf_counter()
        steps: list[DecodingStep] = []
        with capture_attention(self.model) if capture else nullcontext() as recording:

            def so_far() -> Translation:
                return self._translation(text, encoded, steps, started, recording, strategy.name)

            for step in self._named(strategy.steps(self.model, source, max_tokens)):
                steps.append(step)
                if on_step and not on_step(so_far):
                    break
        return so_far()

    def force(
        self, text: str, target: str | Sequence[int], *, capture: bool = True, tensors: Collection[str] = ()
    ) -> Translation:
        """Read a given translation (text, or ids with their </s>) by teacher forcing. Raises InputError.

        `tensors` are kept in the trace beside the weights: any of q, k, v, scores, masked_scores.
        """
        encoded = self.encode(text)
        ids = self.encode(target).ids if isinstance(target, str) else tuple(target)
        source = torch.tensor([encoded.ids], device=self.device)
        started = time.perf_counter()
        with capture_attention(self.model, tensors) if capture else nullcontext() as recording:
            steps = tuple(self._named(forced(self.model, source, ids)))
        return self._translation(text, encoded, steps, started, recording, TEACHER_FORCING)

    def search(
        self,
        text: str,
        width: int,
        alpha: float = 1.0,
        constraints: Constraints = FREE,
        stop: Stop = "proven",
        on_step: Callable[[Callable[[], BeamTree]], bool] | None = None,
    ) -> BeamTree:
        """Search with `width` beams and keep the whole tree; `alpha` is the length penalty. Raises InputError."""
        source = torch.tensor([self.encode(text).ids], device=self.device)
        steps: list[BeamStep] = []

        def so_far() -> BeamTree:
            tree = beam_tree(steps)
            nodes = (dataclasses.replace(node, token=self.tokenizer.token(node.token_id)) for node in tree.nodes)
            return dataclasses.replace(tree, nodes=tuple(nodes))

        for step in beam_search(self.model, source, width, alpha, constraints=constraints, stop=stop):
            steps.append(step)
            if on_step and not on_step(so_far):
                break
        return so_far()

    def translate_batch(self, texts: Sequence[str], beam: int = 1, stop: Stop = "early") -> list[str]:
        """Translate many sentences, in the order given; `stop` is that of a search with more than one beam.

        Raises InputError naming the line that cannot be translated.
        """
        ids = []
        for number, text in enumerate(texts, start=1):
            try:
                ids.append(self.encode(text).ids)
            except InputError as error:
                raise InputError(f"Line {number}: {error}") from error
        found = [""] * len(texts)
        for rows in _batches([len(one) for one in ids]):
            source = pad([ids[row] for row in rows]).to(self.device)
            greedily = beam == 1
            written = greedy_batch(self.model, source) if greedily else beam_batch(self.model, source, beam, stop=stop)
            for row, target in zip(rows, written, strict=True):
                found[row] = self.tokenizer.decode(target)
        return found

    def check_observer(self, translation: Translation) -> ObserverCheck:
        """Make a captured translation once more without capture, on the tokens that it has, and compare.

        Open the interventions that it was made with. ValueError for one that has no trace.
        """
        source = torch.tensor([translation.source_ids], device=self.device)
        one_pass = translation.trace.settings["decoding"] == TEACHER_FORCING
        return check_observer(self.model, source, translation.steps, one_pass=one_pass)

    def _translation(
        self,
        text: str,
        encoded: Encoded,
        steps: Sequence[DecodingStep],
        started: float,
        recording: Capture | None,
        decoding: str,
    ) -> Translation:
        written = self.tokenizer.decode([step.token_id for step in steps])
        found = Translation(
            text, written, tuple(steps), encoded.ids, encoded.tokens, encoded.unknown, time.perf_counter() - started
        )
        if recording is None:
            return found
        trace = self._label(recording.trace, found, decoding)
        return dataclasses.replace(found, captured=trace, seconds=time.perf_counter() - started)

    def _named(self, steps: Iterable[DecodingStep]) -> Iterator[DecodingStep]:
        """The same steps, their tokens as people read them."""
        token = self.tokenizer.token
        for step in steps:
            candidates = tuple(dataclasses.replace(one, token=token(one.token_id)) for one in step.candidates)
            yield dataclasses.replace(step, token=token(step.token_id), candidates=candidates)

    def _label(self, trace: AttentionTrace, translation: Translation, decoding: str) -> AttentionTrace:
        return dataclasses.replace(
            name_translation(trace, translation.source_tokens, translation.target_tokens),
            source=translation.source,
            target=translation.text,
            model=self.name,
            model_hash=self.checkpoint.hash,
            settings=self.settings(decoding),
        )

    def settings(self, decoding: str = "greedy") -> dict[str, Any]:
        """Return what a saved trace says of how it was made."""
        return {"device": self.device.type, "attention": "explicit", "decoding": decoding}


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Row numbers in batches of like length, at most BATCH_TOKENS padded tokens each."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[row] > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
