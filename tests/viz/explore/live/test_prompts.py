"""Explore of folders with a chat template, with task prefixes and with a head for masked words."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from attenscope.analysis.heads import find_sink
from attenscope.hugging_face.masked_words import MaskedWordModel
from attenscope.text.words import get_special_tokens
from attenscope.user_model import load_user_model
from attenscope.viz.ui import cache as ui_cache
from attenscope.viz.ui import controls
from attenscope.viz.web import text_components
from tests import folders
from tests.viz.explore.live.conftest import Start
from tests.viz.page_texts import captions

pytestmark = pytest.mark.timeout(600)  # a busy machine takes a minute to import transformers


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")
    base = tmp_path_factory.mktemp("models")
    folders.chat(base / "chat")
    folders.bert(base / "bert")
    folders.t5(base / "t5", folders.TASKS)
    return base


@pytest.mark.sweep
def test_a_chat_is_shown_as_the_model_reads_it_and_its_template_can_be_taken_away(start: Start) -> None:
    app = start("chat")
    said = " ".join(captions(app))
    assert "<|im_start|>system↵you see a dog<|im_end|>↵<|im_start|>user↵the old dog sees a tree ." in said
    assert "The text stands in the chat template of this folder" in said
    assert "whose text it is (system, user, assistant)" in said
    assert "Special tokens are hidden" in said
    app = start("chat?template=none")
    assert app.selectbox(key="model").value == "chat?template=none"
    said = " ".join(captions(app))
    assert "The chat template of this folder is not applied" in said
    assert "The model reads" not in said
    assert "whose text it is" not in said
    app = start("chat?template=poem")
    assert "no prompt template 'poem'" in app.error[0].value


@pytest.mark.sweep
@pytest.mark.parametrize("hide", ["true", "false"])
def test_what_the_first_token_holds_is_said_and_so_is_a_sink(start: Start, directory: Path, hide: str) -> None:
    """Of the text alone: its first token is no special one, and every number is that of the weights."""
    app = start("chat?template=none", first="true", words="false", hide=hide, rows="fed", layer="2", head="1")
    model = load_user_model(f"hf:{directory / 'chat'}")
    assert isinstance(model, ui_cache.RunnableModel)
    decoder = model.with_prompt_template("none").translate(folders.SENTENCE).trace.decoder
    assert decoder is not None
    special = get_special_tokens(decoder)
    rows = [row for row, one in enumerate(decoder.query_tokens) if row and (hide == "false" or one not in special)]
    weights = decoder.weights[:, :, rows].astype(np.float64)
    share = weights[..., 0].sum() / weights.sum()
    (said,) = [one for one in captions(app) if "is left out: it holds" in one]
    assert re.search(r"The first token, “\W*the\W*”", said)
    assert f"{share:.0%}" in said
    sink = find_sink(decoder, 1, 0, rows)
    assert any("is a sink" in one for one in captions(app)) == (sink is not None)


def test_the_prefix_of_a_task_is_offered_and_put_before_the_text(start: Start) -> None:
    app = start("t5")
    assert any("names task prefixes, such as “summarize:”" in one for one in captions(app))
    app = start("t5?template=translation_en_to_de")
    assert any("Before the text stands “translate English to German:”" in one for one in captions(app))


@pytest.mark.sweep
def test_the_choice_of_a_template_chooses_the_model_given_texts_so(directory: Path, start: Start) -> None:
    start("chat")

    def draw() -> None:
        import streamlit as st

        from attenscope.viz.ui import controls as ui_controls

        st.session_state.setdefault("model", "chat")
        ui_controls.draw_prompt_template_choice()

    app = AppTest.from_function(draw, default_timeout=150).run()
    app.toggle(key=controls.TEMPLATE_SWITCH).set_value(False).run()
    assert app.session_state["model"] == "chat?template=none"
    app.toggle(key=controls.TEMPLATE_SWITCH).set_value(True).run()
    assert app.session_state["model"] == "chat"
    app.session_state["model"] = "t5"
    app.run()
    app.selectbox(key=controls.PREFIX_CHOICE).set_value("translation_en_to_de").run()
    assert app.session_state["model"] == "t5?template=translation_en_to_de"


def test_a_masked_word_has_a_card_which_changes_with_the_heads(
    start: Start, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[dict] = []
    monkeypatch.setattr(text_components, "_mount_word_card", lambda **given: drawn.append(given["data"]))
    start("bert")
    assert not drawn
    start("bert", pin="source.4")
    app = start("bert", pin="source.4", changes="encoder.2.3:off")
    assert any("Of the changed model: encoder.2.3:off." in one for one in captions(app))
    start("bert", sentence="the old [MASK] sees a tree .")
    start("bert", pin="source.1")  # [CLS] is no word
    own, changed, mask = drawn
    model = load_user_model(f"hf:{directory / 'bert'}")
    assert isinstance(model, MaskedWordModel)
    found = model.predict_masked_word(folders.SENTENCE, 3)
    assert own["word"] == changed["word"] == "dog"
    assert own["fact"].startswith(text_components.format_percent(math.exp(found.log_prob)))
    assert own["fact"] != changed["fact"]
    assert not own["chooses"]
    assert own["sources"][0]["text"] == found.by_fall[0][0]
    assert len(own["heads"]) == len(changed["heads"]) == 4
    assert mask["word"] == model.predict_masked_word("the old [MASK] sees a tree .", 3).candidates[0].token
    assert "has a mask here" in mask["decided"]
