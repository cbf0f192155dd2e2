"""Files are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from attenscope.atomic_write import atomic_write, write_file
from attenscope.trace import AttentionMap, AttentionTrace


def test_a_file_is_replaced_and_nothing_else_left(tmp_path: Path) -> None:
    place = tmp_path / "file.json"
    for content in ("first \u2192 \u00fc", "second"):
        write_file(place, content)
        assert place.read_text(encoding="utf-8") == content
    write_file(place, b"\x00\xff")
    assert place.read_bytes() == b"\x00\xff"
    assert os.listdir(tmp_path) == ["file.json"]


def test_what_was_there_stays_when_writing_fails(tmp_path: Path) -> None:
    place = tmp_path / "file"
    write_file(place, "before")

    def half(path: Path) -> None:
        with atomic_write(path) as beside:
            beside.write_text("half")
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk"):
        half(place)
    assert place.read_text() == "before"
    assert os.listdir(tmp_path) == ["file"]


def test_a_trace_over_an_existing_one_is_never_truncated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.full((1, 1, 2, 2), 0.5, np.float32)
    trace = AttentionTrace(AttentionMap("encoder", weights, (" a", " b"), (" a", " b"), np.ones((2, 2), bool)))
    place = tmp_path / "trace.safetensors"
    trace.save(place)
    before = place.read_bytes()

    def full(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        trace.save(place)
    assert place.read_bytes() == before
    assert os.listdir(tmp_path) == [place.name]


def test_a_name_may_be_as_long_as_the_file_system_has_room_for(tmp_path: Path) -> None:
    place = tmp_path / f"{'篇' * 82}.html"
    write_file(place, "written")
    assert os.listdir(tmp_path) == [place.name]


def test_a_link_stays_a_link_and_a_pipe_is_written_to(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    write_file(link, "through")
    assert link.is_symlink()
    assert (tmp_path / "target").read_text() == "through"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_file(pipe, "told")
    assert os.read(reader, 9) == b"told"
    os.close(reader)
