"""Tokens in a plane: the same vectors as from single sentences, principal components, and no weight changed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attenscope.atlas import projection
from attenscope.atlas.projection import (
    ProjectionSpace,
    normalize_queries_and_keys,
    project_to_principal_plane,
    project_tokens,
)
from attenscope.atlas.query import Atlas
from attenscope.capture.attention import capture_attention
from attenscope.network.abstract_model import shift_right
from attenscope.trace import KINDS, Kind
from attenscope.translate import Translator


def test_the_plane_is_that_of_the_singular_vectors() -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 7)) * np.arange(1, 8) + 3
    plane, shares = project_to_principal_plane(vectors)
    centred = vectors - vectors.mean(0)
    _, values, directions = np.linalg.svd(centred, full_matrices=False)
    for at in range(2):
        expected = centred @ directions[at]
        expected *= np.sign(directions[at][np.abs(directions[at]).argmax()])
        np.testing.assert_allclose(plane[:, at], expected, atol=1e-9)
        assert shares[at] == pytest.approx(values[at] ** 2 / (values**2).sum())
    for one, other in ((0, 1), (3, 40)):  # What is far apart in the plane is far apart.
        apart = np.linalg.norm(vectors[one] - vectors[other])
        assert np.linalg.norm(plane[one] - plane[other]) <= apart + 1e-9
    plane, shares = project_to_principal_plane(np.ones((3, 4)))
    assert not plane.any()
    assert shares == (0.0, 0.0)


def test_one_centre_and_one_length_change_no_weight() -> None:
    random = np.random.default_rng(1)
    queries, keys = random.normal(size=(6, 5)) * 3 + 1, random.normal(size=(9, 5)) - 2
    weights = [
        torch.softmax(torch.from_numpy(q @ k.T), -1).numpy()
        for q, k in ((queries, keys), normalize_queries_and_keys(queries, keys))
    ]
    np.testing.assert_allclose(weights[0], weights[1], atol=1e-12)
    lengths = [np.linalg.norm(one, axis=1).mean() for one in normalize_queries_and_keys(queries, keys)]
    assert lengths[0] == pytest.approx(lengths[1])


@pytest.mark.parametrize("kind", KINDS)
def test_queries_and_keys_are_those_of_single_sentences(atlas: Atlas, toy_translator: Translator, kind: Kind) -> None:
    head = (kind, 1, 0)
    found = project_tokens(toy_translator, atlas, "queries and keys", head)
    queries, keys = [], []
    pieces: dict[str, list[str]] = {"query": [], "key": []}
    for line in found.tokens["sentence"].unique():
        source, target = (found.sides[line, name] for name in ("source", "target"))
        ids = [torch.tensor([[_id(toy_translator, one) for one in side]]) for side in (source, target)]
        with torch.no_grad(), capture_attention(toy_translator.model, ("q", "k")) as capture:
            toy_translator.model(ids[0], shift_right(ids[1]))
        own = capture.trace.maps[kind].tensors
        queries.append(own["q"][1, 0])
        keys.append(own["k"][1, 0])
        names = {"encoder": (source, source), "decoder": (("<s>", *target[:-1]),) * 2, "cross": (target, source)}
        for role, side in zip(pieces, names[kind], strict=True):
            pieces[role] += side
    moved = np.concatenate(
        normalize_queries_and_keys(np.concatenate(queries).astype(float), np.concatenate(keys).astype(float))
    )
    np.testing.assert_allclose(found.tokens[["x", "y"]], project_to_principal_plane(moved)[0], atol=1e-3)
    assert found.tokens["piece"].tolist() == [*pieces["query"], *pieces["key"]]
    assert found.lines == found.sentences == atlas.manifest.sentences


@pytest.mark.parametrize("space", ["encoder outputs", "token embeddings"])
def test_what_each_token_is(atlas: Atlas, toy_translator: Translator, space: ProjectionSpace) -> None:
    found = project_tokens(toy_translator, atlas, space, atlas.names[0])
    assert found.width == toy_translator.model.config.d_model
    for row in found.tokens.to_dict("records"):
        assert found.sides[row["sentence"], row["text"]][row["place"]] == row["piece"]
    if space == "token embeddings":
        assert found.tokens["piece"].is_unique
        weights = toy_translator.model.source_embedding.table.weight.detach().double().numpy()
        ids = [_id(toy_translator, piece) for piece in found.tokens["piece"]]
        np.testing.assert_allclose(found.tokens[["x", "y"]], project_to_principal_plane(weights[ids])[0], atol=1e-6)


def test_sentences_with_the_word_come_first(
    atlas: Atlas, toy_translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = project_tokens(toy_translator, atlas, "encoder outputs", atlas.names[0]).tokens
    rare = str(everything.groupby("word")["sentence"].nunique().idxmin())
    own = set(everything[everything["word"] == rare]["sentence"])
    monkeypatch.setattr(projection, "MAX_TOKENS", 60)
    for word in (rare, rare.upper()):
        found = project_tokens(toy_translator, atlas, "encoder outputs", atlas.names[0], word)
        assert own <= set(found.tokens["sentence"])
        assert found.sentences < found.lines == atlas.manifest.sentences
        assert sum(len(found.sides[line, side]) for line, side in found.sides if side != "target in") <= 60


def _id(translator: Translator, piece: str) -> int:
    found = translator.tokenizer.piece_id(piece)
    assert found is not None
    return found
