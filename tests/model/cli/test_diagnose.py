"""The command line: verdicts, exit codes, JSON lines, every kind of file, and files meant to do harm."""

from __future__ import annotations

import argparse
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from attenscope.cli.diagnose import add_diagnose_arguments, diagnose_file, run_diagnose
from attenscope.trace import AttentionMap, AttentionTrace
from tests.model.masks.readers.hostile_files import mutated, special

SOUND = np.array([[1, 0, 0], [0.4, 0.6, 0], [0.2, 0.3, 0.5]])
FULL = np.array([[0.5, 0.2, 0.3], [0.1, 0.8, 0.1], [0.25, 0.35, 0.4]])


def ask(*arguments: str) -> tuple[int, list[str]]:
    parser = argparse.ArgumentParser()
    add_diagnose_arguments(parser)
    out = io.StringIO()
    code = run_diagnose(parser.parse_args(arguments), out)
    return code, out.getvalue().splitlines()


def written(folder: Path, ending: str, array: np.ndarray) -> str:
    path = folder / f"some{ending}"
    writers = {
        ".npy": lambda: np.save(path, array),
        ".npz": lambda: np.savez(path, weights=array),
        ".safetensors": lambda: save_file({"weights": array}, path),
        ".csv": lambda: np.savetxt(path, array, delimiter=","),
        ".json": lambda: path.write_text(json.dumps({"weights": array.tolist()})),
    }
    writers[ending]()
    return str(path)


@pytest.mark.parametrize("ending", [".npy", ".npz", ".safetensors", ".csv", ".json"])
def test_every_kind_of_file_is_read(tmp_path: Path, ending: str) -> None:
    file = written(tmp_path, ending, SOUND)
    assert ask(file, "--meant", "causal", "--json") == (
        0,
        [json.dumps({"file": file, "verdict": "sound", "findings": []})],
    )
    code, (line,) = ask(written(tmp_path, ending, FULL), "--meant", "causal", "--json")
    assert code == 1
    (finding,) = json.loads(line)["findings"]
    keys = ["code", "severity", "map", "sample", "layer", "head", "queries", "keys", "message", "fix", "level"]
    keys += ["layers", "origin", "first_map"]
    assert list(finding) == keys
    assert (finding["code"], finding["queries"], finding["keys"]) == ("future-visible", [0, 1], [1, 2])


def test_the_worst_file_decides_and_the_others_are_answered_in_order(tmp_path: Path) -> None:
    good, bad = written(tmp_path, ".npy", SOUND), written(tmp_path, ".csv", FULL)
    code, lines = ask(bad, str(tmp_path / "missing.npy"), good, "--meant", "causal", "--json")
    assert code == 2
    assert [json.loads(line)["verdict"] for line in lines] == ["faulty", "unreadable", "sound"]
    assert json.loads(lines[1])["reason"] == f"There is no file '{tmp_path / 'missing.npy'}'."


def test_a_folder_and_a_missing_file_are_called_so_whatever_their_ending(tmp_path: Path) -> None:
    assert diagnose_file(str(tmp_path)).reason == f"'{tmp_path}' is a folder; name a file in it."
    assert diagnose_file(str(tmp_path / "none")).reason == f"There is no file '{tmp_path / 'none'}'."
    (tmp_path / "there").touch()
    assert diagnose_file(str(tmp_path / "there")).reason.startswith("Files without an ending are not read; .npz, ")


def test_names_that_are_not_read_are_told(tmp_path: Path) -> None:
    for name, write in {
        "some.json": lambda path: path.write_text(json.dumps({"picture": SOUND.tolist(), "step": 3})),
        "some.npz": lambda path: np.savez(path, picture=SOUND, step=3),
    }.items():
        write(tmp_path / name)
        reason = diagnose_file(str(tmp_path / name)).reason
        assert reason.startswith("The file holds 'picture', 'step'. Name its arrays weights, scores, ")


def test_arrays_that_are_empty_or_text_are_told(tmp_path: Path) -> None:
    file = tmp_path / "some.json"
    for name in ("mask", "attention_mask", "key_padding_mask", "attn_bias", "cu_seqlens"):
        for array, said in (([[]], "is empty: its shape is (1, 0)."), ([["a"]], "holds <U1 values; it must hold ")):
            file.write_text(json.dumps({name: array, "weights": [[1.0]]}))
            answer = diagnose_file(str(file))
            assert answer.verdict == "unreadable"
            assert answer.reason.startswith(f"{name} {said}")


def test_people_get_the_meaning_the_finding_and_the_fix(tmp_path: Path) -> None:
    code, lines = ask(written(tmp_path, ".npy", FULL), "--meant", "causal")
    text = "\n".join(lines)
    assert code == 1
    for part in (
        "faulty",
        "\n  meant: causal\n",
        "future-visible",
        "fix: mask",
        "cannot tell: padding-swapped (without query_keep), soft-mask (without scores or",
    ):
        assert part in text


def test_a_meaning_that_does_not_exist_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(written(tmp_path, ".npy", SOUND), "--meant", "sideways") == (2, [])
    assert "causal, padding" in capsys.readouterr().err


@pytest.mark.parametrize("meant", ["causal", "padding", "causal+window:2", "prefix:1", "packed:1,2", "full"])
def test_named_meanings_are_masks(tmp_path: Path, meant: str) -> None:
    masks = {
        "causal": np.tri(3),
        "padding": np.ones((3, 3)),
        "causal+window:2": np.tri(3) - np.tri(3, k=-2),
        "prefix:1": np.tri(3),
        "packed:1,2": np.array([[1, 0, 0], [0, 1, 1], [0, 1, 1]]),
        "full": np.ones((3, 3)),
    }
    weights = np.exp(np.arange(9.0).reshape(3, 3) / 7) * masks[meant]
    file = written(tmp_path, ".npy", weights / weights.sum(-1, keepdims=True))
    assert ask(file, "--meant", meant)[0] == 0


def trace(decoder: np.ndarray) -> AttentionTrace:
    def one(kind: Any, weights: np.ndarray, mask: np.ndarray) -> AttentionMap:
        tokens = ("a", "b", "c")
        return AttentionMap(kind, np.broadcast_to(weights, (2, 2, 3, 3)).astype(np.float32), tokens, tokens, mask)

    whole = np.ones((3, 3), bool)
    return AttentionTrace(
        one("encoder", FULL, whole), one("decoder", decoder, np.tri(3, dtype=bool)), one("cross", FULL, whole)
    )


def test_a_saved_trace_is_judged_map_by_map(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    trace(SOUND).save(path)
    assert ask(str(path))[0] == 0
    assert ask(str(path), "--meant", "causal")[0] == 0
    trace(FULL).save(path)
    (found,) = diagnose_file(str(path)).findings
    assert (found.map, found.code) == ("decoder", "mask-ignored")


@pytest.mark.parametrize("count", [400, pytest.param(2000, marks=pytest.mark.slow)])
def test_random_files_give_answers(tmp_path: Path, count: int) -> None:
    random, verdicts = np.random.default_rng(0), set()
    for _ in range(count):
        ending, data = mutated(random)
        path = tmp_path / f"x{ending}"
        path.write_bytes(data)
        answer = diagnose_file(
            str(path), str(random.choice(["causal", "padding", "window:2"])) if random.random() < 0.5 else None
        )
        verdicts.add(answer.verdict)
        assert (answer.verdict == "unreadable") == bool(answer.reason)
        json.loads(answer.as_json())
    assert verdicts == {"sound", "open", "question", "faulty", "unreadable"}


def test_hostile_files_are_unreadable_and_run_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    for name, data in special(mark).items():
        path = tmp_path / name
        path.write_bytes(data)
        answer = diagnose_file(str(path))
        assert answer.verdict == "unreadable", name
        assert answer.reason.endswith("."), name
        assert "Traceback" not in answer.reason
        assert not mark.exists(), name


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    path.write_bytes(special(tmp_path / "executed")["bomb.npz"])
    tracemalloc.start()
    answer = diagnose_file(str(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.verdict == "unreadable"
    assert peak < 16 * 2**20


def test_a_file_that_is_too_large_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    with path.open("wb") as file:
        file.truncate(40 * 2**20)
    assert "at most 32 MB" in diagnose_file(str(path)).reason


def test_a_guess_is_a_question_and_fails_nothing(tmp_path: Path) -> None:
    file = written(tmp_path, ".npy", SOUND)
    code, lines = ask(file)
    assert code == 0
    assert lines[0].startswith(f"{file}: no contradiction; what was meant? say it with --meant: causal, ")
    path = tmp_path / "decoder.npz"
    np.savez(path, **{"decoder.weights": FULL})  # type: ignore[arg-type]
    code, lines = ask(str(path))
    assert (code, lines[0].split(": ")[1]) == (0, "a question")
    assert any(line.startswith("  likely: future-visible: ") for line in lines)
    assert [json.loads(line)["verdict"] for line in ask(str(path), "--json")[1]] == ["question"]
    assert ask(str(path), "--meant", "causal and window 3")[0] == 1
