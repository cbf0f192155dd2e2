"""A model that reads and writes text, as pages run it: its translations, errors and abilities."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, get_args
from unicodedata import category

import torch
from torch import nn

from .capture.attention import Capture, capture_attention
from .capture.pooled import PooledAttention
from .decoding.beam import BeamStep, BeamStop, BeamTree, beam_search, build_beam_tree
from .decoding.greedy_and_sampling import (
    GREEDY_STRATEGY,
    NO_CONSTRAINTS,
    Constraints,
    DecodingStep,
    ObserverCheck,
    StopReason,
    Strategy,
    check_observer,
    teacher_force,
)
from .language import join_sentences, say
from .network.abstract_model import AutoregressiveModel
from .text.tokenizer import EncodedText
from .text.words import (
    ROLES_SETTING,
    SPECIAL_TOKENS,
    TokenNames,
    mark_special_tokens,
    name_continuation_trace_rows_columns,
    name_translation_trace_rows_columns,
)
from .trace import TENSOR_NAMES, AttentionMap, AttentionTrace

# What a model wrote.


class InputError(ValueError):
    """A text that cannot be translated; the message is the sentence to show."""


@dataclass(frozen=True, eq=False)
class Translation:
    """One sentence translated, or one prompt continued."""

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
    first_row: int = 0
    """The row of the decoder's maps that predicts the first step: after a prompt, that of its last token."""
    special_tokens: AbstractSet[str] = SPECIAL_TOKENS
    """Tokens that stand for no text."""

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
    def stop_reason(self) -> StopReason | None:
        """``eos``: the model ended the sentence. ``length``: it was cut off at the limit."""
        return self.steps[-1].stopped

    @property
    def log_prob(self) -> float:
        """Sum over the tokens, natural logarithm."""
        return sum(step.log_prob for step in self.steps)

    @property
    def to_source(self) -> AttentionMap:
        """What each step looked at in the source (L, H, T, S): cross-attention, or the decoder's to its prompt."""
        if self.trace.cross is not None:
            return self.trace.cross
        return self._select_step_rows_and_columns(slice(0, self.first_row + 1))

    @property
    def to_target(self) -> AttentionMap:
        """What each step looked at in what was fed in (L, H, T, T), after a prompt from its last token on."""
        return self._select_step_rows_and_columns(slice(self.first_row, None))

    def _select_step_rows_and_columns(self, columns: slice) -> AttentionMap:
        """The rows of the decoder's map that predict a step, and some of its columns."""
        own = self.trace.decoder
        if own is None:
            raise ValueError("This trace has no attention of a decoder.")
        if self.first_row == 0 and columns == slice(0, None):
            return own
        rows, masks = slice(self.first_row, None), own.layer_masks
        return replace(
            own,
            weights=own.weights[:, :, rows, columns],
            mask=own.mask[rows, columns],
            layer_masks=None if masks is None else masks[:, :, rows, columns],
            query_tokens=own.query_tokens[rows],
            predicted_tokens=own.predicted_tokens[rows],
            key_tokens=own.key_tokens[columns],
            passed_masks=None,
            tensors={},
        )

    def find_step_of_row(self, row: int | None) -> int | None:
        """Return the step that a row of the decoder's maps predicts; None for a row of the prompt and for none."""
        step = None if row is None else row - self.first_row
        return step if step is not None and 0 <= step < len(self.steps) else None


# A model that writes: one of this project, or of a folder.


MAX_CHARACTERS_PER_TOKEN = 30
"""A text longer than this times the limit is not even tokenised."""
NO_TEMPLATE, CHAT_TEMPLATE = "none", "chat"
"""Names of prompt templates; others are the tasks of a folder's configuration."""
TEMPLATE_MARK = "?template="
"""Between the name of a model and that of a prompt template that is not its own."""
TEACHER_FORCING = "teacher forcing"
"""What a trace's settings call the decoding of a translation that was only read."""

OnStep = Callable[[Callable[[], Translation]], bool]
"""Called after every step with what gives the translation so far; when it returns False, decoding stops there."""


def remove_template_from_model_name(name: str) -> str:
    """Return the name of a model without that of a prompt template, which may stand behind it."""
    return name.partition(TEMPLATE_MARK)[0]


class TextTokenizer(Protocol):
    """Texts to ids and back, both sides of a model by the same vocabulary or each by its own."""

    def __len__(self) -> int:
        """Return the number of tokens that a target may have."""

    def encode(self, text: str) -> EncodedText:
        """Return a source as the model reads it."""

    def encode_target(self, text: str) -> EncodedText:
        """Return a target as the model would have written it, its end included where the model ends a text."""

    def encode_without_special_tokens(self, text: str) -> EncodedText:
        """Return words inside a target, without what every target begins and ends with."""

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of a target without special tokens."""

    def token(self, token_id: int) -> str:
        """Return one token of a target as people read it; a leading space says that a word begins."""

    def piece_id(self, token: str) -> int | None:
        """Return the id of a token as people read it, the reverse of :meth:`token`; None where there is none."""

    @property
    def special_tokens(self) -> AbstractSet[str]:
        """Tokens that stand for no text."""


def _has_half_character(text: str) -> bool:
    """Whether a text holds half of a surrogate pair, which no UTF-8 can hold."""
    return any(category(character) == "Cs" for character in text)


class RunnableModel:
    """A model that is run on the pages. Holds no state between calls, so one serves every visitor.

    Attributes:
        name: what lists and addresses call it.
        model: the network; attention that can be captured and changed has hook points in it.
        card: facts, as far as they are known: source_language, target_language (codes), title, licence, examples.
        weights_hash: says which weights they are; "" where nobody has computed it.
        max_length: the tokens that it reads at most.
        forced: what every target begins with, such as the language that is written, unless another beginning is asked
            for, and what may never be written.
    """

    model: AutoregressiveModel
    tokenizer: TextTokenizer
    lacks: Mapping[Ability, str] = {}
    """What it cannot do, each with the message that says so."""
    folder: Path | None = None
    """Where its files are, of one that is not found by its name."""
    prompt_templates: Sequence[str] = ()
    """Names of the ways in which it can be given a typed text; the first is its own."""
    prompt_template: str = ""
    """The one that is applied."""
    max_long_text_tokens: int = 0
    """The tokens of a text whose attention it can read without whole maps; 0 where it cannot."""

    def __init__(
        self,
        name: str,
        model: AutoregressiveModel,
        tokenizer: TextTokenizer,
        *,
        max_length: int,
        card: Mapping[str, Any],
        weights_hash: str = "",
        forced: Constraints = NO_CONSTRAINTS,
    ) -> None:
        self.name, self.model, self.tokenizer = name, model, tokenizer
        self.max_length, self.card, self.weights_hash, self.forced = max_length, card, weights_hash, forced
        self.device = next(model.parameters()).device

    def can(self, ability: Ability) -> bool:
        return ability not in self.lacks

    @property
    def writes(self) -> str:
        """What the text is called that it writes."""
        return "translation" if self.can("translate") else "continuation"

    def cannot(self, ability: Ability) -> str:
        """Return why it cannot do something and what can; "" where it can."""
        reason = self.lacks.get(ability, "")
        return say(reason) if reason else ""

    @property
    def notes(self) -> Sequence[str]:
        """What else is to be known of it on every page, in sentences."""
        return ()

    def with_prompt_template(self, name: str) -> RunnableModel:
        """Return the same model, given texts in another way. Raises LocalError for one that it does not have."""
        raise LocalError(say("{model} has no prompt template {name!r}.", model=self.name, name=name))

    @property
    def empty_rows(self) -> str:
        """What its attention gives to a query that may attend to nothing."""
        return say("this model gives zeros there, never NaN")

    def encode(self, text: str) -> EncodedText:
        """Return the pieces of a text. Raises InputError for one that is empty or too long for the model."""
        return self._check_text(text, self.tokenizer.encode)

    def encode_long_text(self, text: str) -> EncodedText | None:
        """Return the pieces of a text that is too long for whole maps, and that pooled maps show; None for another."""
        if not text.strip() or len(text) > self.max_long_text_tokens * MAX_CHARACTERS_PER_TOKEN:
            return None
        if _has_half_character(text):
            return None
        try:
            encoded = self.tokenizer.encode(text)
        except InputError:  # a chat template that fails on it, of which :meth:`encode` tells
            return None
        return encoded if self.max_length < len(encoded.ids) <= self.max_long_text_tokens else None

    def read_long_text(
        self,
        ids: Sequence[int],
        rows: Collection[int] = (),
        *,
        pooled: bool = True,
        on_rows: Callable[[], None] = lambda: None,
    ) -> PooledAttention:
        """Read a text of at most `max_long_text_tokens` tokens, and keep its attention in pooled maps.

        `rows`, `pooled` and `on_rows` as in :func:`attenscope.capture.pooled.capture_pooled_attention`.
        """
        raise NotImplementedError(f"{self.name} reads no long texts: its max_long_text_tokens is 0.")

    def encode_target(self, text: str) -> EncodedText:
        """Return the pieces of a text that the model is to have written. Raises InputError as :meth:`encode` does."""
        return self._check_text(text, self.tokenizer.encode_target)

    def words(self, text: str) -> tuple[int, ...]:
        """Return the ids of some words as they stand inside a target; none for none. Raises InputError."""
        return self._check_text(text, self.tokenizer.encode_without_special_tokens).ids if text.strip() else ()

    def add_forced_prefix(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Return the ids of a given target as every target begins."""
        begin = self.forced.prefix
        return ids if ids[: len(begin)] == begin else (*begin, *ids)

    def _check_text(self, text: str, encode: Callable[[str], EncodedText]) -> EncodedText:
        limit = self.max_length
        if len(text) > limit * MAX_CHARACTERS_PER_TOKEN:
            characters = say("This text has {count:,} characters.", count=len(text))
            raise InputError(join_sentences(characters, self._length_limit_text()))
        if _has_half_character(text):
            raise InputError(say("This text is not valid Unicode: it holds half of a character. Please type it again."))
        encoded = encode(text)
        empty = not encoded.ids or all(one.isspace() or category(one) in ("Cc", "Cf") for one in text)
        if empty or (len(encoded.ids) == 1 and encoded.ids[0] in self.model.end_ids):
            raise InputError(say("There is nothing to translate yet: please type a sentence."))
        if len(encoded.ids) > limit:
            tokens = say("This text has {count:,} tokens.", count=len(encoded.ids))
            raise InputError(join_sentences(tokens, self._length_limit_text()))
        return encoded

    def _length_limit_text(self) -> str:
        limit = say(
            "This model reads {tokens} tokens at most, about {words} words; please shorten the text.",
            tokens=self.max_length,
            words=self.max_length * 2 // 3,
        )
        if not self.max_long_text_tokens:
            return limit
        pooled = say("Explore shows texts of up to {tokens:,} tokens in pooled maps.", tokens=self.max_long_text_tokens)
        return join_sentences(limit, pooled)

    def translate(
        self,
        text: str,
        strategy: Strategy = GREEDY_STRATEGY,
        *,
        max_tokens: int | None = None,
        capture: bool = True,
        on_step: OnStep | None = None,
    ) -> Translation:
        """Translate one sentence, or continue a prompt, and keep the attention of every step. Raises InputError."""
        encoded = self.encode(text)
        source = torch.tensor([encoded.ids], device=self.device)
        strategy = dataclasses.replace(strategy, constraints=self.forced.merge_constraints(strategy.constraints))
        started = time.perf_counter()
        steps: list[DecodingStep] = []
        with capture_attention(self.model) if capture else nullcontext() as recording:

            def so_far() -> Translation:
                return self._translation(text, encoded, steps, started, recording, strategy.name)

            for step in self._make_step_tokens_readable(strategy.steps(self.model, source, max_tokens)):
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
        ids = self.add_forced_prefix(self.encode_target(target).ids) if isinstance(target, str) else tuple(target)
        source = torch.tensor([encoded.ids], device=self.device)
        if len(ids) > self.model.room(len(encoded.ids)) + 1:
            raise InputError(
                say(
                    "This text has {count:,} tokens, more than the model has room for; please shorten it.",
                    count=len(ids),
                )
            )
        started = time.perf_counter()
        with capture_attention(self.model, tensors) if capture else nullcontext() as recording:
            steps = tuple(self._make_step_tokens_readable(teacher_force(self.model, source, ids)))
        return self._translation(text, encoded, steps, started, recording, TEACHER_FORCING)

    def search(
        self,
        text: str,
        width: int,
        alpha: float = 1.0,
        constraints: Constraints = NO_CONSTRAINTS,
        stop: BeamStop = "proven",
        on_step: Callable[[Callable[[], BeamTree]], bool] | None = None,
        max_tokens: int | None = None,
    ) -> BeamTree:
        """Search with `width` beams and keep the whole tree; `alpha` is the length penalty. Raises InputError."""
        source = torch.tensor([self.encode(text).ids], device=self.device)
        constraints = self.forced.merge_constraints(constraints)
        steps: list[BeamStep] = []

        def so_far() -> BeamTree:
            tree = build_beam_tree(steps)
            nodes = (dataclasses.replace(node, token=self.tokenizer.token(node.token_id)) for node in tree.nodes)
            return dataclasses.replace(tree, nodes=tuple(nodes))

        for step in beam_search(self.model, source, width, alpha, max_tokens, constraints, stop):
            steps.append(step)
            if on_step and not on_step(so_far):
                break
        return so_far()

    def check_observer(self, translation: Translation) -> ObserverCheck:
        """Make a captured translation once more without capture, on the tokens that it has, and compare.

        Open the interventions that it was made with. ValueError for one that has no trace.
        """
        source = torch.tensor([translation.source_ids], device=self.device)
        one_pass = translation.trace.settings["decoding"] == TEACHER_FORCING
        return check_observer(self.model, source, translation.steps, one_pass=one_pass)

    def decode_target(self, ids: Sequence[int]) -> str:
        """Return the text of a target, without what every target begins with."""
        begin = self.forced.prefix
        return self.tokenizer.decode(ids[len(begin) :] if tuple(ids[: len(begin)]) == begin else ids)

    def name_trace_axes(self, trace: AttentionTrace, source: Sequence[str], target: Sequence[str]) -> AttentionTrace:
        """Return a trace of this model with its rows and columns named; `target` are the tokens predicted."""
        named = (
            name_translation_trace_rows_columns(trace, source, target, self.tokenizer.token(self.model.start_id))
            if self.can("translate")
            else name_continuation_trace_rows_columns(trace, source, target)
        )
        return mark_special_tokens(named, self.tokenizer.special_tokens)

    def settings(self, decoding: str = "greedy") -> dict[str, Any]:
        """Return what a saved trace says of how it was made."""
        return {"device": self.device.type, "attention": "explicit", "decoding": decoding}

    def _translation(
        self,
        text: str,
        encoded: EncodedText,
        steps: Sequence[DecodingStep],
        started: float,
        recording: Capture | None,
        decoding: str,
    ) -> Translation:
        written = self.decode_target(tuple(step.token_id for step in steps))
        seconds, first_row = time.perf_counter() - started, 0 if self.can("translate") else len(encoded.ids) - 1
        found = Translation(
            text,
            written,
            tuple(steps),
            encoded.ids,
            encoded.tokens,
            encoded.unknown,
            seconds,
            None,
            first_row,
            SPECIAL_TOKENS | self.tokenizer.special_tokens,
        )
        if recording is None:
            return found
        trace = self._add_trace_metadata(recording.trace, found, decoding, encoded.roles)
        return dataclasses.replace(found, captured=trace, seconds=time.perf_counter() - started)

    def _make_step_tokens_readable(self, steps: Iterable[DecodingStep]) -> Iterator[DecodingStep]:
        """The same steps, their tokens as people read them."""
        token = self.tokenizer.token
        for step in steps:
            candidates = tuple(dataclasses.replace(one, token=token(one.token_id)) for one in step.candidates)
            yield dataclasses.replace(step, token=token(step.token_id), candidates=candidates)

    def _add_trace_metadata(
        self,
        trace: AttentionTrace,
        translation: Translation,
        decoding: str,
        roles: Sequence[tuple[str, int, int]],
    ) -> AttentionTrace:
        chat: dict[str, Any] = {}
        if roles:  # The reply ends with the token predicted last, which is a row's name but is not fed in.
            read = len(translation.source_ids)
            chat[ROLES_SETTING] = [*map(list, roles), ["assistant", read, read + len(translation.steps)]]
        return dataclasses.replace(
            self.name_trace_axes(trace, translation.source_tokens, translation.target_tokens),
            source=translation.source,
            target=translation.text,
            model=self.name,
            model_hash=self.weights_hash,
            settings=self.settings(decoding) | chat,
        )


# What a page may ask of a model.


Ability = Literal[
    "write",
    "translate",
    "change heads",
    "lens",
    "word facts",
    "value norms",
    "cache check",
    "attribution",
    "parts",
    "mask trial",
    "backends",
    "positions",
    "position pictures",
    "training",
    "atlas",
    "kept measures",
    "examples",
]
"""What each takes:

- ``write``: a text written token by token, given texts read, beam search;
- ``translate``: an encoder and cross-attention besides;
- ``change heads``: heads switched off, made uniform or copied, and the effect of each;
- ``lens``: the residual stream behind each layer, read as if it were the last, and put into another run;
- ``word facts``: the source words and the heads behind a word;
- ``value norms``: output projections;
- ``cache check``: a copy in float64, decoded in three ways;
- ``attribution``: what a word rests on, the page Why;
- ``parts``: of that, a logit and an attention score as sums over the parts of the residual stream;
- ``mask trial``: masks replaced, inputs poked;
- ``backends``: kernels of transformers, caches, paddings and packing compared;
- ``positions``: a positional table that is added to the token embeddings, to be read and changed;
- ``position pictures``: that table drawn and explained, and heads told by the places they look at;
- ``training``: history, snapshots, card and configuration;
- ``atlas``: measures of its heads over a corpus, made beforehand;
- ``kept measures``: what else is kept beside its weights of its heads: alignment, pruning, the course of training;
- ``examples``: the sentences and the tour that come with this project, which were chosen for its models.
"""
ABILITIES: tuple[Ability, ...] = get_args(Ability)

# A module that only reads: the user's own, or an encoder.


class LocalError(ValueError):
    """A model that cannot be made, or that cannot read a sentence; the message is the sentence to show."""


@dataclass(frozen=True, eq=False)
class LocalModel:
    """A module and the function that runs it."""

    name: str
    model: nn.Module
    run: Callable[[str], TokenNames]
    special_tokens: AbstractSet[str] = SPECIAL_TOKENS
    """Tokens that stand for no text."""

    @torch.no_grad()
    def trace(self, text: str) -> AttentionTrace:
        """Everything the module attends to while it reads `text`. Raises LocalError with what the function raised."""
        try:
            with capture_attention(self.model, TENSOR_NAMES) as capture:
                capture.tokens = self.run(text)
            return mark_special_tokens(capture.sample(0), self.special_tokens)
        except Exception as error:  # a stranger's code may raise anything, and the server goes on
            said = say(
                "{model} could not read this sentence: {error}", model=self.name, error=one_line_error_text(error)
            )
            raise LocalError(said) from error


def one_line_error_text(error: BaseException) -> str:
    """Return what a stranger's code raised, in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return f"{type(error).__name__}: {text[:300]}" if text != type(error).__name__ else text
