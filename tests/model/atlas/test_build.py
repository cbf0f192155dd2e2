"""An atlas built by one process or two, killed and gone on with, of a corpus with all that can be wrong with one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
import torch

from attenscope.__main__ import main
from attenscope.atlas import build
from attenscope.atlas.build import Corpus, WorkerShare, build_atlas
from attenscope.atlas.files import AtlasError, check_atlas_complete, check_atlas_model, read_manifest
from attenscope.atomic_write import atomic_write
from attenscope.checkpoint.load import find_checkpoint_folder, list_checkpoints
from attenscope.translate import Translator
from tests import toy

FILES = ("heads", "halves", "sentences", "tags", "costs", "links/0000")


def corpus_of(folder: Path, count: int = 12, size: int = 4) -> Corpus:
    folder.mkdir(parents=True, exist_ok=True)
    for name, side in (("a.en", 0), ("a.de", 1)):
        text = "".join(f"{pair[side]}\n" for pair in toy.sentences(count, seed=5))
        (folder / name).write_text(text, encoding="utf-8")
    return Corpus.read(folder / "a.en", folder / "a.de", size)


def contents(folder: Path) -> list[bytes]:
    return [(folder / f"{name}.parquet").read_bytes() for name in FILES]


def rows_by_tag(folder: Path) -> Counter[tuple[str, str]]:
    """How many rows of each map begin at a part of speech and have a choice, counted in the sentences."""
    counts: Counter[tuple[str, str]] = Counter()
    table = pd.read_parquet(folder / "sentences.parquet")
    for source, target in zip(table["source_tags"], table["target_tags"], strict=True):
        if len(source) > 1:
            counts.update(("encoder", tag) for tag in source)
            counts.update(("cross", tag) for tag in target)
        counts.update(("decoder", tag) for tag in target[:-1])  # fed in after <s>, whose row has one key
    return counts


def check_tags(folder: Path) -> None:
    """The rows of a part of speech are those of the whole corpus, whatever part of speech the key has."""
    counts = rows_by_tag(folder)
    assert counts
    found = pd.read_parquet(folder / "tags.parquet")
    assert {(kind, tag) for kind, tag in zip(found["map"], found["query_tag"], strict=True)} == set(counts)
    for group, rows in found.groupby(["map", "layer", "head", "query_tag"]):
        kind, layer, head, tag = map(str, group)
        assert set(rows["rows"]) == {counts[kind, tag]}, (kind, layer, head, tag)
        assert rows["mass"].sum() == pytest.approx(counts[kind, tag], rel=1e-4)
        assert rows["even"].sum() == pytest.approx(counts[kind, tag], rel=1e-4)
    assert (found["even"] > 0).all()


@pytest.mark.sweep
def test_rows_of_a_part_of_speech_are_those_of_all_parts(toy_translator: Translator, tmp_path: Path) -> None:
    """Of parts of one sentence, some have no pair that others have."""
    build_atlas(toy_translator, corpus_of(tmp_path / "text", size=1), tmp_path / "atlas", costs=False)
    check_tags(tmp_path / "atlas")


@pytest.mark.parametrize("name", list_checkpoints())
def test_rows_of_released_atlases(name: str) -> None:
    check_tags(find_checkpoint_folder(name) / "atlas")


@pytest.mark.sweep
def test_two_processes_and_a_killed_one_give_the_rows_of_one(
    toy_translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = corpus_of(tmp_path / "text")
    one, two, killed = (tmp_path / name for name in ("one", "two", "killed"))
    build_atlas(toy_translator, corpus, one)
    other = threading.Thread(
        target=build_atlas, args=(toy_translator, corpus, two), kwargs={"share": WorkerShare(1, 2)}
    )
    other.start()
    build_atlas(toy_translator, corpus, two, share=WorkerShare(0, 2))
    other.join()
    assert contents(two) == contents(one)

    written = build._write_part

    def dies(folder: Path, number: int, *more: object) -> None:
        if number == 2:
            (folder / "parts" / ".000002.new").mkdir()
            raise KeyboardInterrupt
        written(folder, number, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(build, "_write_part", dies)
    with pytest.raises(KeyboardInterrupt):
        build_atlas(toy_translator, corpus, killed)
    with pytest.raises(AtlasError, match="not finished"):
        check_atlas_complete(killed, read_manifest(killed))
    begun = (killed / "parts" / "000001" / "links.parquet").stat().st_mtime_ns
    monkeypatch.setattr(build, "_write_part", written)
    with pytest.raises(AtlasError, match="made of something else \\(costs\\)"):
        build_atlas(toy_translator, corpus, killed, costs=False)
    assert (killed / "parts" / "000001" / "links.parquet").stat().st_mtime_ns == begun
    build_atlas(toy_translator, corpus, killed)
    assert contents(killed) == contents(one)
    assert not (killed / "parts").exists()


def test_a_folder_in_which_another_process_is_just_beginning_is_no_folder_of_other_files(
    toy_translator: Translator, tmp_path: Path
) -> None:
    (tmp_path / "atlas" / "parts").mkdir(parents=True)
    corpus = corpus_of(tmp_path / "text")
    with atomic_write(tmp_path / "atlas" / "atlas.json") as half_written:
        half_written.write_text("{")
        assert build_atlas(toy_translator, corpus, tmp_path / "atlas") is not None
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(AtlasError, match="holds other files"):
        build_atlas(toy_translator, corpus, tmp_path / "other")


def test_what_cannot_be_used_is_counted_and_left_out(toy_translator: Translator, tmp_path: Path) -> None:
    lines = [b"the dog sees a cat.", b"", b"\xff\xfe", b"the dog " * 60, b"Das ist nicht der Hund und wir sind es."]
    (tmp_path / "a.en").write_bytes(b"\n".join([*lines, b"the cat sees a dog.", b"a dog"]) + b"\n")
    (tmp_path / "a.de").write_bytes(b"der Hund sieht ein Katze.\nx\nx\nx\nx\nder Katze sieht ein Hund.\n")
    corpus = Corpus.read(tmp_path / "a.en", tmp_path / "a.de", 3)
    found = build_atlas(toy_translator, corpus, tmp_path / "atlas", costs=False, licence="CC0")
    assert found is not None
    assert found.skipped == {
        "empty": 1, "not valid Unicode": 1, "too long for the model": 1, "another language": 1,
        "no line on the other side": 1,
    }  # fmt: skip
    assert found.skipped_lines["no line on the other side"] == [7]
    assert pd.read_parquet(tmp_path / "atlas" / "sentences.parquet")["sentence"].tolist() == [0, 5]
    assert "cost" not in pd.read_parquet(tmp_path / "atlas" / "heads.parquet")
    own = build_atlas(toy_translator, Corpus.read(tmp_path / "a.en", None, 3), tmp_path / "own", costs=False)
    assert own is not None
    assert own.sentences == 3
    target = pd.read_parquet(tmp_path / "own" / "sentences.parquet")["target"].iloc[0]
    assert target == toy_translator.translate("the dog sees a cat.").text


def test_another_model_a_damaged_part_and_an_empty_corpus_are_refused(
    toy_translator: Translator, tmp_path: Path
) -> None:
    corpus, folder = corpus_of(tmp_path / "text", 4, 2), tmp_path / "atlas"
    found = build_atlas(toy_translator, corpus, folder, costs=False)
    assert found is not None
    with pytest.raises(AtlasError, match="the model here is other with ffff"):
        check_atlas_model(found, "other", "ffff")
    links = folder / "links" / "0000.parquet"
    links.write_bytes(links.read_bytes()[:-1])
    with pytest.raises(AtlasError, match=r"links/0000\.parquet is damaged"):
        check_atlas_complete(folder, found)
    with pytest.raises(AtlasError, match="holds other files"):
        build_atlas(toy_translator, corpus, tmp_path / "text")
    (tmp_path / "empty").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="is empty"):
        Corpus.read(tmp_path / "empty", None, 5)


@pytest.mark.sweep
def test_torchrun_and_one_process_give_the_same_atlas(toy_checkpoint: Path, tmp_path: Path) -> None:
    corpus_of(tmp_path, 8)
    given = ["atlas", "--checkpoint", str(toy_checkpoint), "--device", "cpu", "--part", "3"]
    given += ["--source", str(tmp_path / "a.en"), "--target", str(tmp_path / "a.de")]
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "model"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*launch, *given, "--output", str(tmp_path / "two")], env=environment, check=True, timeout=170)
    assert torch.get_num_threads() == 1
    assert main([*given, "--output", str(tmp_path / "one")]) == 0
    assert contents(tmp_path / "two") == contents(tmp_path / "one")
