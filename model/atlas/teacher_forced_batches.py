"""Run batches of tokenized and tagged sentences through a model by teacher forcing, and record its activations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from ..attribution.logit import list_sublayers
from ..capture.attention import AttentionSite, find_attention_sites
from ..language import to_say
from ..network.abstract_model import AutoregressiveModel, pad_ids, shift_right
from ..network.attention import combine_masks, make_causal_mask, make_padding_mask
from ..network.config import BOS_ID, PAD_ID
from ..network.hooks import record_outputs
from ..network.transformer import Transformer
from ..runnable_model import TextTokenizer
from ..text.parts_of_speech import START_TAG, is_punctuation, tag_words
from ..text.words import SPECIAL_TOKENS, START_TOKEN, group_tokens_into_words, join_word
from ..trace import KINDS, Kind

TOKENS_A_BATCH = 1000
"""Source and target tokens of a batch, padding included."""
MEMORY_KEY = "memory"
"""The key of the encoder's output among the tensors of a run."""


class SpecialIds(NamedTuple):
    """The ids that a model is fed besides those of a text."""

    start: int = BOS_ID
    pad: int | None = PAD_ID
    """None where there is none, so that a batch has one sentence."""

    @classmethod
    def from_model(cls, model: AutoregressiveModel) -> SpecialIds:
        # What fills up a text behind its end is seen by no token before it where a decoder alone reads it.
        return cls(model.start_id, model.start_id if model.is_decoder_alone else model.pad_id)


DEFAULT_IDS = SpecialIds()


@dataclass(frozen=True, eq=False)
class Sentence:
    """A sentence with its translation, or a text that a decoder alone reads, as ids and as tokens."""

    line: int
    """From 0: its number in every table of an atlas."""
    source: str
    target: str
    source_ids: tuple[int, ...]
    target_ids: tuple[int, ...]
    source_side: TokenizedSide
    target_side: TokenizedSide
    """The tokens predicted."""
    start: str = START_TOKEN
    """What the target begins with when it is fed in."""
    fed_side: TokenizedSide | None = None
    """Of a text that a decoder alone reads, the tokens fed in: all but its last."""

    @classmethod
    def from_decoder_only_text(cls, line: int, text: str, ids: Sequence[int], whole: TokenizedSide) -> Sentence:
        """A text of N ids, `whole` as tokens, for a decoder alone: its first token is the source, the rest the target.

        So N - 1 tokens are fed in, each to predict the next.
        """
        sides = whole.select(slice(1)), whole.select(slice(1, None))
        return cls(line, text, "", tuple(ids[:1]), tuple(ids[1:]), *sides, fed_side=whole.select(slice(-1)))

    @classmethod
    def from_source_and_target(
        cls,
        line: int,
        texts: tuple[str, str],
        ids: tuple[Sequence[int], Sequence[int]],
        tokenizer: TextTokenizer,
        languages: tuple[str, str],
        start: str = START_TOKEN,
    ) -> Sentence:
        """Name and tag the tokens of both sides."""
        sides = [
            tag_parts_of_speech([tokenizer.token(one) for one in row], language)
            for row, language in zip(ids, languages, strict=True)
        ]
        return cls(line, *texts, tuple(ids[0]), tuple(ids[1]), sides[0], sides[1], start)

    def sides(self, kind: Kind) -> tuple[TokenizedSide, TokenizedSide]:
        """Queries and keys of a map: of the decoder's the tokens fed in, of the cross map's rows those predicted."""
        if self.fed_side is not None:
            return self.fed_side, self.fed_side
        if kind == "cross":
            return self.target_side, self.source_side
        side = self.source_side if kind == "encoder" else self.target_side.shift_for_decoder(self.start)
        return side, side


@dataclass(frozen=True, eq=False)
class Batch:
    """Sentences of like length, padded."""

    sentences: tuple[Sentence, ...]
    source: Tensor
    """(B, S)"""
    target_in: Tensor
    """(B, T), the start first."""
    target_out: Tensor
    """(B, T)"""

    def select_rows(self, rows: slice) -> Batch:
        """Return some of the sentences as they are padded here."""
        return Batch(self.sentences[rows], self.source[rows], self.target_in[rows], self.target_out[rows])

    def allowed_cells(self, kind: Kind) -> Tensor:
        """Return what may be attended to, in rows that are no padding: (B, Q, K) bool."""
        queries, keys = self.real(kind)
        found = queries[:, :, None] & keys[:, None, :]
        return found.tril() if kind == "decoder" else found

    def real(self, kind: Kind) -> tuple[Tensor, Tensor]:
        """Return which queries (B, Q) and keys (B, K) are no padding."""
        source, target = map(_real_token_mask, (self.source, self.target_out), _source_and_target_ids(self.sentences))
        return (source if kind == "encoder" else target), (target if kind == "decoder" else source)


@dataclass(frozen=True, eq=False)
class BatchRun:
    """What one pass of a batch computed."""

    batch: Batch
    sites: tuple[AttentionSite, ...]
    tensors: dict[str, Tensor]
    """By module path."""
    log_probs: Tensor
    """(B, T) of the target tokens, 0 at padding; natural logarithm."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The maps that the model has."""
        return tuple(kind for kind in KINDS if any(site.kind == kind for site in self.sites))

    def sites_of_kind(self, kind: Kind) -> list[AttentionSite]:
        """The attention modules of a map, in the order of their layers."""
        return sorted((site for site in self.sites if site.kind == kind), key=lambda site: site.layer)

    def weights(self, kind: Kind) -> Tensor:
        """(B, L, H, Q, K)"""
        return torch.stack([self.tensors[f"{site.path}.weights"] for site in self.sites_of_kind(kind)], 1)


def make_batches(sentences: Sequence[Sentence], device: torch.device, ids: SpecialIds = DEFAULT_IDS) -> Iterator[Batch]:
    """Yield sentences of like length together; what is in a batch depends on these sentences alone."""
    ordered = sorted(sentences, key=lambda one: (len(one.source_ids), len(one.target_ids), one.line))
    rows: list[Sentence] = []
    for one in ordered:
        widths = [max(len(row) for row in side) for side in _source_and_target_ids([*rows, one])]
        if rows and (ids.pad is None or (len(rows) + 1) * sum(widths) > TOKENS_A_BATCH):
            yield pad_batch(rows, device, ids)
            rows = []
        rows.append(one)
    if rows:
        yield pad_batch(rows, device, ids)


def pad_batch(sentences: Sequence[Sentence], device: torch.device, ids: SpecialIds = DEFAULT_IDS) -> Batch:
    """Pad sentences to one length."""
    fill = PAD_ID if ids.pad is None else ids.pad
    source, target_out = (pad_ids(rows, fill).to(device) for rows in _source_and_target_ids(sentences))
    batch = Batch(tuple(sentences), source, target_out, target_out)
    target_in = shift_right(target_out, ids.start).masked_fill(~batch.real("decoder")[0], fill)
    return Batch(tuple(sentences), source, target_in, target_out)


@torch.inference_mode()
def run_batch(model: AutoregressiveModel, batch: Batch) -> BatchRun:
    """Read a batch with every hook point that the measures use recorded; of our own models the streams too."""
    sites = find_attention_sites(model)
    points = [f"{site.path}.{point}" for site in sites for point in ("weights", "context")]
    if isinstance(model, Transformer):
        points += [name for name, _ in model.named_modules() if name.endswith(".stream")]
        points += [block.path for block in list_sublayers(model, "decoder")]
    with record_outputs(model, *points) as tensors:
        memory = model.encode(batch.source)
        states = model.decode(batch.target_in, memory, model.source_mask(batch.source))
    tensors[MEMORY_KEY] = memory
    return BatchRun(
        batch,
        tuple(sites),
        tensors,
        compute_target_log_probs(model, states, batch.target_out, batch.real("decoder")[0]),
    )


def compute_target_log_probs(model: AutoregressiveModel, states: Tensor, target: Tensor, real: Tensor) -> Tensor:
    """states (B, T, D) before the generator, target (B, T) -> log-probabilities of its tokens (B, T), 0 at padding.

    real (B, T) bool: what is no padding.
    """
    logits = model.generator(states[real])
    found = torch.zeros(target.shape, device=target.device)
    found[real] = logits.gather(-1, target[real][:, None])[:, 0] - logits.logsumexp(-1)
    return found


def make_decoder_mask(batch: Batch) -> Tensor | None:
    """Return the mask of the decoder's self-attention, as the model makes it."""
    target = batch.target_in
    return combine_masks(make_causal_mask(target.shape[1], device=target.device), make_padding_mask(target, PAD_ID))


@torch.inference_mode()
def compute_word_order_invariance(model: AutoregressiveModel, found: BatchRun) -> dict[Kind, Tensor]:
    """Return the share of each row's weight that stays on its tokens when the words of the source change places.

    The words are put in a random order that is the same in every run, pieces of a word kept together and </s> at the
    end; the translation is given as it was. -> (B, L, H, Q), 0 to 1 for each map: sum over the keys of the lesser of
    both weights. NaN for sentences of one word. No map has it in a decoder alone, which has no source.
    """
    if model.is_decoder_alone:
        return {}
    batch = found.batch
    orders = [sample_word_permutation(one) for one in batch.sentences]
    width = batch.source.shape[1]
    padded = np.stack([np.concatenate([order, np.arange(len(order), width)]) for order in orders])
    places = torch.tensor(padded, device=batch.source.device)
    moved = Batch(batch.sentences, batch.source.gather(1, places), batch.target_in, batch.target_out)
    after = run_batch(model, moved)
    back = places.argsort(1)
    kept = torch.tensor([bool((np.diff(order) != 1).any()) for order in orders], device=back.device)
    overlaps: dict[Kind, Tensor] = {}
    for kind in found.kinds:
        weights, other = found.weights(kind), after.weights(kind)
        if kind != "decoder":
            other = other.gather(-1, back[:, None, None, None, :].expand_as(other))
        if kind == "encoder":
            other = other.gather(-2, back[:, None, None, :, None].expand_as(other))
        same = torch.minimum(weights, other).sum(-1)
        overlaps[kind] = same.masked_fill(~kept[:, None, None, None], torch.nan)
    return overlaps


def find_allowed_pattern_cells(found: BatchRun, kind: Kind) -> Tensor:
    """Return the cells of every place that may be attended to: (B, Q, K, P) bool."""
    batch = found.batch
    allowed = batch.allowed_cells(kind)
    cells = torch.zeros((*allowed.shape, len(PLACES)), dtype=torch.bool, device=allowed.device)
    for row, sentence in enumerate(batch.sentences):
        own = torch.from_numpy(find_nonalignment_pattern_cells(kind, *sentence.sides(kind)))
        cells[row, : own.shape[0], : own.shape[1]] = own
    if kind == "cross":
        predicted, fed = find_aligned_cells(found)
        cells[..., PLACES.index(ALIGNED_PLACES[0])], cells[..., PLACES.index(ALIGNED_PLACES[1])] = predicted, fed
    return cells & allowed[..., None]


def find_aligned_cells(found: BatchRun) -> tuple[Tensor, Tensor]:
    """Return the source token that the mean of all cross-attention heads points to, at both readings.

    (B, Q, K) bool each; :func:`model.analysis.heads.find_alignment_cells` does the same for one sentence.
    """
    mean = found.weights("cross").double().mean((1, 2))
    for row, sentence in enumerate(found.batch.sentences):
        special = torch.from_numpy(sentence.source_side.special)
        if not special.all():
            mean[row, :, : len(special)].masked_fill_(special.to(mean.device), 0.0)
    keys = torch.nn.functional.one_hot(mean.argmax(-1), mean.shape[-1]).bool()
    text = torch.zeros(mean.shape[:2], dtype=torch.bool, device=mean.device)
    for row, sentence in enumerate(found.batch.sentences):
        special = torch.from_numpy(sentence.target_side.special)
        text[row, : len(special)] = torch.ones_like(special) if special.all() else ~special
    predicted = keys & text[..., None]
    return predicted, torch.cat([torch.zeros_like(predicted[:, :1]), predicted[:, :-1]], 1)


def sample_word_permutation(sentence: Sentence) -> np.ndarray:
    """A random order of the source's tokens, words kept whole, that is not the order they have."""
    numbers = sentence.source_side.word_numbers
    special = sentence.source_side.special
    words = np.unique(numbers[~special])
    tokens = np.arange(len(numbers))
    if len(words) < 2:
        return tokens
    random, order = np.random.default_rng(sentence.line), words
    while (order == words).all():
        order = random.permutation(words)
    return np.concatenate([*(tokens[numbers == word] for word in order), tokens[special]])


def _real_token_mask(padded: Tensor, rows: Sequence[Sequence[int]]) -> Tensor:
    """(B, N) bool: what is no padding, by the length of each row."""
    lengths = torch.tensor([[len(one)] for one in rows], device=padded.device)
    return torch.arange(padded.shape[1], device=padded.device) < lengths


def _source_and_target_ids(sentences: Sequence[Sentence]) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    return [one.source_ids for one in sentences], [one.target_ids for one in sentences]


# Places that a head may look at in every row, as cells of an attention map.


Place = Literal[
    "same",
    "previous",
    "next",
    "first",
    "last",
    "end",
    "punctuation",
    "same_word",
    "later_piece",
    "rare",
    "aligned_predicted",
    "aligned_fed",
    "induction",
    "duplicate",
]
PLACES: tuple[Place, ...] = get_args(Place)
ALIGNED_PLACES: tuple[Place, Place] = ("aligned_predicted", "aligned_fed")
"""Known only once the weights are: see :func:`find_aligned_cells`."""
REPETITION_PLACES: tuple[Place, Place] = ("induction", "duplicate")
"""Where a decoder's head looks that knows what stood before; :mod:`.build` measures them on random tokens too."""
SELF_ATTENTION_PLACES: frozenset[Place] = frozenset({"same", "previous", "next", "later_piece"})
PLACE_NAMES: MappingProxyType[Place, str] = MappingProxyType(
    {
        "same": to_say("the token itself"),
        "previous": to_say("previous token"),
        "next": to_say("next token"),
        "first": to_say("first token"),
        "last": to_say("last token before </s>"),
        "end": "</s>",
        "punctuation": to_say("punctuation"),
        "same_word": to_say("the same word"),
        "later_piece": to_say("later piece of the word"),
        "rare": to_say("words in several pieces"),
        "aligned_predicted": to_say("alignment of the token predicted"),
        "aligned_fed": to_say("alignment of the token fed in"),
        "induction": to_say("induction"),
        "duplicate": to_say("duplicate token"),
    }
)


def find_nonalignment_pattern_cells(kind: Kind, queries: TokenizedSide, keys: TokenizedSide) -> np.ndarray:
    """Return the cells of every place but the alignments, whatever may be attended to: (Q, K, P) bool.

    In self-attention queries and keys are the tokens fed in; in cross-attention the queries are the tokens predicted.
    Induction is the prefix matching of Olsson et al. (2022), the token after an earlier one like the query's;
    duplicate token heads (Wang et al. 2022) look at that earlier one. The query itself and special tokens are neither.
    """
    count = len(queries.pieces), len(keys.pieces)
    rows, columns = np.indices(count)
    spelled = queries.lower_case_words()[:, None]
    end = keys.special & (columns[0] > 0)
    text = np.flatnonzero(~keys.special)
    same_word = (spelled == keys.lower_case_words()) & (spelled != "")
    found: dict[Place, np.ndarray] = {
        "first": columns == 0,
        "end": np.broadcast_to(end, count),
        "punctuation": np.broadcast_to(keys.punctuation, count),
        "rare": np.broadcast_to(keys.split_word_mask, count),
    }
    if kind != "decoder" and text.size:
        found["last"] = columns == text[-1]
    if kind != "cross":
        same = rows == columns
        found |= {"same": same, "previous": columns == rows - 1, "next": columns == rows + 1}
        found["later_piece"] = (queries.word_numbers[:, None] == keys.word_numbers) & (columns > rows)
        same_word = same_word & ~same
    if kind == "decoder":
        pieces = np.array(queries.pieces, dtype=object)
        earlier = columns < rows
        repeats = (pieces[:, None] == pieces) & ~queries.special[:, None] & earlier
        after = np.pad(repeats, ((0, 0), (1, 0)))[:, :-1]
        found |= {"induction": after & earlier, "duplicate": repeats}
    found["same_word"] = same_word
    nowhere = np.zeros(count, dtype=bool)
    return np.stack([found.get(place, nowhere) for place in PLACES], -1)


# The tokens of one side of a sentence, with the word and the part of speech of each.


@dataclass(frozen=True, eq=False)
class TokenizedSide:
    """The N tokens of a source or a translation."""

    pieces: tuple[str, ...]
    words: tuple[str, ...]
    """(N,) the word that each piece is of, without spaces around it."""
    tags: tuple[str, ...]
    """(N,) the part of speech of that word."""
    word_numbers: np.ndarray
    """(N,) the number of that word, from 0."""

    @property
    def special(self) -> np.ndarray:
        """(N,) bool: the tokens that stand for no text."""
        return np.array([piece in SPECIAL_TOKENS for piece in self.pieces])

    @property
    def punctuation(self) -> np.ndarray:
        """(N,) bool: the tokens of words that are punctuation."""
        return np.array([is_punctuation(one) for one in self.words])

    @property
    def split_word_mask(self) -> np.ndarray:
        """(N,) bool: the tokens of words that the tokenizer cuts into two pieces or more."""
        return np.bincount(self.word_numbers)[self.word_numbers] > 1

    def lower_case_words(self) -> np.ndarray:
        """(N,) the word of each token in lower case; "" where it is no word but punctuation or a special token."""
        no_word = self.special | self.punctuation
        return np.array(["" if no else one.casefold() for one, no in zip(self.words, no_word, strict=True)], dtype=str)

    def select(self, tokens: slice) -> TokenizedSide:
        """Return some of the tokens, each with the word that it is of."""
        return TokenizedSide(self.pieces[tokens], self.words[tokens], self.tags[tokens], self.word_numbers[tokens])

    def shift_for_decoder(self, start: str = START_TOKEN) -> TokenizedSide:
        """Return the tokens fed in where these are predicted: the start, then all but the last."""
        return TokenizedSide(
            (start, *self.pieces[:-1]),
            (start, *self.words[:-1]),
            (START_TAG, *self.tags[:-1]),
            np.concatenate([[0], self.word_numbers[:-1] + 1]),
        )


def tag_parts_of_speech(pieces: Sequence[str], language: str) -> TokenizedSide:
    """Merge pieces into words and tag these."""
    groups = group_tokens_into_words(pieces)
    spelled = [join_word(pieces[group.start : group.stop]).strip() for group in groups]
    numbers = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    tags = tag_words(spelled, language)
    return TokenizedSide(
        tuple(pieces), tuple(spelled[at] for at in numbers), tuple(tags[at] for at in numbers), numbers
    )
