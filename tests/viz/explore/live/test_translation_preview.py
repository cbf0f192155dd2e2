"""What is typed is translated before it is asked for: the same picture as the page draws, and nothing where none is."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from attenscope.analysis.telling_word import pick_telling_word, weigh_words
from attenscope.viz import fair_queue
from attenscope.viz.explore import translation_preview
from attenscope.viz.explore.translation_preview import LONGEST_TEXT, PREVIEW_PATH, respond_with_preview
from attenscope.viz.ui import cache
from attenscope.viz.ui.cache import COMPUTE_QUEUE
from tests.viz.web.test_packing import unpack

MODEL, SENTENCE = "everyday-en-de", "He reads a book."


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(Starlette(routes=[Route(f"/{PREVIEW_PATH}", respond_with_preview)]))


def ask(client: TestClient, **asked: str) -> bytes | None:
    query = {"model": MODEL, "language": "en", "sentence": SENTENCE} | asked
    answer = client.get("/translation-preview", params=query)
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.status_code == (200 if answer.content else 204)
    return answer.content or None


def test_a_preview_shows_the_translation_at_the_word_that_tells_most(client: TestClient) -> None:
    packed = ask(client)
    assert packed
    header, _ = unpack(packed)
    found = cache.compute_translation(MODEL, SENTENCE)
    assert found.trace.cross is not None
    words, telling = weigh_words(found.trace.cross), pick_telling_word(found.trace.cross)
    assert words is not None
    assert telling is not None
    assert [one["text"] for one in header["target"]["words"]] == list(words.row_words)
    assert header["pinned"] == {"source": None, "target": telling.row}
    assert header["preview"] is None  # The component goes on with what the page has drawn.


@pytest.mark.parametrize(
    "asked",
    [
        {"sentence": ""},
        {"sentence": "  \n"},
        {"sentence": "word " * LONGEST_TEXT},
        {"model": "nobody's"},
        {"model": "../../etc/passwd"},
        {"language": "en-XA"},
        {"language": ""},
    ],
    ids=json.dumps,
)
def test_there_is_no_preview_of_what_cannot_be_translated(client: TestClient, asked: dict[str, str]) -> None:
    assert ask(client, **asked) is None


def test_a_preview_speaks_the_language_of_the_page(client: TestClient) -> None:
    said = [unpack(ask(client, language=one) or b"")[0]["target"]["says"] for one in ("en", "de", "zh")]
    assert len({json.dumps(one) for one in said}) == 3


@contextmanager
def taken_places() -> Iterator[None]:
    """Let others compute at every place of the queue."""
    ready, done = threading.Barrier(COMPUTE_QUEUE._places + 1), threading.Event()

    def compute() -> None:
        with COMPUTE_QUEUE.turn(COMPUTE_QUEUE.ticket()):
            ready.wait()
            done.wait()

    threads = [threading.Thread(target=compute) for _ in range(COMPUTE_QUEUE._places)]
    for thread in threads:
        thread.start()
    ready.wait()
    yield
    done.set()
    for thread in threads:
        thread.join()


def test_a_preview_that_would_come_late_is_left_out(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation_preview, "PATIENCE", 0.05)
    monkeypatch.setattr(fair_queue, "LOOK_SECONDS", 0.01)
    with taken_places():
        assert ask(client, sentence="It is raining.") is None
    assert ask(client, sentence="It is raining.")
