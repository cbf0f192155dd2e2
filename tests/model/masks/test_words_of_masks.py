"""Every word of a meaning, joined at random: built, named, read back and recognised as one and the same mask."""

from __future__ import annotations

import numpy as np
import pytest

from attenscope.masks.rule import MaskSizes, build_mask, build_meaning_mask, simpler_meanings_text
from attenscope.masks.structure import name_structure, parse_structure, recognise_structure


def sees(words: dict[str, list[int]], query: int, key: int, keys: int) -> bool:
    """Whether a query at ``query`` may attend to ``key``: a cell by itself, from the definitions of the words."""
    size = words.get("blocks", [1])[0]
    ahead = words["ahead"][0] if "ahead" in words else 0
    window = words["window"][0] if "window" in words else keys
    seen = key // size <= query // size + ahead and query - key < window
    if "chunked" in words:
        seen = seen and query // words["chunked"][0] == key // words["chunked"][0]
    if "packed" in words:
        edges = np.cumsum(words["packed"])[:-1]
        seen = seen and (edges <= query).sum() == (edges <= key).sum()
    if "keys" in words:
        seen = seen or (words["keys"][0] <= key + 1 <= words["keys"][1] and key <= query + ahead)
    if "tree" in words:
        first = keys - len(words["tree"])
        above = query
        while above > key and above >= first:
            parent = words["tree"][above - first]
            above = first + parent - 1 if parent else min(first - 1, key)
        seen = seen and (key < first or above == key)
    return bool(seen)


def draw(generator: np.random.Generator, keys: int) -> dict[str, list[int]]:
    first, last = sorted(generator.integers(1, keys + 1, 2).tolist())
    cut = int(generator.integers(1, keys))
    tree = [int(generator.integers(0, token + 1)) for token in range(int(generator.integers(1, keys + 1)))]
    size = [int(generator.integers(1, keys))]
    choices = {"window": size, "ahead": [1 + size[0] // 3], "blocks": size, "chunked": size, "tree": tree}
    choices |= {"packed": [cut, keys - cut], "keys": [first, last]}
    chosen = generator.choice(list(choices), int(generator.integers(1, 4)), replace=False)
    words = {str(word): choices[str(word)] for word in chosen}
    if "ahead" in words and ("blocks" in words or "tree" in words):
        del words["ahead"]
    return words


def write(words: dict[str, list[int]], generator: np.random.Generator) -> str:
    parts = [
        "causal",
        *(f"{word}:{('-' if word == 'keys' else ',').join(map(str, sizes))}" for word, sizes in words.items()),
    ]
    return "+".join(generator.permutation(parts).tolist())


@pytest.mark.parametrize("seed", range(40))
def test_a_mask_of_random_words_is_what_its_words_say_cell_by_cell(seed: int) -> None:
    generator = np.random.default_rng(seed)
    for _ in range(8):
        keys = int(generator.integers(3, 13))
        words = draw(generator, keys)
        text = write(words, generator)
        want = np.array([[sees(words, query, key, keys) for key in range(keys)] for query in range(keys)])
        np.testing.assert_array_equal(build_meaning_mask(text, keys, keys), want, err_msg=text)
        np.testing.assert_array_equal(
            build_mask(text.replace("+", " and "), MaskSizes(keys, keys, (keys,)))[0, 0], want
        )
        if "packed" not in words:  # the newest queries beside a cache
            queries = int(generator.integers(1, keys + 1))
            np.testing.assert_array_equal(build_meaning_mask(text, queries, keys), want[-queries:], err_msg=text)
        name = name_structure(parse_structure(text), keys)
        np.testing.assert_array_equal(build_meaning_mask(name, keys, keys), want, err_msg=f"{text} {name}")
        if found := recognise_structure(want, np.ones_like(want)):
            np.testing.assert_array_equal(found.build_mask(keys, keys), want, err_msg=f"{text} {found}")
            if not found.origin and (name := name_structure(found, keys)):  # a name leaves the origin open
                np.testing.assert_array_equal(build_meaning_mask(name, keys, keys), want, err_msg=f"{text} {found}")


@pytest.mark.parametrize(
    "name",
    [
        *("ahead:1", "ahead:3", "window:4+ahead:1", "blocks:2", "blocks:4", "blocks:5", "blocks:3+causal+window:5"),
        *("causal+window:3+keys:3-4", "causal+window:2+keys:1-6", "causal+keys:1-4+packed:7,3,2"),
        *("tree:0,0,1,1", "tree:0,0,0,1,1,2,3", "tree:0,0,1,1,2,2,3,3,3", "keys:1-3+packed:6,6"),
    ],
)
@pytest.mark.parametrize("queries", [12, 9])
def test_the_new_words_are_recognised(name: str, queries: int) -> None:
    if "packed" in name and queries != 12:
        return
    mask = parse_structure(name).build_mask(queries, 12)
    found = recognise_structure(mask, np.ones_like(mask))
    assert found is not None
    assert parse_structure(name_structure(found, 12)) == parse_structure(name)


@pytest.mark.parametrize("hole", range(1, 11))
def test_a_column_that_is_closed_by_accident_is_no_draft_tree(hole: int) -> None:
    mask = np.tri(12, dtype=bool)
    mask[hole + 1 :, hole] = False
    assert recognise_structure(mask, np.ones_like(mask)) is None or hole in (10,)


@pytest.mark.parametrize(
    ("rule", "queries", "simpler"),
    [
        ("causal+window:9", 7, "causal"),
        ("causal+window:7", 8, ""),
        ("blocks:1", 8, "causal"),
        ("blocks:8", 8, "full"),
        ("causal+keys:1-3", 8, "causal"),
        ("causal+window:3+keys:1-2", 8, "causal+window:3+sinks:2"),
        ("causal+window:3+keys:2-3", 8, ""),
        ("causal+padding", 8, ""),
        ("not (not causal)", 8, "causal"),
        ("causal or padding", 8, ""),
        ("tree:0,1,2", 8, "causal"),
        ("causal+chunked:8", 8, "causal"),
        ("chunked:3+blocks:3", 8, ""),
        ("causal", 8, ""),
    ],
)
def test_a_meaning_that_comes_to_a_simpler_one_says_so(rule: str, queries: int, simpler: str) -> None:
    said = simpler_meanings_text(rule, queries, queries)
    where = f"At {queries} queries and {queries} keys"
    assert said == (f"{where} “{rule}” is the same as “{simpler}”." if simpler else "")


def test_each_layers_meaning_is_simplified_by_itself() -> None:
    said = simpler_meanings_text("causal+window:9 / causal / causal+window:9", 5, 5)
    assert said == "At 5 queries and 5 keys “causal+window:9” is the same as “causal”."
