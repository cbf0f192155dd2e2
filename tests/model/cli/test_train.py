"""`python -m model train` in processes of its own: killed, started again, and two that work as one."""

from __future__ import annotations

import csv
import json
import lzma
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from attenscope.__main__ import main
from attenscope.checkpoint.load import TOKENIZER_FILE, WEIGHTS_FILE, CheckpointError, load_checkpoint, unique_weights
from attenscope.checkpoint.measurements import read_history
from attenscope.checkpoint.recipe import Recipe
from attenscope.checkpoint.snapshots import load_snapshot, read_initial_weight_seed
from attenscope.cli.train import _read_phase_texts, build_config
from attenscope.network.transformer import Transformer
from attenscope.training.trainer import STATE_FILE
from tests import toy

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 240
"""Seconds in which a process of its own has begun, or ended, on a machine that has much else to do."""
SMALL = {"d_model": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 64, "max_length": 64}


def command(folder: Path, one: dict[str, Any]) -> list[str]:
    """`python -m model train` on toy text; the run's state and the checkpoint go below `folder`."""
    data = toy.write_text(folder.parent / "data")
    folder.mkdir(exist_ok=True)
    path = folder / "recipe.json"
    path.write_text(json.dumps(one))
    arguments = ["--config", path, "--data", data, "--state", folder / "run", "--output", folder / "out"]
    return ["-m", "model", "train", *map(str, arguments), "--device", "cpu"]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error::UserWarning"}


def run(*command: str) -> None:
    done = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


RUN = {
    "name": "toy-en-de",
    "source_language": "en",
    "target_language": "de",
    "facts": {"licence": "CC0"},
    "vocab_size": 120,
    "steps": 90,
    "decay_steps": 20,
    "warmup_steps": 10,
    "tokens_per_batch": 400,
    "save_every": 7,
    "evaluate_every": 30,
    "evaluate_sentences": 4,
    "average": 2,
    "model": {**SMALL, "dropout": 0.1},
}


def state_step(folder: Path) -> int:
    return torch.load(folder / "run" / STATE_FILE, weights_only=True)["step"]


@pytest.mark.slow
def test_killed_and_started_again_gives_the_weights_of_an_unbroken_run(tmp_path: Path) -> None:
    """kill -9 in the middle of a real run; then the same command once more."""
    assert main(command(tmp_path / "whole", RUN)[2:]) == 0
    broken = command(tmp_path / "broken", RUN)
    process = subprocess.Popen([sys.executable, *broken], cwd=ROOT, env=environment(), stderr=subprocess.DEVNULL)
    wait_for_state(tmp_path / "broken", process)
    time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert 0 < state_step(tmp_path / "broken") < RUN["steps"]  # type: ignore[operator]
    assert not (tmp_path / "broken" / "out").exists()
    run(*broken)
    for name in ("run/weights-0000060.safetensors", "run/weights-0000090.safetensors", f"out/{WEIGHTS_FILE}"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "broken" / name).read_bytes()
    released = load_checkpoint(tmp_path / "broken" / "out")
    assert released.card == {"source_language": "en", "target_language": "de", "licence": "CC0"}
    assert (tmp_path / "broken" / "out" / "history.csv").exists()
    assert Recipe.load(tmp_path / "broken" / "out" / "recipe.json") == Recipe(**RUN)  # type: ignore[arg-type]


@pytest.mark.sweep
def test_a_mixture_of_folders_goes_on_as_it_was_begun(tmp_path: Path) -> None:
    """Stopped before the switch and once more after it; bytes, digits and copies of every kind."""
    toy.write_text(tmp_path / "other", count=100)
    (tmp_path / "other" / "train.en").write_text("it's 12 dogs.\n" * 100)
    kinds = {"byte_fallback": True, "split_digits": True, "sloppy_apostrophes": True, "joined_share": 0.2}
    kinds |= {"shouted_share": 0.1, "renumbered": 2, "renamed_share": 0.5, "resegmented": 1}
    mixtures = {"mixture": {"data": 0.5, "other": 2}, "decay_mixture": {"other": 0}}
    one = {**RUN, **kinds, **mixtures, "vocab_size": 380, "steps": 12, "decay_steps": 5, "evaluate_every": 4}
    for name, stops in (("whole", ["12"]), ("parts", ["6", "9", "12"])):
        arguments = command(tmp_path / name, one)[2:]
        place = arguments.index("--data") + 2
        for stop in stops:
            assert main([*arguments[:place], str(tmp_path / "other"), *arguments[place:], "--steps", stop]) == 0
    whole, parts = (tmp_path / name / "out" / WEIGHTS_FILE for name in ("whole", "parts"))
    assert whole.read_bytes() == parts.read_bytes()
    tokenizer = load_checkpoint(tmp_path / "parts" / "out").tokenizer
    assert tokenizer.encode("狗").tokens == (" ", "<0xE7>", "<0x8B>", "<0x97>", "</s>")


@pytest.mark.sweep
def test_text_for_later_may_come_while_the_training_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same weights as with all of it from the start; afterwards it may not change any more."""
    one = {**RUN, "steps": 12, "decay_steps": 5, "evaluate_every": 4, "decay_mixture": {"data": 1}, "joined_share": 0.2}
    fallen = {**one, "decay_mixture": {"data": 0.5, "rewritten": 2}, "rewritten": "new.tsv.xz"}
    tuned = {**fallen, "steps": 16, "tuning_steps": 4, "tuning_rate": 0.001, "tuning_rewritten": "own.tsv.xz"}
    tuned["tuning_mixture"] = {"data": 0, "rewritten": 1}
    texts = {
        "new.tsv.xz": lzma.compress(b"data\t2\tein Fuchs\ndata\t9\t\n"),
        "own.tsv.xz": lzma.compress(b"data\t3\tein Wolf\n" * 30),
    }

    def train(name: str, recipe: dict[str, Any], stop: int) -> int:
        arguments = command(tmp_path / name, recipe)[2:]
        for file, text in texts.items():
            (tmp_path / name / file).write_bytes(text)
        return main([*arguments, "--steps", str(stop)])

    assert train("whole", tuned, 16) == 0
    assert train("parts", one, 7) == 0
    assert train("parts", fallen, 12) == 0  # released once, then tuned
    fallen_weights = (tmp_path / "parts" / "out" / WEIGHTS_FILE).read_bytes()
    assert train("parts", tuned, 14) == 0
    assert train("parts", fallen, 12) == 2
    assert "steps was 16 and is now 12" in capsys.readouterr().err
    texts["own.tsv.xz"] = lzma.compress(b"data\t3\tein Hund\n" * 30)
    assert train("parts", tuned, 16) == 2
    assert "the text of --data or its vocabulary is another" in capsys.readouterr().err
    texts["own.tsv.xz"] = lzma.compress(b"data\t3\tein Wolf\n" * 30)
    assert train("parts", tuned, 16) == 0
    whole, parts = (tmp_path / name / "out" for name in ("whole", "parts"))
    assert (whole / WEIGHTS_FILE).read_bytes() == (parts / WEIGHTS_FILE).read_bytes() != fallen_weights
    assert all((parts / file).read_bytes() == text for file, text in texts.items())
    assert [row.rate for row in read_history(parts)][-3:] == [0, 0.0005, 0]


def test_pairs_that_are_almost_dev_sentences_are_left_out_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = {**SHORT, "unlike_dev": True, "written": ["own.tsv"]}
    arguments = command(tmp_path / "run", one)[2:]
    near = (tmp_path / "data" / "dev.en").read_text().split("\n")[0].upper() + " NOW!"
    (tmp_path / "run" / "own.tsv").write_text(f"{near}\tjetzt\nFar away it is.\tWeit weg.\n")
    pairs, _, left_out = _read_phase_texts(Recipe(**one), [tmp_path / "data"], tmp_path / "run")[0]  # type: ignore[arg-type]
    assert pairs[-1] == ("Far away it is.", "Weit weg.")
    assert (near, "jetzt") not in pairs
    assert main(arguments) == 0
    assert f"{left_out:,} of {len(pairs) + left_out:,} pairs (" in capsys.readouterr().out


def losses(folder: Path) -> list[tuple[int, float]]:
    with (folder / "run" / "history.csv").open(newline="") as file:
        return [(int(row["step"]), float(row["loss"])) for row in csv.DictReader(file)]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


STEADY = {**RUN, "steps": 24, "decay_steps": 8, "evaluate_every": 4, "precision": "float32", "evaluate_sentences": 1}
STEADY["model"] = {**SMALL, "dropout": 0.0}


@pytest.mark.slow
def test_two_processes_have_the_loss_curve_of_one(tmp_path: Path) -> None:
    assert main(command(tmp_path / "one", STEADY)[2:]) == 0
    launcher = ["--nproc-per-node", "2", "--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    # The "--" keeps the launcher from reading --run as its own --run-path.
    run("-m", "torch.distributed.run", *launcher, "-m", "--", *command(tmp_path / "two", STEADY)[1:])
    alone, together = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert [step for step, _ in together] == [step for step, _ in alone] == [4, 8, 12, 16, 20, 24]
    assert [loss for _, loss in together] == pytest.approx([loss for _, loss in alone], rel=1e-4)
    assert alone[-1][1] < alone[0][1]


def pair(arguments: list[str]) -> list[subprocess.Popen[str]]:
    """Two processes of one run, started as torchrun starts them, but without its watching over them."""
    port = str(free_port())
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    return [
        subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**environment(), **group, "RANK": rank, "LOCAL_RANK": rank},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ("0", "1")
    ]


def wait_for_state(folder: Path, process: subprocess.Popen[Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not (folder / "run" / STATE_FILE).exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.sweep
@pytest.mark.timeout(4 * PATIENCE)
def test_a_lost_worker_ends_the_run_with_a_sentence_and_it_goes_on_from_its_state(tmp_path: Path) -> None:
    """kill -9 to one of two processes; then the same command once more gives the curve of an unbroken run."""
    long = {**STEADY, "steps": 100, "save_every": 10, "evaluate_every": 50}
    assert main(command(tmp_path / "whole", long)[2:]) == 0
    broken = command(tmp_path / "broken", long)
    first, second = pair(broken)
    try:
        wait_for_state(tmp_path / "broken", first)
        second.kill()
        said = first.communicate(timeout=PATIENCE)[1]
    finally:
        first.kill()
        second.kill()
        second.communicate()
    assert first.returncode == 1
    assert "Another training process was lost at step" in said
    assert "Start the same command again: the run goes on from the state in" in said
    assert "Traceback" not in said
    reached = state_step(tmp_path / "broken")
    assert 0 < reached < 100
    assert not (tmp_path / "broken" / "out").exists()
    for process in pair(broken):
        said = process.communicate(timeout=PATIENCE)[1]
        assert process.returncode == 0, said
    whole, resumed = losses(tmp_path / "whole"), losses(tmp_path / "broken")
    assert [step for step, _ in resumed] == [step for step, _ in whole] == [50, 100]
    assert [loss for _, loss in resumed] == pytest.approx([loss for _, loss in whole], rel=1e-4)
    assert load_checkpoint(tmp_path / "broken" / "out").name == "out"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"steps": 0}, "steps is 0; it must be at least 1"),
        ({"model": {"d_model": 30, "heads": 4}}, "d_model (30) must be divisible by heads (4)"),
        ({"keep_tokenizer": True}, "name its recipe in begin_from"),
        ({"vocab_size": 50_000}, "No vocabulary of 50000 pieces can be learned from this text"),
        ({"target_language": "fr"}, "a data folder holds train.en and train.fr"),
        ({"mixture": {"other": 2}}, "The recipe's mixture names other, but the folders of --data are data."),
        ({"decay_mixture": {"data": 0}}, "the mixture leaves all out"),
    ],
)
def test_what_a_person_can_mend_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], says: str
) -> None:
    assert main(command(tmp_path / "run", {**RUN, **change})[2:]) == 2
    error = capsys.readouterr().err
    assert re.match(r"python -m model train: ", error)
    assert says in error
    assert "Traceback" not in error


SHORT = {**RUN, "steps": 4, "decay_steps": 2, "evaluate_every": 2, "save_every": 2, "evaluate_sentences": 1}


def test_a_released_folder_knows_its_random_start_and_keeps_its_scores_in_its_card(tmp_path: Path) -> None:
    one = {**SHORT, "seed": 7, "snapshots": 8, "facts": {"title": "Toy", "licence": "CC0 | mine"}}
    assert main(command(tmp_path / "run", one)[2:]) == 0
    out = tmp_path / "run" / "out"
    torch.manual_seed(7)
    begun = unique_weights(Transformer(build_config(Recipe(**one))))  # type: ignore[arg-type]
    found = unique_weights(load_snapshot(load_checkpoint(out), 0, out).model)
    assert all(torch.equal(found[name], begun[name]) for name in begun)
    card = (out / "README.md").read_text()
    assert card.startswith("# toy-en-de\n\nToy.\n")
    assert "| licence | CC0 \\| mine |" in card
    assert "1 + 1 layers, d_model 32, 2 heads" in card
    texts = [str(tmp_path / "data" / f"dev.{language}") for language in ("en", "de")]
    asked = ["--checkpoint", str(out), "--source", texts[0], "--reference", texts[1], "--device", "cpu"]
    assert main(["evaluate", *asked, "--keep", "Toy dev"]) == 0
    assert "| Toy dev (20) | 1 |" in (out / "README.md").read_text()
    assert main(command(tmp_path / "run", one)[2:]) == 0  # released again: the card stays
    assert "Toy dev (20)" in (out / "README.md").read_text()


def test_a_training_begins_with_the_checkpoint_that_its_recipe_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = command(tmp_path / "first", SHORT)[2:], {**SHORT, "begin_from": "first.json", "vocab_size": 140}
    assert main(first) == 0
    more = command(tmp_path / "more", {**second, "name": "more"})[2:]
    (tmp_path / "more" / "first.json").write_text(json.dumps(SHORT))
    begin = ["--begin", str(tmp_path / "first" / "out")]
    for arguments, says in ((more, "name their folder by --begin"), ([*first, *begin], "leave --begin out")):
        assert main(arguments) == 2
        assert says in capsys.readouterr().err
    assert main([*more, *begin, "--steps", "1"]) == 0
    state = torch.load(tmp_path / "more" / "run" / STATE_FILE, weights_only=True)["model"]
    trained = unique_weights(load_checkpoint(tmp_path / "first" / "out").model)
    random = unique_weights(Transformer(build_config(Recipe.load(tmp_path / "more" / "recipe.json"))))
    same = [name for name in trained if trained[name].shape == state[name].shape and trained[name].ndim == 2]
    for name in same:
        assert (state[name] - trained[name]).abs().max() < 0.01 < (state[name] - random[name]).abs().max()
    assert main([*more, *begin]) == 0
    assert Recipe.load(tmp_path / "more" / "out" / "first.json") == Recipe.load(tmp_path / "more" / "first.json")
    with pytest.raises(CheckpointError, match="no random start"):
        read_initial_weight_seed(tmp_path / "more" / "out")
    (tmp_path / "more" / "first.json").write_text(json.dumps({**SHORT, "seed": 5}))
    assert main([*more, *begin]) == 2
    assert "was not trained by first.json: its seed differ" in capsys.readouterr().err


def test_a_third_training_keeps_the_tokenizer_and_both_recipes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its text is wider than that which the tokenizer was learned from."""
    toy.write_text(tmp_path / "other", count=50)
    (tmp_path / "other" / "train.en").write_text("quick brown foxes!\n" * 50)
    recipes = [SHORT, {**SHORT, "begin_from": "1.json"}, {**SHORT, "begin_from": "2.json", "keep_tokenizer": True}]
    folders = [tmp_path / str(number) for number in (1, 2, 3)]
    for number, (folder, recipe) in enumerate(zip(folders, recipes, strict=True), 1):
        arguments = command(folder, recipe)[2:]
        for earlier in range(1, number):
            (folder / f"{earlier}.json").write_text(json.dumps(recipes[earlier - 1]))
        if number > 1:
            place = arguments.index("--data") + 2
            arguments[place:place] = [str(tmp_path / "other"), "--begin", str(folders[number - 2] / "out")]
        if number == 3:
            (folder / "recipe.json").write_text(json.dumps({**recipe, "vocab_size": 150}))
            assert main(arguments) == 2
            assert "which has 120 pieces, but its vocab_size is 150" in capsys.readouterr().err
            (folder / "recipe.json").write_text(json.dumps(recipe))
        assert main(arguments) == 0
    first, second, third = ((folder / "out" / TOKENIZER_FILE).read_bytes() for folder in folders)
    assert first != second == third
    assert sorted(path.name for path in (folders[2] / "out").glob("*.json") if path.stem.isdigit()) == [
        "1.json",
        "2.json",
    ]


def test_a_changed_recipe_is_refused_and_names_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command(tmp_path / "run", SHORT)[2:], "--steps", "2"]) == 0
    changed = {**SHORT, "vocab_size": 130, "model": {**SMALL, "heads": 4, "dropout": 0.1}}
    assert main(command(tmp_path / "run", changed)[2:]) == 2
    error = capsys.readouterr().err
    assert "heads was 2 and is now 4" in error
    assert "vocab_size was 120 and is now 130" in error
    assert "Traceback" not in error
    assert not (tmp_path / "run" / "out").exists()
    assert state_step(tmp_path / "run") == 2
    (tmp_path / "run" / "run" / STATE_FILE).unlink()  # the vocabulary that is left is the old recipe's
    assert main(command(tmp_path / "run", changed)[2:]) == 0
    assert len(load_checkpoint(tmp_path / "run" / "out").tokenizer) == 130


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--steps", "0"], "--steps is 0; it must be at least 1."),
        (["--steps", "-3"], "--steps is -3; it must be at least 1."),
        (["--device", "gpu"], "'gpu'"),
        (["--device", "cuda"], "cpu"),
    ],
)
def test_arguments_that_cannot_be_are_one_sentence(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main([*command(tmp_path / "run", SHORT)[2:], *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("python -m model train: ")
    assert says in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run" / "run").exists()


def test_frames_beside_the_recipe_are_text_like_that_of_a_folder(tmp_path: Path) -> None:
    table = "noun\tfox\tFuchs\tm\nnoun\tdog\tHund\tm\nframe\tthe quick [noun]\t[der noun]\n"
    recipe = {**SHORT, "frames": "words.tsv", "mixture": {"frames": 3}}
    arguments = command(tmp_path / "run", recipe)[2:]
    (tmp_path / "run" / "words.tsv").write_text(table)
    pairs, often, _ = _read_phase_texts(Recipe(**recipe), [tmp_path / "data"], tmp_path / "run")[0]  # type: ignore[arg-type]
    assert often.tolist() == [1] * (len(pairs) - 2) + [3, 3]
    assert sorted(pairs[-2:]) == [("The quick dog", "Der Hund"), ("The quick fox", "Der Fuchs")]
    assert main(arguments) == 0
    assert (tmp_path / "run" / "out" / "words.tsv").read_text() == table


def test_pairs_written_beside_the_recipe_are_text_like_that_of_a_folder(tmp_path: Path) -> None:
    tables = {
        "own.tsv": "The fox sleeps.\tDer Fuchs schläft.\n".encode(),
        "more.tsv.xz": lzma.compress(b"Good night!\tGute Nacht!\n"),
    }
    recipe = {**SHORT, "written": [*tables], "mixture": {"written": 2}}
    arguments = command(tmp_path / "run", recipe)[2:]
    for name, table in tables.items():
        (tmp_path / "run" / name).write_bytes(table)
    pairs, often, _ = _read_phase_texts(Recipe(**recipe), [tmp_path / "data"], tmp_path / "run")[0]  # type: ignore[arg-type]
    assert often.tolist() == [1] * (len(pairs) - 2) + [2, 2]
    assert pairs[-2:] == [("The fox sleeps.", "Der Fuchs schläft."), ("Good night!", "Gute Nacht!")]
    assert main(arguments) == 0
    for name, table in tables.items():
        assert (tmp_path / "run" / "out" / name).read_bytes() == table
