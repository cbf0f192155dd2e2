"""Turns: never more at once than there are places, short ones first, nobody stuck, a sentence for who waits in vain."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from streamlit.testing.v1 import AppTest

from attenscope.viz import fair_queue
from attenscope.viz.fair_queue import BusyError, FairQueue

PATIENCE = 20.0


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


class Hall:
    """Threads that take turns; each holds its turn until it is let go, and says when it had it."""

    def __init__(self, places: int) -> None:
        self.turns = FairQueue(places)
        self.order: list[str] = []
        self.gates: dict[str, threading.Event] = {}
        self.threads: list[threading.Thread] = []

    def send(self, name: str, is_long: bool = False) -> None:
        self.gates[name] = threading.Event()
        ticket = self.turns.ticket(is_long)
        queued = len(self.turns._queue) + len(self.order)

        def work() -> None:
            with self.turns.turn(ticket):
                self.order.append(name)
                assert self.gates[name].wait(PATIENCE)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        self.threads.append(thread)
        until(lambda: len(self.turns._queue) + len(self.order) > queued)

    def let_go(self, *names: str) -> None:
        for name in names:
            self.gates[name].set()

    def end(self) -> list[str]:
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        return self.order


def test_short_ones_first_then_who_came_first() -> None:
    hall = Hall(1)
    for name, is_long in (("a", True), ("b", True), ("c", False), ("d", True), ("e", False)):
        hall.send(name, is_long)
    late = hall.turns.ticket()
    assert hall.turns.count_before(late) == 3  # the one that runs, c and e
    assert hall.turns.count_before(hall.turns.ticket(is_long=True)) == 5
    hall.let_go(*"abcde")
    assert hall.end() == ["a", "c", "e", "b", "d"]
    assert hall.turns.count_before(late) == 0


@pytest.mark.parametrize("places", [1, 2, 3])
def test_never_more_at_once_than_there_are_places(places: int) -> None:
    mine, running, most = FairQueue(places), 0, 0
    lock = threading.Lock()

    def step() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.001)
        with lock:
            running -= 1

    def work(number: int) -> int:
        with mine.turn(mine.ticket(number % 3 == 0)):
            step()
            mine.yield_to_earlier_tickets()
            step()
        return number

    with ThreadPoolExecutor(16) as pool:
        assert sorted(pool.map(work, range(80))) == list(range(80))
    assert most == places
    assert mine._free == places


def test_a_long_one_pauses_for_a_short_one_and_for_no_later_long_one() -> None:
    mine, order = FairQueue(1), []
    begun, step = threading.Event(), threading.Event()

    def long_work() -> None:
        with mine.turn(mine.ticket(is_long=True)):
            begun.set()
            assert step.wait(PATIENCE)
            mine.yield_to_earlier_tickets()
            order.append("long goes on")

    def other(name: str, is_long: bool) -> None:
        with mine.turn(mine.ticket(is_long)):
            order.append(name)

    threads = [threading.Thread(target=long_work, daemon=True)]
    threads[0].start()
    assert begun.wait(PATIENCE)
    for count, (name, is_long) in enumerate((("short", False), ("later", True)), 1):
        threads.append(threading.Thread(target=other, args=(name, is_long), daemon=True))
        threads[-1].start()
        until(lambda count=count: len(mine._queue) == count)  # type: ignore[misc]
    step.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert order == ["short", "long goes on", "later"]


def test_nobody_waits_for_anothers_result_in_their_own_turn() -> None:
    """One has the turn and needs what another computes, who waits for a turn: released, both end."""
    mine, result, needed = FairQueue(1), threading.Event(), threading.Event()

    def first() -> str:
        with mine.turn(mine.ticket()):
            needed.set()
            with mine.release_turn_temporarily():
                assert result.wait(PATIENCE)
            return "first"

    def second() -> str:
        assert needed.wait(PATIENCE)
        with mine.turn(mine.ticket()):
            result.set()
        return "second"

    with ThreadPoolExecutor(2) as pool:
        assert [one.result(PATIENCE) for one in (pool.submit(first), pool.submit(second))] == ["first", "second"]
    assert mine._free == 1


def test_who_waits_in_vain_gets_a_sentence_and_leaves_the_queue() -> None:
    hall = Hall(1)
    hall.send("a")
    with pytest.raises(BusyError, match="has not come in 0 seconds"), hall.turns.turn(hall.turns.ticket(), 0.01):
        pytest.fail("there was no place")
    assert not hall.turns._queue
    hall.let_go("a")
    hall.end()


def test_a_turn_within_a_turn_is_the_same_and_an_error_gives_it_back() -> None:
    mine = FairQueue(1)
    with pytest.raises(KeyError), mine.turn(mine.ticket()), mine.turn(mine.ticket()):
        raise KeyError
    assert mine._free == 1
    mine.yield_to_earlier_tickets()  # without a turn there is nothing to give


def test_a_page_for_which_no_turn_comes_ends_with_a_sentence(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = FairQueue(1)
    monkeypatch.setattr("attenscope.viz.ui.cache.COMPUTE_QUEUE", mine)
    turn = fair_queue.FairQueue.turn.__wrapped__  # type: ignore[attr-defined]
    monkeypatch.setattr(turn, "__defaults__", (0.01, *turn.__defaults__[1:]))
    done = threading.Event()

    def hold() -> None:
        with mine.turn(mine.ticket()):
            assert done.wait(PATIENCE)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    until(lambda: mine._free == 0)
    shown = app.run()
    done.set()
    thread.join(PATIENCE)
    assert not shown.exception
    assert any("your turn has not come" in one.value for one in shown.warning)
    assert not app.run().warning


def test_a_turn_that_nobody_waits_for_any_more_is_given_up() -> None:
    mine, there, done = FairQueue(1), threading.Event(), threading.Event()
    there.set()

    def wait_for_a_turn() -> None:
        with suppress(BusyError), mine.turn(mine.ticket(), is_wanted=there.is_set):
            raise AssertionError
        done.set()

    with mine.turn(mine.ticket()):
        waiting = threading.Thread(target=wait_for_a_turn)
        waiting.start()
        until(lambda: len(mine._queue) == 1)
        there.clear()
        assert done.wait(PATIENCE)
        assert not mine._queue
    waiting.join()
