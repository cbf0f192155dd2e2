"""What visitors keep for their talks: found by its key alone, bounded, and forgotten after a while."""

from __future__ import annotations

import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from attenscope.viz.traces.upload_store import KEEP_SECONDS, ArrayBytesCounter, UploadStore, UploadStoreError


def test_a_thing_is_found_by_its_key_and_by_nothing_else() -> None:
    store = UploadStore(of_one=100, of_all=1000)
    mine, yours = store.put("me", "a mask", 40), store.put("you", "another mask", 40)
    assert (store.get(mine), store.get(yours)) == ("a mask", "another mask")
    assert len({mine, yours}) == 2
    assert min(len(mine), len(yours)) >= 32
    assert store.get("me") is store.get("") is store.get(mine[:-1]) is None
    assert store.put("me", "in its place", 90, mine) == mine
    assert store.get(mine) == "in its place"
    store.drop(mine)
    assert store.get(mine) is None


def test_one_visitor_and_all_of_them_have_so_many_bytes() -> None:
    store = UploadStore(of_one=100, of_all=150)
    first = store.put("me", 1, 90)
    with pytest.raises(UploadStoreError, match="your talks may have 0 MB together"):
        store.put("me", 2, 11)
    store.put("you", 3, 60)
    with pytest.raises(UploadStoreError, match="all visitors"):
        store.put("they", 4, 1)
    store.drop(first)
    assert store.get(store.put("they", 5, 90)) == 5


def test_what_nobody_asks_for_is_forgotten() -> None:
    now = [0.0]
    store = UploadStore(of_one=100, of_all=100, clock=lambda: now[0])
    asked, left = store.put("me", "asked for", 50), store.put("me", "left", 50)
    now[0] = KEEP_SECONDS * 0.6
    assert store.get(asked) == "asked for"
    now[0] = KEEP_SECONDS * 1.2
    assert (store.get(asked), store.get(left)) == ("asked for", None)
    store.put("me", "in its place", 50)


def test_many_visitors_at_once_never_have_more_than_there_is_place_for() -> None:
    store = UploadStore(of_one=10, of_all=500)

    def keep(visitor: int) -> int:
        kept = 0
        for _ in range(20):
            try:
                kept += store.put(str(visitor), visitor, 1) != ""
            except UploadStoreError:
                break
        return kept

    with ThreadPoolExecutor(16) as visitors:
        found = list(visitors.map(keep, range(100)))
    assert max(found) == 10
    assert sum(found) == 500


class Arrays:
    """What counts as long as it lives."""


def test_arrays_count_as_long_as_somebody_holds_them() -> None:
    counted = ArrayBytesCounter(of_one=100, of_all=150)
    mine, yours = Arrays(), Arrays()
    counted.count("me", mine, 90)
    counted.count("you", yours, 50)
    assert (counted.count_free_bytes("me"), counted.count_free_bytes("you"), counted.count_free_bytes("another")) == (
        10,
        10,
        10,
    )
    with pytest.raises(UploadStoreError, match="in your files may have 0 MB together, unpacked"):
        counted.count("me", Arrays(), 11)
    with pytest.raises(UploadStoreError, match="of all visitors may have"):
        counted.count("another", Arrays(), 11)
    assert counted.count_free_bytes("me") == 10  # what was refused does not count
    del mine
    assert (counted.count_free_bytes("me"), counted.count_free_bytes("another")) == (100, 100)
    del yours
    assert counted.count_free_bytes("another") == 100


def test_counting_is_of_all_threads() -> None:
    counted = ArrayBytesCounter(of_one=10**9, of_all=10**9)

    def hold(number: int) -> None:
        for _ in range(200):
            counted.count(f"visitor {number % 3}", Arrays(), 7)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(hold, range(8)))
    assert counted.count_free_bytes("visitor 1") == 10**9


def test_what_is_kept_by_a_weak_reference_goes_with_its_object() -> None:
    store = UploadStore(of_one=10, of_all=10)
    seen = Arrays()
    key = store.put("visitor", weakref.ref(seen), 8)
    assert store.get(key) is seen
    del seen
    assert store.get(key) is None
    assert store.put("visitor", "another", 8)  # There is place again.
