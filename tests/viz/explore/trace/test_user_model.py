"""A model of one's own on the command line: what a factory may return, and what is said when it does not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from attenscope.attribution.any_model import NOT_COMPUTED_MESSAGE
from attenscope.runnable_model import LocalError, LocalModel
from attenscope.translate import Translator
from attenscope.user_model import load_user_model, read_option
from attenscope.viz.ui import cache as ui_cache
from attenscope.viz.why import cache as why_cache
from attenscope.viz.why import texts
from tests.viz.page_texts import captions

APP = Path(__file__).resolve().parents[4] / "app.py"
pytestmark = pytest.mark.timeout(600)  # a busy machine takes a minute to import transformers
FACTORIES = '''
import torch
from torch import nn
from tests import toy
from attenscope.attribution.any_model import NOT_COMPUTED_MESSAGE
from attenscope.translate import Translator
import transformers

class Counting:
    """A tokenizer of one letter a token."""
    def __call__(self, text): return torch.tensor([[3 + ord(sign) % 40 for sign in text] + [2]])

def marian():
    sizes = dict(vocab_size=50, d_model=16, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
        encoder_attention_heads=2, decoder_attention_heads=2, pad_token_id=0, eos_token_id=2, bos_token_id=1,
        decoder_start_token_id=0, forced_eos_token_id=2, max_position_embeddings=64)
    torch.manual_seed(0)
    model, read = transformers.MarianMTModel(transformers.MarianConfig(**sizes)).eval(), Counting()
    def run(text):
        written = model.generate(read(text), max_new_tokens=5, min_new_tokens=5, do_sample=False)[0]
        names = [f"t{one}" for one in written.tolist()]
        return {"source": [*text, "</s>"], "target": names[:-1], "predicted": names[1:]}
    return model, run

def ours(): return Translator(toy.checkpoint(toy.random_model(), "my-own"))
def failing(): raise RuntimeError("no weights here")
def number(): return 3
def wrong_tokens(): return marian()[0], lambda text: marian()[1](text)
'''


@pytest.fixture
def factories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    pytest.importorskip("transformers")
    (tmp_path / "stranger.py").write_text(FACTORIES, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(APP.parent)])
    yield "stranger"
    sys.modules.pop("stranger", None)


def test_the_option_is_read_in_both_ways() -> None:
    assert read_option(["--other", "--model", "a.b:c"]) == read_option(["--model=a.b:c"]) == "a.b:c"
    assert read_option(["--model"]) == ""
    assert read_option(["--models=x"]) is None


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "write it as package.module:factory"),
        ("stranger", "write it as package.module:factory"),
        ("nothing.there:make", r"nothing.there cannot be imported: ModuleNotFoundError"),
        ("stranger:absent", "stranger has no function absent"),
        ("stranger:failing", "the factory failed: RuntimeError: no weights here"),
        ("stranger:number", r"the factory returned int. It must return a Translator, or \(module, run\)"),
    ],
)
def test_a_factory_that_gives_no_model_is_told_what_is_wrong(factories: str, spec: str, said: str) -> None:
    with pytest.raises(LocalError, match=said):
        load_user_model(spec)


def test_a_module_and_its_run_give_traces_with_tokens(factories: str) -> None:
    found = load_user_model(f"{factories}:marian")
    assert isinstance(found, LocalModel)
    trace = found.trace("abc")
    assert set(trace.maps) == {"encoder", "decoder", "cross"}
    assert trace.cross is not None
    assert trace.cross.weights.shape == (2, 2, 5, 4)
    assert trace.cross.key_tokens == ("a", "b", "c", "</s>")
    assert trace.cross.query_tokens[1:] == trace.cross.predicted_tokens[:-1]
    assert {"q", "k", "v", "scores", "masked_scores"} == set(trace.cross.tensors)
    broken = load_user_model(f"{factories}:wrong_tokens")
    assert isinstance(broken, LocalModel)
    with pytest.raises(LocalError, match="could not read this sentence: TraceError: Nothing was captured"):
        broken.trace("abc")


@pytest.fixture
def app(factories: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    monkeypatch.setattr(ui_cache, "list_checkpoint_names", list)
    yield AppTest.from_file(str(APP), default_timeout=150)
    ui_cache._load_model_or_error.clear()
    ui_cache._load_model_from_spec.clear()
    ui_cache.compute_encoder_only_trace.clear()
    ui_cache.compute_translation.clear()
    ui_cache._load_model_on_device.clear()


@pytest.mark.sweep
def test_a_foreign_model_is_live_on_explore(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["app.py", "--model", "stranger:marian"])
    app.run()
    assert not app.exception
    assert app.selectbox(key="model").value == "stranger:marian"
    app.text_area(key="sentence").set_value("dog").run()
    assert not app.exception
    assert any("Masks: encoder no contradiction" in one for one in captions(app))
    app.segmented_control(key="view").set_value("pipeline").run()
    assert not app.exception
    app.switch_page("viz/pages/why.py").run()
    assert not app.exception
    assert not app.info
    assert any(NOT_COMPUTED_MESSAGE in one for one in captions(app))
    app.selectbox(key="own-piece").set_value(2).run()
    assert not app.exception
    app.segmented_control(key="why").set_value("deletion").run()
    assert not app.exception
    assert any(texts.describe_deletion_method(texts.DELETION_BY_EMBEDDINGS) in one for one in captions(app))
    curves = why_cache.compute_user_model_deletion_curves("stranger:marian", "dog", 2)
    every = why_cache.compute_user_model_attributions_by_method("stranger:marian", "dog", 2)
    assert any(texts.describe_top_two_pieces_deletion(curves, every["leave-one-out"]) in one for one in captions(app))
    app.switch_page("viz/pages/decode.py").run()
    assert not app.exception
    assert "look at it on Explore" in app.info[0].value.replace("\\", "")


def test_a_translator_stands_among_the_checkpoints(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["app.py", "--model=stranger:ours"])
    assert isinstance(ui_cache.load_single_command_line_model(), Translator)
    app.query_params["sentence"] = "the old dog sees a tree."
    app.run()
    assert not app.exception
    assert app.selectbox(key="model").value == "my-own"


def test_a_factory_that_fails_is_said_on_the_page(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["app.py", "--model", "stranger:failing"])
    app.run()
    assert not app.exception
    assert "no weights here" in app.error[0].value
