"""Marian folders in the engine of live files: the pieces, ids, weights and log-probabilities of Python."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import sentencepiece
from playwright.sync_api import Page, expect

from attenscope.runnable_model import RunnableModel
from attenscope.user_model import load_user_model
from attenscope.viz.engine.pack_checkpoint import PackageError, describe_model
from tests import folders
from tests.browser.engine_page import EnginePage
from tests.browser.test_engine import HOSTILE, check_numbers, random_texts

pytest.importorskip("transformers")
pytestmark = pytest.mark.timeout(600)
TEXT = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").split("\n")
SPECIAL_INSIDE = ("a </s> dog", "<unk>", "a<pad>b", ">>de<< a dog", ">>fr<<", ">>x", "the  old\tdog ")


def train_pieces(kind: str) -> bytes:
    """A SentencePiece model of `kind` with the normalizer that OPUS has, of the toy folders' text and more."""
    written = io.BytesIO()
    lines = [*folders.TEXT, *(line for line in TEXT if line.strip())]
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(lines), model_writer=written, vocab_size=300, model_type=kind, minloglevel=2
    )
    return written.getvalue()


def round_to_half(folder: Path) -> None:
    """Make the weights numbers of half precision, as a live file holds them."""
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    save_file({name: one.half().float() for name, one in load_file(path).items()}, path, {"format": "pt"})


@pytest.fixture
def make_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunnableModel]:
    def make(kind: str, target: str = "", **settings: object) -> RunnableModel:
        monkeypatch.setattr(folders, "pieces", lambda: train_pieces(kind))
        folder = folders.marian(tmp_path / f"{kind}{target}", ("de", "fr") if target else (), **settings)
        round_to_half(folder)
        found = load_user_model(f"hf:{folder}{f'?target={target}' if target else ''}")
        assert isinstance(found, RunnableModel)
        return found

    return make


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("kind", "target", "settings"),
    [
        ("unigram", "", {"activation_function": "swish"}),
        ("bpe", "", {"activation_function": "relu", "scale_embedding": False}),
        ("unigram", "fr", {"activation_function": "gelu"}),
    ],
)
def test_a_folder_computes_what_torch_computes(
    disk: Page, tmp_path: Path, make_model: Callable[..., RunnableModel], kind: str, target: str, settings: dict
) -> None:
    model = make_model(kind, target, **settings)
    engine = EnginePage(disk, tmp_path, describe_model(model))
    texts = [one for one in (*HOSTILE, *SPECIAL_INSIDE, *TEXT, *random_texts(300, 2)) if one.strip()]
    for text, own in zip(texts, engine.encode(texts), strict=True):
        expected = model.tokenizer.encode(text)
        assert own["ids"] == [*expected.ids], repr(text)
        assert own["tokens"] == [*expected.tokens], repr(text)
        assert own["unknown"] == [*expected.unknown], repr(text)
    chosen = random.Random(3)
    ids = [[chosen.randrange(len(model.tokenizer)) for _ in range(chosen.randint(0, 12))] for _ in range(200)]
    assert engine.decode(ids) == [model.decode_target(one) for one in ids]
    text = folders.SENTENCE
    check_numbers(model.translate(text), engine.translate(text))
    given = (9, 20, 2, 33, 1, 5, 0)
    check_numbers(model.force(text, given), engine.translate(text, target=list(given)))
    tree, found = model.search(text, 3), engine.translate(text, beam=3)["tree"]
    assert [tuple(one["ids"]) for one in found["best"]] == [one.token_ids for one in tree.best]


@pytest.mark.slow
def test_five_hundred_sentences_have_the_same_ids(
    disk: Page, tmp_path: Path, make_model: Callable[..., RunnableModel]
) -> None:
    model = make_model("unigram")
    engine = EnginePage(disk, tmp_path, describe_model(model))
    words = sorted({word for line in folders.TEXT for word in line.split()})
    chosen = random.Random(1)
    texts = [" ".join(chosen.choices(words, k=chosen.randint(2, 9))) for _ in range(500)]
    for text in texts:
        own = model.translate(text, capture=False)
        found = disk.evaluate("(text) => window.running.translate(text).ids", text)
        assert tuple(found) == own.target_ids, text
    assert len({engine.translate(text)["text"] for text in texts[:9]}) > 1


@pytest.mark.sweep
def test_what_the_engine_does_not_know_is_said(tmp_path: Path, make_model: Callable[..., RunnableModel]) -> None:
    with pytest.raises(PackageError, match="the engine does not have its activation, tanh"):
        describe_model(make_model("unigram", activation_function="tanh"))
    other = load_user_model(f"hf:{folders.t5(tmp_path / 't5')}")
    assert isinstance(other, RunnableModel)
    with pytest.raises(PackageError, match="only those of Marian"):
        describe_model(other)


@pytest.mark.sweep
def test_a_live_file_of_a_folder_translates(
    disk: Page, tmp_path: Path, make_model: Callable[..., RunnableModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    from attenscope.viz.export.__main__ import export_browser_models

    model = make_model("unigram")
    out = tmp_path / "live.html"
    assert export_browser_models(["--model", f"hf:{model.folder}", str(out)]) == 0
    disk.goto(out.as_uri())
    disk.get_by_role("textbox").first.fill(folders.SENTENCE)
    disk.keyboard.press("Enter")
    found = model.translate(folders.SENTENCE).text
    expect(disk.get_by_text(re.compile(re.escape(found[:20]))).first).to_be_visible(timeout=30_000)
