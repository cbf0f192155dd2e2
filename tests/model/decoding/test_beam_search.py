"""Beam search against Hugging Face's generate, against trying everything, and by the tree it leaves."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from attenscope.capture.attention import capture_attention
from attenscope.decoding.beam import BeamTree, beam_search, beam_search_batch, build_beam_tree
from attenscope.decoding.greedy_and_sampling import Constraints, decode_greedily
from attenscope.network.config import BOS_ID, EOS_ID, PAD_ID
from attenscope.network.transformer import Transformer
from tests import toy
from tests.model.decoding.generation import generate

SOURCE = torch.tensor([[17, 40, 9, 63, EOS_ID]])
BATCH = torch.tensor([[17, 40, 9, 63, EOS_ID], [12, 55, EOS_ID, PAD_ID, PAD_ID], [80, 81, 82, EOS_ID, PAD_ID]])
LIMIT = 10


def lively(seed: int) -> Transformer:
    """Random weights with sharp opinions and a liking for </s>, so that searches end at different lengths."""
    model = toy.random_model(seed, shared_embedding=False, tied_generator=False, generator_bias=True)
    with torch.no_grad():
        model.generator.weight *= 3
        model.generator.bias[EOS_ID] += 3.5
    return model


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
def test_the_best_are_those_of_hugging_face(width: int, alpha: float) -> None:
    lengths = set()
    for seed in range(2):
        model = lively(seed)
        expected = generate(
            model,
            BATCH,
            max_new_tokens=LIMIT,
            do_sample=False,
            num_beams=width,
            num_return_sequences=width,
            length_penalty=alpha,
            early_stopping=False,
        )
        *_, last = beam_search(model, BATCH, width, alpha, LIMIT, stop="early")
        sequences = expected.sequences[:, 1:].view(len(BATCH), width, -1).tolist()
        for sentence, rows in enumerate(sequences):
            found = last.best(sentence)
            lengths |= {len(one.token_ids) for one in found}
            wanted = [trimmed(row) for row in rows]
            assert [list(one.token_ids) for one in found] == wanted
            if width > 1:
                scores = expected.sequences_scores.view(len(BATCH), width)[sentence].tolist()
                assert [one.score for one in found] == pytest.approx(scores, abs=1e-4)
    assert len(lengths) > 1


def trimmed(row: list[int]) -> list[int]:
    """Without what `generate` pads a finished row with."""
    return row[: row.index(EOS_ID) + 1] if EOS_ID in row else row


@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.0])
def test_wide_enough_it_finds_the_best_of_all(alpha: float) -> None:
    vocabulary, limit = 6, 3
    source = torch.tensor([[4, 5, EOS_ID]])
    model = toy.random_model(5, vocab_size=vocabulary, target_vocab_size=vocabulary)
    scored = {ids: _score(model, source, ids) / len(ids) ** alpha for ids in _every(vocabulary, limit)}
    *_, last = beam_search(model, source, vocabulary**limit, alpha, limit)
    best = max(scored, key=scored.__getitem__)
    assert last.best(0)[0].token_ids == best
    assert last.best(0)[0].score == pytest.approx(scored[best], abs=1e-5)


def _every(vocabulary: int, limit: int) -> list[tuple[int, ...]]:
    """Every translation: ended by </s>, or cut off at the limit."""
    others = [token for token in range(vocabulary) if token != EOS_ID]
    ended = [(*ids, EOS_ID) for length in range(limit) for ids in product(others, repeat=length)]
    return ended + list(product(others, repeat=limit))


def _score(model: Transformer, source: torch.Tensor, ids: tuple[int, ...]) -> float:
    # Without the padding mask: a tiny vocabulary has <pad> among its ordinary tokens.
    causal = torch.ones(len(ids), len(ids), dtype=torch.bool).tril()[None, None]
    with torch.inference_mode():
        log_probs = model(source, torch.tensor([[BOS_ID, *ids[:-1]]]), target_mask=causal)[0].log_softmax(-1)
    return sum(row[token].item() for row, token in zip(log_probs, ids, strict=True))


def test_width_one_with_the_early_stop_is_greedy(tiny_model: Transformer) -> None:
    *_, last = beam_search(tiny_model, SOURCE, 1, 1.0, LIMIT, stop="early")
    assert list(last.best(0)[0].token_ids) == [step.token_id for step in decode_greedily(tiny_model, SOURCE, LIMIT)]


@pytest.mark.parametrize("seed", [1, 3])
def test_a_batch_finds_what_each_sentence_finds_alone(seed: int) -> None:
    model = lively(seed)
    *_, together = beam_search(model, BATCH, 3, 1.0, LIMIT)
    for number, row in enumerate(BATCH):
        *_, alone = beam_search(model, row[row != PAD_ID][None], 3, 1.0, LIMIT)
        assert [one.token_ids for one in together.best(number)] == [one.token_ids for one in alone.best(0)]


def test_a_sentence_is_cut_off_as_it_is_alone() -> None:
    """Its neighbours are longer, and give themselves more tokens."""
    model = toy.random_model(max_length=128)
    short, long = torch.tensor([[5, 6, 3]]), torch.arange(5, 25)[None]
    both = torch.cat([torch.nn.functional.pad(short, (0, 17), value=PAD_ID), long])
    endless = Constraints(forbidden=((EOS_ID,),))
    *_, alone = beam_search(model, short, 2, constraints=endless)
    *_, together = beam_search(model, both, 2, constraints=endless)
    lengths = [[len(one.token_ids) for one in last.best(0)] for last in (alone, together)]
    assert lengths == [[26, 26]] * 2
    assert [one.token_ids for one in together.best(0)] == [one.token_ids for one in alone.best(0)]


def test_hypotheses_that_share_a_memory_find_what_each_finds_with_its_own() -> None:
    model = lively(1)
    *_, shared = beam_search(model, BATCH, 3, max_tokens=LIMIT)
    with capture_attention(model):  # Who looks finds a row of the cross-attention for each hypothesis.
        *_, apart = beam_search(model, BATCH, 3, max_tokens=LIMIT)
    for sentence in range(len(BATCH)):
        pairs = zip(shared.best(sentence), apart.best(sentence), strict=True)
        assert all(one.token_ids == other.token_ids for one, other in pairs)
    torch.testing.assert_close(shared.finished.scores, apart.finished.scores)


def test_a_sentence_that_is_done_is_not_searched_any_further() -> None:
    counts = [len(step.sentences) for step in beam_search(lively(3), BATCH, 2, 1.0, LIMIT)]
    assert counts[0] == len(BATCH)
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < len(BATCH)


def test_as_many_run_on_however_many_tokens_end_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = (EOS_ID, 20, 21)
    monkeypatch.setattr(Transformer, "end_ids", ends)
    model = lively(3)
    with torch.no_grad():
        model.generator.bias[list(ends)] += 50  # The best candidates are these.
    first = next(beam_search(model, SOURCE, 2, 1.0, LIMIT))
    assert not set(first.token_ids.gather(1, first.alive)[0].tolist()) & set(ends)


def test_the_batch_of_texts_has_all_hypotheses_without_their_ends() -> None:
    model = lively(1)
    *_, last = beam_search(model, SOURCE, 3, stop="early")
    found = last.best(0)
    assert len(found) == 3
    assert beam_search_batch(model, SOURCE, 3) == [[[one for one in each.token_ids if one != EOS_ID] for each in found]]


def test_no_width_is_refused(tiny_model: Transformer) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        next(beam_search(tiny_model, SOURCE, 0))


def test_a_forced_beginning_and_forbidden_tokens() -> None:
    model = lively(2)
    *_, free = beam_search(model, SOURCE, 3, 1.0, LIMIT)
    first = free.best(0)[0].token_ids[0]
    *_, last = beam_search(model, SOURCE, 3, 1.0, LIMIT, Constraints((20, 21), ((first,),)))
    for found in last.best(0):
        assert found.token_ids[:2] == (20, 21)
        assert first not in found.token_ids


def tree(width: int = 4, seed: int = 3) -> BeamTree:
    return build_beam_tree(beam_search(lively(seed), SOURCE, width, 1.0, LIMIT))


def test_every_way_in_the_tree_has_the_score_of_its_tokens() -> None:
    model, found = lively(3), tree()
    for node in found.nodes[:: max(1, len(found.nodes) // 12)]:
        assert node.score == pytest.approx(_score(model, SOURCE, node.token_ids), abs=1e-4)


def test_children_continue_what_was_alive() -> None:
    found = tree()
    for node in found.nodes:
        assert len(node.token_ids) == node.position + 1
        if node.parent is None:
            assert node.position == 0
            continue
        parent = found.nodes[node.parent]
        assert parent.fate == "alive"
        assert parent.token_ids == node.token_ids[:-1]


def test_at_most_the_width_is_alive_and_best_ends_are_finished() -> None:
    found = tree(width=3)
    for position in range(max(node.position for node in found.nodes) + 1):
        step = [node for node in found.nodes if node.position == position]
        assert sum(node.fate == "alive" for node in step) <= 3
        assert [node.score for node in step] == sorted((node.score for node in step), reverse=True)
    finished = {node.token_ids for node in found.nodes if node.fate == "finished"}
    assert {one.token_ids for one in found.best} <= finished
    way = [node for node in found.nodes if found.is_on_best_path(node)]
    assert [node.position for node in way] == list(range(len(found.best[0].token_ids)))


def test_a_search_under_way_has_a_tree() -> None:
    steps = beam_search(lively(3), SOURCE, 2, 1.0, LIMIT)
    found = build_beam_tree([next(steps), next(steps)])
    assert {node.position for node in found.nodes} == {0, 1}
