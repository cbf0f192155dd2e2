"""Tokens of a corpus in one plane: queries and keys of a head, encoder outputs, or token embeddings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import torch

from ..capture.attention import find_attention_sites
from ..language import say
from ..network.hooks import record_outputs
from ..network.transformer import Transformer
from ..runnable_model import RunnableModel
from ..text.words import join_word
from ..trace import Head, Kind
from .duckdb_queries import run_query
from .files import SENTENCES_TABLE, AtlasError
from .query import Atlas
from .teacher_forced_batches import MEMORY_KEY, Batch, Sentence, SpecialIds, TokenizedSide, make_batches

ProjectionSpace = Literal["queries and keys", "encoder outputs", "token embeddings"]
MAX_TOKENS = 4000
"""Source and target tokens that are drawn at most."""
_SAMPLE_QUERY = """
    WITH asked AS (
        FROM {table} SELECT *, $2 <> '' AND contains(lower(source || ' ' || target), lower($2)) AS has
    ), counted AS (
        FROM asked SELECT *, count(*) OVER () AS lines,
            sum(len(source_pieces) + len(target_pieces)) OVER (ORDER BY has DESC, hash(sentence), sentence) AS total
    )
    SELECT * EXCLUDE (total, has) FROM counted WHERE total <= $3 ORDER BY sentence
"""


@dataclass(frozen=True, eq=False)
class Projection:
    """N tokens in the plane of their two principal components."""

    tokens: pd.DataFrame
    """A row a token: x, y, side (query, key or ""), text (source, target or target in, fed in), sentence, place in it,
    piece, word and tag."""
    shares: tuple[float, float]
    """Of the variance: the first component's and the second's."""
    width: int
    """Numbers of a vector."""
    sides: dict[tuple[int, str], tuple[str, ...]]
    """By sentence and side ("source", "target in" or "target"): its tokens."""
    lines: int
    """Sentences that the corpus has; those drawn are fewer where it is long."""

    @property
    def sentences(self) -> int:
        return self.tokens["sentence"].nunique()


def project_tokens(
    translator: RunnableModel, atlas: Atlas, space: ProjectionSpace, head: Head, asked: str = ""
) -> Projection:
    """Run the model over sentences of its atlas and project the vectors of their tokens into one plane.

    Where the corpus has more than MAX_TOKENS, sentences that hold the text `asked` come first, then others at random,
    the same every time. `head` is the one whose queries and keys are meant. Raises AtlasError for an atlas that is
    damaged.
    """
    found = run_query(atlas.folder, SENTENCES_TABLE, _SAMPLE_QUERY, [asked, MAX_TOKENS])
    sentences = _rebuild_sentences(translator, found)
    if not sentences:
        raise AtlasError(say("This corpus has no sentence that is short enough to be drawn."))
    if space == "token embeddings":
        tokens, vectors = _look_up_embeddings(translator, sentences)
    elif space == "encoder outputs":
        tokens, vectors = _compute_encoder_outputs(translator, sentences)
    else:
        tokens, vectors = _compute_queries_and_keys(translator, sentences, head)
    plane, shares = project_to_principal_plane(vectors)
    named = {"source": "source_side", "target": "target_side"}
    sides = {(one.line, name): getattr(one, side).pieces for one in sentences for name, side in named.items()}
    sides |= {(one.line, "target in"): one.sides("decoder")[0].pieces for one in sentences}
    placed = tokens.assign(x=plane[:, 0], y=plane[:, 1])
    return Projection(placed, shares, vectors.shape[1], sides, int(found["lines"].iloc[0]))


def project_to_principal_plane(vectors: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """(N, D) -> (N, 2) along the two directions of most variance, and the share of it that each holds.

    Of the two signs of a direction, its largest number has the positive one.
    """
    centred = vectors - vectors.mean(0)
    variances, directions = np.linalg.eigh(centred.T @ centred)
    most = directions[:, [-1, -2]]
    most = most * np.sign(most[np.abs(most).argmax(0), [0, 1]])
    total = max(float(variances.sum()), np.finfo(float).tiny)
    return centred @ most, (float(variances[-1]) / total, float(variances[-2]) / total)


def normalize_queries_and_keys(queries: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Put queries (N, D) and keys (M, D) onto one centre and one mean length, which changes no attention weight.

    The same vector added to every key adds the same number to all scores of a row, which softmax takes out; and what
    the keys are divided by the queries are multiplied with (Yeh et al. 2023, arXiv 2305.03210, section 4).
    """
    moved = keys - keys.mean(0) + queries.mean(0)
    lengths = [float(np.linalg.norm(one, axis=1).mean()) for one in (queries, moved)]
    scale = (lengths[1] / lengths[0]) ** 0.5 if all(lengths) else 1.0
    return queries * scale, moved / scale


def _rebuild_sentences(translator: RunnableModel, found: pd.DataFrame) -> list[Sentence]:
    """The sentences of the table as the model reads them, piece by piece."""
    tokenizer = translator.tokenizer
    names = [tokenizer.token(one) for one in range(len(tokenizer))]
    ids = {name: one for one, name in enumerate(names)}
    ambiguous = {name for name, count in Counter(names).items() if count > 1}
    start = tokenizer.token(translator.model.start_id)
    made = []
    for row in found.to_dict("records"):
        if translator.model.is_decoder_alone:
            pieces, numbers, tags = (
                np.concatenate([row[f"{side}_{name}"] for side in ("source", "target")])
                for name in ("pieces", "words", "tags")
            )
            source = _rebuild_side(pieces.tolist(), numbers, tags.tolist())
            target = _rebuild_side((), np.array([], dtype=int), ())
        else:
            source, target = (
                _rebuild_side(row[f"{side}_pieces"], row[f"{side}_words"], row[f"{side}_tags"])
                for side in ("source", "target")
            )
        if alike := ambiguous.intersection({*source.pieces, *target.pieces}):
            raise AtlasError(
                say(
                    "Several pieces of this model's vocabulary are written {piece!r}, so it is not known which of them "
                    "the atlas means.",
                    piece=min(alike),
                )
            )
        source_ids, target_ids = (tuple(ids[piece] for piece in side.pieces) for side in (source, target))
        texts = row["source"], row["target"]
        if translator.model.is_decoder_alone:
            made.append(Sentence.from_decoder_only_text(row["sentence"], texts[0], source_ids, source))
        else:
            made.append(Sentence(row["sentence"], *texts, source_ids, target_ids, source, target, start))
    return made


def _rebuild_side(pieces: Sequence[str], numbers: np.ndarray, tags: Sequence[str]) -> TokenizedSide:
    groups = [np.flatnonzero(numbers == one).tolist() for one in range(int(max(numbers, default=-1)) + 1)]
    spelled = [join_word([pieces[at] for at in group]).strip() for group in groups]
    return TokenizedSide(tuple(pieces), tuple(spelled[at] for at in numbers), tuple(tags), np.asarray(numbers))


def _build_token_table(line: int, side: TokenizedSide, name: str, role: str = "") -> pd.DataFrame:
    columns = {"piece": side.pieces, "word": side.words, "tag": side.tags, "place": range(len(side.pieces))}
    return pd.DataFrame({"side": role, "text": name, "sentence": line, **columns})


@torch.inference_mode()
def _compute_encoder_outputs(
    translator: RunnableModel, sentences: Sequence[Sentence]
) -> tuple[pd.DataFrame, np.ndarray]:
    tables, vectors = [], []
    for batch, tensors in _iterate_recorded_batches(translator, sentences, [], "encoder"):
        for at, one in enumerate(batch.sentences):
            tables.append(_build_token_table(one.line, one.source_side, "source"))
            vectors.append(tensors[MEMORY_KEY][at, : len(one.source_ids)].double().numpy(force=True))
    return pd.concat(tables, ignore_index=True), np.concatenate(vectors)


@torch.inference_mode()
def _compute_queries_and_keys(
    translator: RunnableModel, sentences: Sequence[Sentence], head: Head
) -> tuple[pd.DataFrame, np.ndarray]:
    kind, layer, number = head
    site = next(one for one in find_attention_sites(translator.model) if (one.kind, one.layer) == (kind, layer))
    points = [f"{site.path}.{name}" for name in "qk"]
    tables: dict[str, list[pd.DataFrame]] = {"query": [], "key": []}
    vectors: dict[str, list[np.ndarray]] = {"query": [], "key": []}
    names = {"encoder": ("source", "source"), "decoder": ("target in", "target in"), "cross": ("target", "source")}
    for batch, tensors in _iterate_recorded_batches(translator, sentences, points, kind):
        for at, one in enumerate(batch.sentences):
            for role, point, side, name in zip(tables, points, one.sides(kind), names[kind], strict=True):
                tables[role].append(_build_token_table(one.line, side, name, role))
                own = tensors[point][at, number, : len(side.pieces)]
                vectors[role].append(own.double().numpy(force=True))
    both = normalize_queries_and_keys(np.concatenate(vectors["query"]), np.concatenate(vectors["key"]))
    return pd.concat([*tables["query"], *tables["key"]], ignore_index=True), np.concatenate(both)


@torch.inference_mode()
def _look_up_embeddings(translator: RunnableModel, sentences: Sequence[Sentence]) -> tuple[pd.DataFrame, np.ndarray]:
    """A row a piece of the source, or of what a decoder alone is fed, where it stands first."""
    if translator.model.is_decoder_alone:
        tables = [_build_token_table(one.line, one.sides("decoder")[0], "target in") for one in sentences]
        ids = np.concatenate([[*one.source_ids, *one.target_ids[:-1]] for one in sentences])
    else:
        tables = [_build_token_table(one.line, one.source_side, "source") for one in sentences]
        ids = np.concatenate([one.source_ids for one in sentences])
    table = pd.concat(tables, ignore_index=True)
    _, first = np.unique(ids, return_index=True)
    first = np.sort(first)
    chosen, model = torch.from_numpy(ids[first]).to(translator.device), translator.model
    table_of = model.source_embedding.table if isinstance(model, Transformer) else model.token_embedding("source")
    weights: torch.Tensor = table_of(chosen)
    return table.iloc[first].reset_index(drop=True), weights.double().numpy(force=True)


def _iterate_recorded_batches(
    translator: RunnableModel, sentences: Sequence[Sentence], points: Sequence[str], kind: Kind
) -> Iterator[tuple[Batch, dict[str, torch.Tensor]]]:
    """Batches, with what the model computes at these points; of the encoder alone where it is enough."""
    model = translator.model
    for batch in make_batches(sentences, translator.device, SpecialIds.from_model(model)):
        with record_outputs(model, *points) as tensors:
            memory = model.encode(batch.source)
            if kind != "encoder":
                model.decode(batch.target_in, memory, model.source_mask(batch.source))
        yield batch, tensors | {MEMORY_KEY: memory}
