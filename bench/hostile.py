"""How long a visitor waits while ten others ask for the worst, and what the server holds after.

Sessions without browsers, as in :mod:`bench.visitors`. The visitor chooses another head of Explore again and again.
Each of the ten pastes and uploads one thing after the other, each as a new session, as soon as the last one is
answered; or searches for translations of the longest texts, 10 at a time, and looks at heads of a model without any.
"""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count, islice
from urllib.parse import urlencode

import numpy as np

from bench.positions import Served, serving
from bench.soak import sample
from bench.timing import Row
from bench.visitor import Visitor

ATTACKERS = 10
SECONDS = 60.0
AFTER = 10.0
"""Seconds after the ten have left at which the memory is read."""
PATIENCE = 300.0
"""Seconds that one of them waits for an answer."""
LONGEST = 2_000_000
"""Characters of a text that is pasted."""
LONGEST_CLICK = 3.0
"""Seconds that nobody may wait for a click on a tile."""
ALL_OFF = "encoder.*.*:off,decoder.*.*:off,cross.*.*:off"


def worst_texts() -> list[str]:
    """Texts that take longest to read, to judge or to refuse."""
    random = np.random.default_rng(0)
    weights = random.random((480, 480))
    rows = ", ".join(
        f"[{', '.join(f'{value:.4f}' for value in row)}]" for row in weights / weights.sum(1, keepdims=True)
    )
    return [
        f"tensor([{rows}])",
        "[" + "[1,0]," * 190_000 + "[1,1]]",
        "[" + "[[[1,0]]]," * 60_000 + "[[[1,1]]]]",
        "[[" + "0.5, " * (LONGEST // 5 - 2) + "0]]",
        "[[" + "True, 1, " * (LONGEST // 9 - 2) + "1]]",
        "[[1,0]," + " " * (LONGEST - 20) + "[1,1]]",
        "1 " * (LONGEST // 2),
    ]


def worst_files() -> list[tuple[str, bytes]]:
    """Files that take longest to read or grow most: small ones that unpack to much, and long tables."""
    packed, bits = io.BytesIO(), io.BytesIO()
    np.savez_compressed(packed, weights=np.full((1, 1, 5000, 6000), 0.5))  # 240 MB
    np.savez_compressed(bits, mask=np.ones((1, 8, 1024, 1024), bool))
    row = ",".join(["0.25"] * 2000) + "\n"
    table = row * 1000
    return [
        ("mask.npz", packed.getvalue()),
        ("mask.npz", bits.getvalue()),
        ("mask.csv", table.encode()),
        ("mask.json", json.dumps({"weights": [[0.25] * 1000] * 1000}).encode()),
        ("mask.txt", worst_texts()[1].encode()),
    ]


def measure() -> list[Row]:
    with serving() as served:
        alone, beside, before, after, errors = attacked(served)
        clicks, refused = searched(served.url)
        tracebacks = served.log.read_text(encoding="utf-8", errors="replace").count("Traceback")
    quiet, waited = float(np.median(alone)), float(np.median(beside))
    what = f"hostile: beside {ATTACKERS} who hand over the worst"
    return [
        Row(
            f"{what}: seconds p50 of another visitor, then / before",
            f"{waited:.3f}",
            f"{quiet:.3f}",
            waited / quiet,
            "at most 2",
            waited <= 2 * quiet,
        ),
        Row(
            f"{what}: MB, {AFTER:.0f} s after / before",
            f"{after:.0f}",
            f"{before:.0f}",
            after / before,
            "at most 1.15",
            after <= 1.15 * before,
        ),
        Row(
            f"hostile: {ATTACKERS} at once with long texts, beam 10, all heads off: seconds of the slowest of "
            f"{len(clicks)} clicks on a tile / the limit",
            f"{max(clicks):.2f}",
            f"{LONGEST_CLICK}",
            max(clicks) / LONGEST_CLICK,
            "at most 1",
            max(clicks) <= LONGEST_CLICK,
        ),
        *(
            Row(f"hostile: {name}", f"{count}", "0", float(count), "0", not count)
            for name, count in (("tracebacks", tracebacks), ("exceptions on a page", len(errors) + len(refused)))
        ),
    ]


def attacked(served: Served) -> tuple[list[float], list[float], float, float, list[str]]:
    """Seconds of a visitor's actions alone and beside the ten, MB before and after, exceptions."""
    errors: list[str] = []
    with Visitor(served.url) as visitor:
        visitor.open()
        list(_choices(visitor, time.monotonic() + 5))  # warms up
        attack(served.url, 0.0)  # so that what is loaded once is there
        time.sleep(AFTER)
        alone = list(_choices(visitor, time.monotonic() + SECONDS / 3))
        before = sample(served.process).megabytes
        attackers = threading.Thread(target=lambda: errors.extend(attack(served.url, SECONDS)))
        attackers.start()
        time.sleep(5)
        beside = list(_choices(visitor, time.monotonic() + SECONDS - 5))
        attackers.join()
        time.sleep(AFTER)
        after = sample(served.process).megabytes
        errors.extend(visitor.errors)
    return alone, beside, before, after, errors


def attack(url: str, seconds: float) -> list[str]:
    """Ten who hand over one thing after the other for so long -> the exceptions they saw."""
    texts, files = worst_texts(), worst_files()
    errors: list[str] = []

    def act(number: int) -> None:
        end = time.monotonic() + seconds
        for step in count(number):
            with Visitor(url, PATIENCE) as attacker:
                if step % 2:
                    attacker.open("from=paste", "masks")
                    attacker.enter("mask_text", texts[step // 2 % len(texts)] + " " * number)
                else:
                    attacker.open("from=upload", "masks")
                    attacker.upload("mask_files", *files[step // 2 % len(files)])
            errors.extend(attacker.errors)
            if time.monotonic() > end:
                return

    _act_at_once(act)
    return errors


def searched(url: str) -> tuple[list[float], list[str]]:
    """Ten who search with a beam of 10 and then click on tiles, and one who only clicks.

    The ten have texts of 80 words, and all heads switched off. Returns the seconds of each click, and the exceptions.
    """
    clicks: list[float] = []
    errors: list[str] = []
    end = time.monotonic() + SECONDS

    def act(number: int) -> None:
        for step in count():
            with Visitor(url, PATIENCE) as visitor:
                text = f"{number} {step} " + "very old " * 40 + "dog"
                asked = {"sentence": text, "changes": ALL_OFF}
                visitor.open(urlencode({**asked, "method": "beam", "width": "10"}), "decode")
                visitor.open(urlencode(asked), "")
                clicks.extend(islice(_choices(visitor, end), 4))
            errors.extend(visitor.errors)
            if time.monotonic() > end:
                return

    with Visitor(url) as visitor:
        visitor.open()
        alone = threading.Thread(target=lambda: clicks.extend(_choices(visitor, end)))
        alone.start()
        _act_at_once(act)
        alone.join()
        errors.extend(visitor.errors)
    return clicks, errors


def _act_at_once(act: Callable[[int], None]) -> None:
    """Let ten act, each by its number."""
    threads = [threading.Thread(target=act, args=(number,)) for number in range(ATTACKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _choices(visitor: Visitor, end: float) -> Iterator[float]:
    """Seconds of one choice of a head after another."""
    for step in count():
        if time.monotonic() > end:
            return
        yield visitor.choose_head(step % 4, step // 4 % 8)
