"""`python -m model why`: the contract of its JSON, its text, and a sentence for what cannot be answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from attenscope.__main__ import main
from attenscope.attribution.any_model import ANY_MODEL_METHODS
from attenscope.attribution.methods import ATTRIBUTION_METHODS
from attenscope.text.words import group_tokens_into_words
from attenscope.translate import Translator

SENTENCE = "the old dog sees a cat."


@pytest.fixture
def ask(toy_checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str, sentence: str = SENTENCE) -> tuple[int, str, str]:
        code = main(["why", sentence, "--checkpoint", str(toy_checkpoint), *arguments])
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("method", ATTRIBUTION_METHODS)
def test_the_contract_of_a_method(ask: Any, toy_translator: Translator, method: str) -> None:
    code, out, _ = ask("--word", "3", "--method", method, "--json")
    found = json.loads(out)
    assert code == 0
    assert {"word", "against", "method", "source", "prefix", "target_value", "completeness_error"} <= set(found)
    translation = toy_translator.translate(SENTENCE, capture=False)
    group = group_tokens_into_words(translation.target_tokens)[2]
    assert found["word"] == "".join(translation.target_tokens[at] for at in group).strip()
    assert (found["method"], found["against"]) == (method, None)
    assert [one["piece"] for one in found["source"]] == list(translation.source_tokens)
    assert [one["piece"] for one in found["prefix"]] == (
        [] if method == "attention" else ["<s>", *translation.target_tokens[: group.start]]
    )
    assert all(isinstance(one["score"], float) for one in found["source"])
    assert found["target_value"] == pytest.approx(sum(translation.steps[at].log_prob for at in group), abs=1e-4)


def test_heads_and_all(ask: Any) -> None:
    _, out, _ = ask("--word", "2", "--against", "Hund", "--method", "heads", "--json", sentence="a cat sees a tree.")
    found = json.loads(out)
    assert found["against"] == "Hund"
    assert all(set(part) == {"name", "kind", "layer", "head", "score"} for part in found["parts"])
    assert found["sum"] == pytest.approx(sum(part["score"] for part in found["parts"]))
    assert found["sum"] == pytest.approx(found["logit"], abs=1e-4)
    _, out, _ = ask("--word", "2", "--method", "all", "--json")
    assert [one["method"] for one in json.loads(out)] == [*ATTRIBUTION_METHODS, "heads"]


def test_heads_switched_off(ask: Any) -> None:
    code, out, _ = ask("--word", "2", "--method", "heads-off", "--json")
    found = json.loads(out)
    assert (code, found["method"]) == (0, "heads-off")
    sizes = [abs(one["fall"]) for one in found["heads"]]
    assert sizes == sorted(sizes, reverse=True)
    _, out, _ = ask("--word", "2", "--method", "heads-off")
    kind, layer, head = (found["heads"][0][name] for name in ("kind", "layer", "head"))
    assert f"{kind} {layer + 1}.{head + 1}" in out.splitlines()[5]


def test_as_text(ask: Any) -> None:
    code, out, _ = ask("--word", "1", "--method", "all")
    assert code == 0
    assert "Nothing was written before this word" in out
    assert all(f"\n{method}: " in out for method in (*ATTRIBUTION_METHODS, "heads"))
    assert "completeness error" in out


def test_a_given_translation_and_changes_take_part(ask: Any) -> None:
    _, plain, _ = ask("--word", "2", "--given", "der Katze.", "--json")
    _, changed, _ = ask("--word", "2", "--given", "der Katze.", "--changes", "cross.2.1:off", "--json")
    values = [json.loads(one)["target_value"] for one in (plain, changed)]
    assert json.loads(plain)["word"] == "Katze"
    assert values[0] != values[1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--word", "99"], "There is no word 99: this translation has"),
        (["--word", "1", "--against", "Hund Katze"], "has several pieces"),
        (["--word", "1", "--against", "Ж"], "does not hold 'Ж'"),
        (["--word", "1", "--changes", "cross.9.9:off"], "this model has 2 layers of cross attention"),
        (["--word", "1", "--model", "nowhere"], "write it as package.module:factory"),
    ],
)
def test_what_cannot_be_answered(ask: Any, arguments: list[str], sentence: str) -> None:
    code, out, error = ask(*arguments)
    assert (code, out) == (2, "")
    assert sentence in error


@pytest.mark.parametrize("sentences", [-1, 0, 1])
def test_methods_are_measured_on_two_sentences_at_least(
    sentences: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of one pair there is none whose target is another's; of fewer, nothing is measured."""
    monkeypatch.setattr(Translator, "load", lambda *_: pytest.fail("loaded"))
    kept = tmp_path / "attribution.json"
    kept.write_text("measured before")
    command = ["attribution", "--checkpoint", str(tmp_path), "--data", "data", "--sentences", str(sentences)]
    assert main(command) == 2
    assert capsys.readouterr().err.endswith(f": --sentences is {sentences}; it must be at least 2.\n")
    assert kept.read_text() == "measured before"


STRANGER = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(9, 8), nn.Embedding(9, 8)
        self.body, self.head = nn.Transformer(8, 2, 1, 1, 16, batch_first=True), nn.Linear(8, 9)

    def forward(self, x, y):
        return self.head(self.body(self.source(x), self.target(y)))

def make():
    torch.manual_seed(0)
    model = Model().eval()
    def run(text):
        model(torch.tensor([[5, 2, 7]]), torch.tensor([[1, 6]]))
        return {"source": list("abc"), "target": ["<s>", "x"], "predicted": ["x", "y"]}
    return model, run
"""


def test_a_strangers_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "why_stranger.py").write_text(STRANGER, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    call = ["why", "abc", "--word", "2", "--model", "why_stranger:make", "--method"]
    assert main([*call, "all", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["method"] for one in found] == list(ANY_MODEL_METHODS)
    assert all(one["word"] == "y" and len(one["source"]) == 3 and one["not_computed"] for one in found)
    assert main([*call, "leave-one-out"]) == 0
    assert "embedding is zero" in capsys.readouterr().out
    assert main([*call, "heads"]) == 2
    assert "its heads are not switched off here" in capsys.readouterr().err
