"""What is said of a head, worked out again in loops: planted habits, random maps, and every head of every model."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attenscope.analysis.heads import HeadClaim, attention_distance, describe_head_pattern, rank_heads_by_alignment
from attenscope.checkpoint.load import CHECKPOINTS_FOLDER, list_checkpoints
from attenscope.language import use_language
from attenscope.text.words import END_TOKENS, SPECIAL_TOKENS, RowLabel
from attenscope.trace import AttentionMap, Kind
from attenscope.translate import Translator
from tests.samples import slow_after

LABELS: tuple[RowLabel, ...] = ("fed", "predicted")
SENTENCES = 50
MOSTLY, MORE, EVEN = 0.5, 0.2, 0.9
"""What the words mean: mostly is half the mass at least; written here again, so that no change of the code goes by."""
PHRASES = {
    "the previous token": "previous",
    "the token itself": "same",
    "the next token": "next",
    "the first token": "first",
    "the end-of-sentence token": "end",
    "the token that all heads together point to": "alignment",
    "the token that all heads together pointed to one row earlier (it aligns the token fed in)": "alignment fed in",
    "the token that followed the same token earlier (induction)": "induction",
    "the same token where it stood earlier (duplicate token)": "duplicate token",
}
REPEATING = ("induction", "duplicate token")
PHRASES_BY_PREDICTION = {
    "the token fed in one step earlier (two before the one that names the row)": "previous",
    "the token just fed in (the one before the one that names the row)": "same",
    "the token that names the row (which is not fed in yet)": "next",
    "the token that followed the token just fed in where it stood earlier (induction)": "induction",
    "the token just fed in where it stood earlier (duplicate token)": "duplicate token",
}


def own_key(one: AttentionMap, row: int) -> int:
    """The key of a query of self-attention; of a cached step the newest query stands at the newest key."""
    return row + one.mask.shape[1] - one.mask.shape[0]


def expected_keys(one: AttentionMap, habit: str, row: int) -> list[int]:
    """The keys that a habit names in a row, by its definition alone."""
    queries, keys = one.mask.shape
    if habit in ("previous", "same", "next"):
        at = own_key(one, row) + {"previous": -1, "same": 0, "next": 1}[habit]
        found = [at] if one.kind != "cross" and 0 <= at < keys else []
    elif habit in REPEATING:
        token = one.query_tokens[row]
        if one.kind != "decoder" or token in SPECIAL_TOKENS:
            return []
        before = [key for key in range(own_key(one, row)) if one.key_tokens[key] == token]
        found = before if habit == "duplicate token" else [key + 1 for key in before if key + 1 < own_key(one, row)]
    elif habit == "first":
        found = [0]
    elif habit == "end":
        found = [key for key in range(keys) if one.key_tokens[key] in END_TOKENS]
    else:
        names = one.predicted_tokens or one.query_tokens
        text = [q for q in range(queries) if names[q] not in SPECIAL_TOKENS] or list(range(queries))
        source = row if habit == "alignment" else row - 1
        if one.kind != "cross" or source not in text:
            return []
        plain = [key for key in range(keys) if one.key_tokens[key] not in SPECIAL_TOKENS] or list(range(keys))
        mean = [float(one.weights[:, :, source, key].astype(np.float64).mean()) for key in plain]
        found = [plain[mean.index(max(mean))]]
    return [key for key in found if one.mask[row, key]]


def share(one: AttentionMap, layer: int, head: int, habit: str, rows: list[int]) -> tuple[float, list[int]]:
    masses, counted = [], []
    for row in rows:
        if keys := expected_keys(one, habit, row):
            counted.append(row)
            masses.append(math.fsum(float(one.weights[layer, head, row, key]) for key in keys))
    if habit in REPEATING and len(counted) < 4:
        return 0.0, []
    return (math.fsum(masses) / len(masses) if masses else 0.0), counted


def check(one: AttentionMap, layer: int, head: int, label: RowLabel) -> HeadClaim:
    """Everything the claim and its sentence say, against loops over the map."""
    claim = describe_head_pattern(one, layer, head, label)
    choosing = [row for row in range(len(one.query_tokens)) if one.mask[row].sum() > 1]
    assert claim.text.startswith(f"Head {head + 1} of layer {layer + 1} ")
    if claim.habit == "none":
        assert not choosing
        return claim
    shares = {habit: share(one, layer, head, habit, choosing) for habit in PHRASES.values()}
    best = max(mass for mass, _ in shares.values())
    if claim.habit in shares:
        mass, rows = shares[claim.habit]
        assert claim.value == pytest.approx(mass, abs=1e-6)
        assert claim.value == pytest.approx(best, abs=1e-6)
        assert claim.rows == tuple(rows)
        place, printed = place_and_number(claim.text)
        assert abs(printed - 100 * mass) <= 0.5 + 1e-4
        by_prediction = one.kind == "decoder" and label == "predicted" and bool(one.predicted_tokens)
        assert ((PHRASES | PHRASES_BY_PREDICTION) if by_prediction else PHRASES)[place] == claim.habit
        if by_prediction:
            assert claim.habit not in PHRASES_BY_PREDICTION.values() or place in PHRASES_BY_PREDICTION
        assert mass >= MOSTLY - 1e-6 if " mostly looks at " in claim.text else MORE - 1e-6 <= mass < MOSTLY + 1e-6
        return claim
    assert claim.rows == tuple(choosing)
    assert best < (MOSTLY if claim.habit == "even" else MORE) + 1e-6
    number = spread(one, layer, head, choosing) if claim.habit == "even" else far(one, layer, head, choosing)
    assert claim.value == pytest.approx(number, abs=1e-5)
    said = re.search(r"entropy is ([\d.]+),|on average ([\d.]+) tokens away", claim.text)
    assert said is not None
    assert abs(float(said[1] or said[2]) - number) <= (0.005 if said[1] else 0.05) + 1e-5
    assert claim.habit != "even" or number >= EVEN - 1e-5
    if claim.habit == "mixed" and shares:
        named_place = re.search(r"no one place: (.*) gets most, (\d+)%;", claim.text)
        assert named_place is not None, claim.text
        by_prediction = one.kind == "decoder" and label == "predicted" and bool(one.predicted_tokens)
        named = ((PHRASES | PHRASES_BY_PREDICTION) if by_prediction else PHRASES)[named_place[1]]
        assert shares[named][0] == pytest.approx(best, abs=1e-6)
        assert abs(float(named_place[2]) - 100 * best) <= 0.5 + 1e-4
    return claim


def place_and_number(text: str) -> tuple[str, float]:
    parts = re.search(r"looks at (.*?)(?: more than at any other place that is counted)?: (\d+)% of its weight", text)
    assert parts is not None, text
    return parts[1], float(parts[2])


def spread(one: AttentionMap, layer: int, head: int, rows: list[int]) -> float:
    """The entropy over that of an even row, mean over the rows."""
    parts = []
    for row in rows:
        weights = [float(weight) for weight in one.weights[layer, head, row] if weight > 0]
        parts.append(-math.fsum(w * math.log(w) for w in weights) / math.log(one.mask[row].sum()))
    return math.fsum(parts) / len(parts)


def far(one: AttentionMap, layer: int, head: int, rows: list[int]) -> float:
    """The weighted distance in tokens, of cross-attention from the diagonal, mean over the rows."""
    queries, keys = one.mask.shape
    total = 0.0
    for row in rows:
        for key in range(keys):
            diagonal = abs((row + 0.5) * keys / queries - (key + 0.5))
            apart = diagonal if one.kind == "cross" else abs(own_key(one, row) - key)
            total += float(one.weights[layer, head, row, key]) * apart
    return total / len(rows)


def numbered(letter: str, count: int, period: int = 99) -> tuple[str, ...]:
    """Tokens that begin again after a period."""
    return (*(f" {letter}{at % period}" for at in range(count - 1)), "</s>")


def a_map(kind: Kind, weights: np.ndarray, mask: np.ndarray, period: int = 99) -> AttentionMap:
    queries, keys = mask.shape
    predicted = numbered("p", queries, period)
    fed = ("<s>", *predicted[:-1])
    if kind == "encoder":
        tokens = numbered("t", keys)
        return AttentionMap(kind, weights, tokens, tokens, mask)
    own = fed if kind == "decoder" else numbered("s", keys)
    return AttentionMap(kind, weights, fed, own, mask, predicted)


def planted(kind: Kind, habit: str, strength: float, size: int, seed: int) -> AttentionMap:
    """A map of 2 x 2 heads; head 2 of layer 2 puts `strength` of each row on the habit's key, where there is one."""
    random = np.random.default_rng(seed)
    period = 3 if habit in REPEATING else 99
    mask = np.tri(size, dtype=bool) if kind == "decoder" else np.ones((size, size), dtype=bool)
    weights = random.dirichlet(np.full(size, 0.7), (2, 2, size)) * mask
    weights /= weights.sum(-1, keepdims=True)
    if kind == "cross":  # what all heads together point to: a diagonal, held by three heads of four
        weights[:, :, range(size), range(size)] += 3
        weights /= weights.sum(-1, keepdims=True)
    one = a_map(kind, weights.astype(np.float32), mask, period)
    for row in range(size):
        keys = expected_keys(one, habit, row)
        if keys and mask[row].sum() > 1:
            rest = random.dirichlet(np.ones(size)) * mask[row]
            weights[1, 1, row] = (1 - strength) * rest / rest.sum()
            weights[1, 1, row, keys] += strength / len(keys)
    return a_map(kind, weights.astype(np.float32), mask, period)


PLANTS: list[tuple[Kind, str]] = [
    *(("encoder", habit) for habit in ("previous", "same", "next", "first", "end")),
    *(("decoder", habit) for habit in ("previous", "same", "first", *REPEATING)),
    *(("cross", habit) for habit in ("first", "end", "alignment", "alignment fed in")),
]


@pytest.mark.parametrize(("kind", "habit"), PLANTS)
@pytest.mark.parametrize("label", LABELS)
def test_a_planted_habit_is_named(kind: Kind, habit: str, label: RowLabel) -> None:
    for seed in range(5):
        one = planted(kind, habit, 0.9, 9, seed)
        assert check(one, 1, 1, label).habit == habit


@pytest.mark.parametrize(("kind", "habit"), [plant for plant in PLANTS if plant[0] == "decoder"])
def test_a_planted_habit_is_named_in_the_rows_of_cached_steps_too(kind: Kind, habit: str) -> None:
    for seed in range(5):
        whole = planted(kind, habit, 0.9, 12, seed)
        for count in (1, 2, 6):
            claim = check(take_last_rows(whole, count), 1, 1, "fed")
            assert claim.habit == habit or (habit in REPEATING and count < 4)


def take_last_rows(one: AttentionMap, count: int) -> AttentionMap:
    """The map of the last steps, as cached decoding computes them."""
    return dataclasses.replace(
        one,
        weights=one.weights[:, :, -count:],
        query_tokens=one.query_tokens[-count:],
        predicted_tokens=one.predicted_tokens[-count:],
        mask=one.mask[-count:],
    )


def test_what_is_said_of_a_cached_step() -> None:
    tokens = tuple("abcdef")
    own = AttentionMap("decoder", np.eye(6, dtype=np.float32)[None, None, 4:], tokens[4:], tokens, np.tri(2, 6, 4) > 0)
    assert (
        describe_head_pattern(own, 0, 0).text
        == "Head 1 of layer 1 mostly looks at the token itself: 100% of its weight."
    )
    assert attention_distance(own).tolist() == [[0]]
    weights = np.array([[0.9, 0, 0, 0, 0, 0.1]], np.float32)[None, None]
    far = AttentionMap("decoder", weights, tokens[5:], tokens, np.ones((1, 6), bool))
    assert (
        describe_head_pattern(far, 0, 0).text == "Head 1 of layer 1 mostly looks at the first token: 90% of its weight."
    )
    assert attention_distance(far)[0, 0] == pytest.approx(0.9 * 5)


@given(st.sampled_from(PLANTS), st.floats(0, 1), st.integers(1, 12), st.integers(0, 2**32 - 1), st.sampled_from(LABELS))
@settings(max_examples=150, deadline=None)
def test_every_claim_is_what_loops_find(
    plant: tuple[Kind, str], strength: float, size: int, seed: int, label: RowLabel
) -> None:
    kind, habit = plant
    one = planted(kind, habit, strength, size, seed)
    for layer, head in np.ndindex(2, 2):
        check(one, layer, head, label)


def test_the_decoders_first_row_has_no_choice_and_does_not_count() -> None:
    """A head that always looks one back: in row 1 that is also the first token, in row 0 nothing else is allowed."""
    mask = np.tri(4, dtype=bool)
    weights = np.array([[1, 0, 0, 0], [0.4, 0.6, 0, 0], [0.2, 0.3, 0.5, 0], [0.1, 0.2, 0.3, 0.4]])
    one = a_map("decoder", weights[None, None].astype(np.float32), mask)
    claim = describe_head_pattern(one, 0, 0, "fed")
    assert claim.habit == "same"
    assert claim.rows == (1, 2, 3)
    assert claim.value == pytest.approx((0.6 + 0.5 + 0.4) / 3)
    assert claim.text == "Head 1 of layer 1 mostly looks at the token itself: 50% of its weight."
    with use_language("de"):
        german = "Head 1 von Schicht 1 schaut meist auf das Token selbst: 50\N{NARROW NO-BREAK SPACE}% seines Gewichts."
        assert describe_head_pattern(one, 0, 0, "fed").text == german


def test_the_decoders_keys_are_tokens_fed_in_whatever_names_the_rows() -> None:
    one = planted("decoder", "same", 0.95, 7, 0)
    assert "the token itself" in describe_head_pattern(one, 1, 1, "fed").text
    said = describe_head_pattern(one, 1, 1, "predicted").text
    assert "itself" not in said
    assert "the token just fed in (the one before the one that names the row)" in said


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_a_head_that_goes_by_places_alone_is_not_said_to_go_by_the_words(kind: Kind) -> None:
    """It looks two back, or 30% one back besides: the words make no difference to its weights, whatever they are."""
    mask = np.tri(9, dtype=bool) if kind == "decoder" else np.ones((9, 9), dtype=bool)
    for back in (0.0, 0.3):
        weights = np.full((9, 9), 0.01) * mask
        for row in range(9):
            weights[row, max(row - 2, 0)] += 0.9 - back
            weights[row, max(row - 1, 0)] += back
        weights /= weights.sum(-1, keepdims=True)
        claim = describe_head_pattern(a_map(kind, weights[None, None].astype(np.float32), mask), 0, 0)
        assert "word" not in claim.text
        check(a_map(kind, weights[None, None].astype(np.float32), mask), 0, 0, "fed")


def test_one_token_leaves_no_choice() -> None:
    one = AttentionMap("encoder", np.ones((1, 1, 1, 1), np.float32), ("a",), ("a",), np.ones((1, 1), bool))
    claim = describe_head_pattern(one, 0, 0)
    assert claim.text == "Head 1 of layer 1 has no choice: there is at most one token to look at."
    assert (claim.habit, claim.rows) == ("none", ())


def test_a_released_head_that_aligns_the_token_fed_in_is_said_to() -> None:
    """Layer 1, head 2 of the default model stays one step behind the translation."""
    cross = Translator.load("everyday-en-de").translate("Where did you buy this red bicycle?").trace.cross
    assert cross is not None
    assert check(cross, 0, 1, "predicted").habit == "alignment fed in"
    place = [(found.layer, found.head) for found in rank_heads_by_alignment(cross)].index((0, 1))
    assert rank_heads_by_alignment(cross)[place].reading == "fed"
    assert place < 3


@pytest.mark.sweep
@pytest.mark.parametrize("name", slow_after(2, sorted(list_checkpoints(CHECKPOINTS_FOLDER))))
def test_every_head_of_every_model_is_what_its_sentence_says(name: str) -> None:
    translator = Translator.load(name)
    language = translator.card["source_language"]
    lines = (CHECKPOINTS_FOLDER / f"sentences.{language}").read_text(encoding="utf-8").splitlines()
    joined = [" ".join(lines[at : at + many]) for many in (1, 2, 3) for at in range(len(lines) - many + 1)][:SENTENCES]
    assert len(joined) == SENTENCES
    for line in joined:
        for one in translator.translate(line).trace.maps.values():
            for layer, head in np.ndindex(one.weights.shape[:2]):
                for label in LABELS[: 1 + (one.kind == "decoder")]:
                    check(one, layer, head, label)
