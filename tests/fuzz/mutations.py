"""Valid input -> input that nobody meant: cut, spliced, repeated, with numbers and characters at the edges."""

from __future__ import annotations

import re

import numpy as np

NUMBERS = (b"0", b"-1", b"1e999", b"-1e999", b"nan", b"9" * 400, b"2147483648", b"1.5", b"0x10", b"true", b"null")
PIECES = (
    b"\0",
    b"\xff\xfe",
    b"\xed\xa0\x80",  # half a surrogate pair
    "\u202e".encode(),
    "\U0001f469\u200d\U0001f680".encode(),
    "\u0661".encode(),
    b"[" * 3000,
    b"{" * 3000,
    b"(" * 3000,
    b'"' * 99,
    b"<script>",
    b"../../etc/passwd",
    b"%s%n",
    b"\r\n",
    b"a." * 2000,
)
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")


def mutated(good: bytes, random: np.random.Generator) -> bytes:
    """One to four changes of a text or file; a twentieth of the results is random bytes instead."""
    if random.random() < 0.05:
        return random.bytes(int(random.integers(0, 600)))
    data = good
    for _ in range(int(random.integers(1, 5))):
        data = CHANGES[int(random.integers(len(CHANGES)))](data, random)
    return data[:2_000_000]


def _cut(data: bytes, random: np.random.Generator) -> bytes:
    return data[: _place(data, random)]


def _taken_out(data: bytes, random: np.random.Generator) -> bytes:
    start, end = sorted((_place(data, random), _place(data, random)))
    return data[:start] + data[min(end, start + 40) :]


def _repeated(data: bytes, random: np.random.Generator) -> bytes:
    start = _place(data, random)
    return data[:start] + data[start : start + 30] * int(random.integers(2, 200)) + data[start:]


def _byte(data: bytes, random: np.random.Generator) -> bytes:
    at = _place(data, random)
    return data[:at] + random.bytes(1) + data[at + 1 :]


def _piece(data: bytes, random: np.random.Generator) -> bytes:
    at = _place(data, random)
    return data[:at] + PIECES[int(random.integers(len(PIECES)))] + data[at:]


def _number(data: bytes, random: np.random.Generator) -> bytes:
    found = list(NUMBER.finditer(data[:20_000]))
    if not found:
        return _byte(data, random)
    one = found[int(random.integers(len(found)))]
    return data[: one.start()] + NUMBERS[int(random.integers(len(NUMBERS)))] + data[one.end() :]


def _swapped(data: bytes, random: np.random.Generator) -> bytes:
    first, second, third = sorted(_place(data, random) for _ in range(3))
    return data[:first] + data[second:third] + data[first:second] + data[third:]


def _place(data: bytes, random: np.random.Generator) -> int:
    """A place in the data; as often as not among its first bytes, where headers are."""
    end = len(data) if random.random() < 0.5 else min(len(data), 400)
    return int(random.integers(0, end + 1))


CHANGES = (_cut, _taken_out, _repeated, _byte, _piece, _number, _swapped)
