"""The files beside a talk: named by scenes, checked as uploads are, packed with the talk and opened again."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from attenscope.trace import AttentionMap, AttentionTrace
from attenscope.untrusted_trace import OpenedTrace
from attenscope.viz.talk import attachments
from attenscope.viz.talk.checks import check_talk
from attenscope.viz.talk.file import format_talk, parse_talk
from attenscope.viz.talk.scenes import Scene, Talk
from attenscope.viz.traces.upload_store import UploadStore, create_key

OWN = Scene("Mine", "explore", {"kind": "encoder"}, trace="mine.safetensors")
MASK = Scene("My mask", "masks", arrays="mask.npy")
TALK = Talk("Of my own", (OWN, MASK))


@pytest.fixture
def saved(tmp_path: Path) -> dict[str, bytes]:
    """A trace and a mask as they stand on a disk."""
    weights = np.tril(np.ones((1, 2, 3, 3), np.float32))
    weights /= weights.sum(-1, keepdims=True)
    one = AttentionMap("encoder", weights, ("Ich", " lese", " viel"), ("Ich", " lese", " viel"), np.tri(3, dtype=bool))
    AttentionTrace(one, source="Ich lese viel", model="mine").save(tmp_path / "mine.safetensors")
    np.save(tmp_path / "mask.npy", np.tri(3, dtype=bool))
    return {name: (tmp_path / name).read_bytes() for name in ("mine.safetensors", "mask.npy")}


@pytest.fixture
def files(saved: dict[str, bytes]) -> dict[str, attachments.AttachedFile]:
    return {name: attachments.read_attachment(name, data) for name, data in saved.items()}


def test_a_talk_and_its_files_are_packed_and_unpacked(
    files: dict[str, attachments.AttachedFile], saved: dict[str, bytes]
) -> None:
    found, problems = attachments.expand_zip_files([("talk.zip", attachments.pack_talk(TALK, files))])
    assert not problems
    assert set(found) == {"talk.toml", *saved}
    talk, mistakes = parse_talk(found["talk.toml"].decode())
    assert not mistakes
    assert talk == TALK
    assert found["mask.npy"] == saved["mask.npy"]
    again = attachments.read_attachment("mine.safetensors", found["mine.safetensors"])
    assert isinstance(again, OpenedTrace)
    assert again.trace.source == "Ich lese viel"


def test_a_scene_without_its_file_is_left_out_with_its_line(files: dict[str, attachments.AttachedFile]) -> None:
    talk, _ = parse_talk(format_talk(TALK))
    checked = check_talk(talk, {}, {"mask.npy": files["mask.npy"]})
    assert [scene.title for scene in checked.shown] == ["My mask"]
    (mistake,) = checked.mistakes
    assert "no file 'mine.safetensors' beside the talk" in mistake.text
    assert format_talk(talk).splitlines()[mistake.line - 1] == 'trace = "mine.safetensors"'
    (wrong,) = check_talk(Talk("", (Scene("", "why", trace="mine.safetensors"),)), {}, files).mistakes
    assert "The page why shows no trace of a file" in wrong.text


@pytest.mark.parametrize("name", ["../mine.safetensors", "a/b.npy", "", ".npy", "x\ny.npy", "no-ending"])
def test_a_name_that_is_none_is_refused(name: str, saved: dict[str, bytes]) -> None:
    with pytest.raises(ValueError, match="plain name"):
        attachments.read_attachment(name, saved["mask.npy"])


def test_what_is_no_trace_no_array_or_no_zip_is_named(saved: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mine.safetensors", "mask.npy"):
        with pytest.raises(ValueError, match=name):
            attachments.read_attachment(name, b"nonsense")
    assert "broken.zip cannot be opened" in attachments.expand_zip_files([("broken.zip", b"PK nonsense")])[1][0]
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("large.npy", bytes(3 * 2**20))
    monkeypatch.setattr(attachments, "MAX_FILE_MEGABYTES", 2)
    found, (problem,) = attachments.expand_zip_files([("large.zip", whole.getvalue())])
    assert not found
    assert "unpacks to more than 2 MB" in problem


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_a_zip_with_damaged_data_is_named_and_the_other_files_are_read(method: int) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", method) as archive:
        archive.writestr("mask.npy", b"of a mask " * 40)
    data = bytearray(whole.getvalue())
    begin = data.index(b"mask.npy") + len("mask.npy")
    data[begin + 4 : begin + 9] = b"\xff" * 5  # The directory at the end stays whole.
    found, (problem,) = attachments.expand_zip_files([("t.zip", bytes(data)), ("other.npy", b"other")])
    assert found == {"other.npy": b"other"}
    assert problem.startswith("t.zip cannot be opened: ")


def test_a_file_that_the_server_has_lost_comes_back_under_its_key(
    saved: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor: dict[str, object] = {}
    monkeypatch.setattr(attachments.st, "session_state", visitor)
    monkeypatch.setattr(attachments, "get_upload_store", cache(lambda: UploadStore(2**20, 2**20)))
    data = saved["mask.npy"]
    assert (
        attachments.attach_arrays("my mask, 2.npy", data)
        == attachments.attach_arrays("my mask, 2.npy", data)
        == "my-mask-2.npy"
    )
    assert attachments.attach_arrays("my mask, 2.npy", _array(4)) == "my-mask-2-2.npy"
    with pytest.raises(ValueError, match="no saved trace"):
        attachments.attach_arrays("mine.safetensors", saved["mine.safetensors"])
    keys = attachments.get_all_file_keys()
    assert attachments.get_stored_file_keys() == keys
    assert attachments.encode_file_for_browser("my-mask-2.npy") == data

    monkeypatch.setattr(attachments, "get_upload_store", cache(lambda: UploadStore(2**20, 2**20)))  # started again
    visitor.clear()
    attachments.restore_file_keys_from_browser(keys)
    assert (attachments.get_all_file_keys(), attachments.get_stored_file_keys()) == (keys, {})
    attachments.restore_file_from_browser("my-mask-2.npy", b"nonsense")
    attachments.restore_file_from_browser("another.npy", data)
    assert not attachments.get_stored_file_keys()
    attachments.restore_file_from_browser("my-mask-2.npy", data)
    assert attachments.get_stored_file_keys() == {"my-mask-2.npy": keys["my-mask-2.npy"]}
    attachments.restore_file_from_browser("my-mask-2.npy", _array(4))  # Of a file that is there the server's own stays.
    assert attachments.encode_file_for_browser("my-mask-2.npy") == data


def test_a_server_that_takes_no_files_takes_none_from_a_browser(
    saved: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments.st, "session_state", {})
    monkeypatch.setattr(attachments, "get_upload_store", cache(lambda: UploadStore(2**20, 2**20)))
    attachments.restore_file_keys_from_browser({"mask.npy": create_key()})
    monkeypatch.setenv("ATTENSCOPE_READ_ONLY", "1")
    attachments.restore_file_from_browser("mask.npy", saved["mask.npy"])
    assert not attachments.get_stored_file_keys()
    monkeypatch.delenv("ATTENSCOPE_READ_ONLY")
    attachments.restore_file_from_browser("mask.npy", saved["mask.npy"])
    assert attachments.get_stored_file_keys()


def _array(size: int) -> bytes:
    whole = io.BytesIO()
    np.save(whole, np.tri(size, dtype=bool))
    return whole.getvalue()


@pytest.mark.slow
def test_one_file_holds_what_the_files_show(saved: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "talk.toml").write_text(format_talk(TALK), encoding="utf-8")
    out = tmp_path / "talk.html"
    command = [sys.executable, "-m", "attenscope.viz.export", str(tmp_path / "talk.toml"), str(out)]
    made = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    found = re.search(r'id="content">([^<]*)<', out.read_text(encoding="utf-8"))
    assert found
    content = gzip.decompress(base64.b64decode(found[1]))
    slides = json.loads(content[4 : 4 + int.from_bytes(content[:4], "little")])["slides"]
    assert [slide["missing"] for slide in slides] == ["", ""]
    assert [slide["facts"].get("sentence") for slide in slides] == ["Ich lese viel", None]
    (tmp_path / "mine.safetensors").write_bytes(b"nonsense")
    made = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert made.returncode == 1
    assert "mine.safetensors cannot be opened" in made.stderr
