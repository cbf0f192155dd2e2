"""A Hugging Face folder on every page: what it can do runs, and what it cannot is one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from attenscope.atlas.build import Corpus, build_atlas
from attenscope.hugging_face.folder import NO_STREAMS_LACKS
from attenscope.positions.experiments import POSITION_MOVES
from attenscope.runnable_model import RunnableModel
from attenscope.user_model import load_user_model
from attenscope.viz.talk.checks import check_talk
from attenscope.viz.talk.scenes import Scene, Talk
from attenscope.viz.ui import cache as ui_cache
from attenscope.viz.ui.addresses.heads import HEADS_VIEWS as VIEWS_OF_HEADS
from attenscope.viz.ui.addresses.why import WHY_VIEWS as VIEWS_OF_WHY
from tests import folders
from tests.model.atlas.test_decoders import LINES, make_planted_folder
from tests.viz.explore.live.conftest import Start
from tests.viz.page_texts import as_read, captions, offered_kinds

pytestmark = pytest.mark.timeout(600)  # a busy machine takes a minute to import transformers
VIEWS = ("links", "text", "pipeline", "joint", "flow", "layers")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")
    base = tmp_path_factory.mktemp("models")
    for name in ("marian", "t5", "gpt2", "llama", "bert"):
        folders.FOLDERS[name](base / name)
    (base / "not-a-model").mkdir()
    (base / "broken").mkdir()
    (base / "broken" / "config.json").write_text("{}", encoding="utf-8")
    return base


def page(app: AppTest, name: str) -> AppTest:
    app.switch_page(f"viz/pages/{name}.py").run()
    assert not app.exception
    return app


def choose_why_view(app: AppTest, view: str) -> None:
    """Choose it beside the chosen one, or in the menu of the others."""
    folded = [one for one in app.button if one.key == f"view {view}"]
    (folded[0].click() if folded else app.segmented_control(key="why").set_value(view)).run()


def said(app: AppTest) -> list[str]:
    return [one.value.replace("\\", "") for one in app.info]


@pytest.mark.sweep
@pytest.mark.parametrize("model", ["marian", "gpt2"])
def test_every_view_is_drawn(model: str, start: Start) -> None:
    app = start(model, pin="target.14", order="effect")
    for view in VIEWS:
        app.session_state["view chosen"] = view
        app.run()
        assert not app.exception, view
        assert bool(app.info) == (model == "gpt2" and view == "joint"), view  # which joins three attentions


@pytest.mark.sweep
def test_two_sides_are_read_changed_and_decoded(start: Start) -> None:
    app = start("marian", pin="target.2", view="layers")
    assert not app.info
    assert not app.error
    assert offered_kinds(app) == ["encoder", "cross", "decoder"]
    app = start("marian", changes="cross.1.2:off,encoder.1.1:uniform")
    assert any("without the changes and" in one for one in captions(app))
    app = start("marian", forced="true", given="der alte Hund .")
    assert any("Log-probability" in one for one in captions(app))
    for strategy in ("greedy", "sample", "beam", "given"):
        app = page(start("marian", method=strategy, given="der alte Hund ."), "decode")
        assert not app.info, strategy


@pytest.mark.sweep
def test_pages_that_need_our_own_model_say_so_in_one_sentence(start: Start) -> None:
    for model in ("marian", "gpt2"):
        (sentence,) = said(page(start(model), "training"))
        assert "training" in sentence
        assert "a model of this project can" in sentence


@pytest.mark.sweep
def test_a_decoder_alone_is_a_prompt_and_its_continuation(start: Start) -> None:
    app = start("gpt2", pin="target.14")
    assert not app.info
    assert any("The first 12 rows and columns are the prompt" in one for one in captions(app))
    app = start("gpt2", changes="decoder.2.3:off", order="effect")
    assert any("without the changes and" in one for one in captions(app))
    for strategy in ("greedy", "beam", "given"):
        app = page(start("gpt2", method=strategy, given="the river", pin="target.14"), "decode")
        assert not app.info, strategy
        assert any("The first line is the prompt" in one for one in captions(app))


def test_a_decoder_is_compared_with_another(start: Start) -> None:
    beside = {"view": "compare", "with": "model"}
    app = start("gpt2", **beside, **{"with-model": "llama"})
    assert not app.info
    chosen = app.selectbox(key="with-model")
    assert chosen.value == "llama"
    assert set(chosen.options) == {"marian", "t5", "llama", "bert", "broken"}
    chosen.set_value("marian").run()
    assert any("marian translates, and gpt2 continues a prompt." in one for one in captions(app))


def test_an_encoder_is_on_explore_and_others_say_where(start: Start) -> None:
    app = start("bert")
    assert any("Masks: encoder no contradiction" in one for one in captions(app))
    assert "bert only reads" in said(page(app, "decode"))[0]


def test_a_model_after_an_encoder_opens_on_the_kind_that_was_chosen(start: Start) -> None:
    """An encoder shows the only kind that it has, which nobody chose."""
    app = start("bert", layer="", kind="")
    assert "kind" not in app.query_params
    app.selectbox(key="model").set_value("marian").run()
    assert not app.exception
    assert "kind" not in app.query_params
    assert "pin" in app.query_params  # of the telling word, which its cross-attention has
    app = start("bert", kind="decoder")
    app.selectbox(key="model").set_value("marian").run()
    assert app.query_params["kind"] == "decoder"


def test_a_folder_that_cannot_be_run_is_said_and_another_can_be_chosen(start: Start) -> None:
    app = start("broken")
    assert "names no model_type" in app.error[0].value.replace("\\", "")
    assert {"marian", "gpt2", "bert", "broken"} < set(app.selectbox(key="model").options)
    app.selectbox(key="model").set_value("gpt2").run()
    assert not app.exception
    assert not app.error


def test_a_directory_that_is_not_there_leaves_our_own_models(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["app.py", "--models", "/nowhere"])
    ui_cache._find_command_line_model_folders.clear()
    app = start("everyday-en-de")
    assert "There is no folder /nowhere" in app.error[0].value.replace("\\", "")
    assert not app.info


def test_a_talk_shows_a_folder(start: Start) -> None:
    start("gpt2")
    scene = Scene("A prompt", "explore", view={"model": "gpt2", "layer": "3", "head": "4"})
    checked = check_talk(Talk("Ours and theirs", scenes=(scene,)), ui_cache.load_model_configs())
    assert checked.shown == (scene,)
    assert not checked.mistakes
    nobody = Scene("Nobody", "explore", view={"model": "nobody"})
    assert (
        "There is no model 'nobody'"
        in check_talk(Talk("x", scenes=(nobody,)), ui_cache.load_model_configs()).mistakes[0].text
    )


@pytest.mark.slow
@pytest.mark.parametrize("model", ["marian", "gpt2"])
def test_a_mask_is_tried_on_a_folder(model: str, start: Start) -> None:
    kind, written = {"marian": ("encoder", "translation"), "gpt2": ("decoder", "continuation")}[model]
    app = page(start(model, kind=kind), "masks")
    app.segmented_control(key="part").set_value("try on the model").run()
    app.selectbox(key="tried_mask").set_value("window").run()
    assert not app.info
    assert any(one.startswith(f"The {written} ") for one in captions(app))
    (pair,) = [one for one in captions(app) if one.startswith("Both while")]
    assert f"the right {written} is fed" in pair
    assert "zeros are put there" in pair
    assert ("Padding" in [one.label for one in app.number_input]) == (model == "marian")
    for view, said_of_it in (("one token", "outputs move"), ("tests", f"Run on the {kind}")):
        app.segmented_control(key="tried").set_value(view).run()
        assert not app.exception
        assert any(said_of_it in one for one in captions(app))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["marian", "t5"])
def test_why_of_a_folder_is_that_of_our_own(model: str, start: Start) -> None:
    """Every view, of a word and of a word rather than another, of a given translation, by a changed model."""
    other = {"attribution": "attention-x-gradient"}  # which unfolds the methods
    app = page(start(model, pin="target.3", **other), "why")
    assert not app.info
    assert app.selectbox(key="attribution").value == "attention-x-gradient"
    for view in VIEWS_OF_WHY:
        choose_why_view(app, view)
        assert not app.exception, view
        if view == "score":
            (sentence,) = said(app)
            assert "are not computed for a model from a folder" in sentence
        elif view == "two sentences":
            assert not any("a patch puts each" in one for one in said(app))  # Nobody has typed two that do not fit.
        else:
            assert not app.info, view
        if view == "heads":
            assert any("Each head is switched off alone" in one for one in captions(app))
    other |= {"forced": "true", "given": "der alte Hund .", "changes": "cross.1.2:off", "against": "a"}
    app = page(start(model, pin="target.2", why="source words", **other), "why")
    assert not app.info
    assert any("Of the changed model: cross.1.2:off." in one for one in captions(app))
    assert any("− logit “" in one for one in captions(app))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gpt2", "llama"])
def test_why_of_a_decoder_alone(model: str, start: Start) -> None:
    """Prompt and continuation as source and prefix, in every view; two views say why they are not for it."""
    app = page(start(model, pin="target.15", second="the old dog sees a tree ?"), "why")  # a row behind the prompt
    assert not app.info
    for view in VIEWS_OF_WHY:
        choose_why_view(app, view)
        assert not app.exception, view
        if view in ("score", "source or prefix"):
            (sentence,) = said(app)
            assert ("model from a folder" if view == "score" else "one stream") in sentence
        elif view == "two sentences":
            assert app.selectbox(key="patched").options == ["decoder stream", "decoder heads"]
            assert any("The translations part" in one for one in captions(app))
        else:
            assert not app.info, view
        if view == "layers":
            assert not any("DecoderLens" in one.value for one in app.subheader)
    other = {"forced": "true", "given": "the river", "changes": "decoder.1.2:off", "against": "a"}
    app = page(start(model, pin="target.13", why="source words", **other), "why")
    assert not app.info
    assert any("Of the changed model: decoder.1.2:off." in one for one in captions(app))


@pytest.mark.slow
def test_the_card_of_a_decoder_alone(start: Start) -> None:
    app = start("gpt2", pin="target.14")
    assert not app.info
    facts = ui_cache.compute_word_facts("gpt2", folders.SENTENCE, read_written_ids("gpt2"))
    assert len(facts.source_tokens) > len(read_written_ids("gpt2"))


def read_written_ids(model: str) -> tuple[int, ...]:
    return ui_cache.compute_translation(model, folders.SENTENCE).target_ids


@pytest.mark.slow
def test_a_folder_whose_layers_hand_on_more_than_a_stream_has_no_lens(start: Start) -> None:
    start("marian")
    ui_cache.load_runnable_model("marian").lacks = {**ui_cache.load_runnable_model("marian").lacks, **NO_STREAMS_LACKS}
    for app in (start("marian", view="layers"), page(start("marian", why="layers"), "why")):
        assert "hand on more than one stream" in " ".join(said(app))


@pytest.mark.slow
def test_two_sentences_through_a_folder(start: Start) -> None:
    app = page(start("t5", why="two sentences", second="the old tree sees a tree ."), "why")
    assert not app.exception
    assert any("The translations part" in one for one in captions(app))
    for patched in ("decoder stream", "encoder heads", "decoder heads", "cross heads"):
        app.selectbox(key="patched").set_value(patched).run()
        assert not app.exception, patched
        assert any("One patch brings back most" in one for one in captions(app))


@pytest.mark.slow
def test_heads_of_a_folder_are_those_of_its_atlas(start: Start, directory: Path) -> None:
    beside = directory / "marian" / "atlas"
    app = page(start("marian"), "heads")
    (sentence,) = said(app)
    assert "There is no atlas in" in sentence
    assert f"--model hf:{directory / 'marian'} --source FILE --output {beside}" in sentence
    text = directory / "text"
    text.write_text("\n".join(folders.TEXT[:4]) + "\n", encoding="utf-8")
    model = load_user_model(f"hf:{directory / 'marian'}")
    assert isinstance(model, RunnableModel)
    build_atlas(model, Corpus.read(text, None, 100), beside)
    app = page(start("marian", heads="map", across="entropy", up="cost"), "heads")
    assert any("Measured on 4 sentences" in one for one in captions(app))
    for view in VIEWS_OF_HEADS:
        app = page(start("marian", heads=view), "heads")
        kept = view in ("alignment", "over training", "pruning")
        assert [one for one in said(app) if "have an atlas alone" in one] == (said(app) if kept else []), view
        assert bool(said(app)) == kept, view
    for space in ("encoder outputs", "token embeddings"):
        app = page(start("marian", heads="projection", plane=space), "heads")
        assert not said(app), space
    (sentence,) = said(page(start("gpt2"), "heads"))
    assert "There is no atlas in" in sentence


@pytest.fixture
def planted(directory: Path) -> Path:
    """A decoder with an induction head and a head that looks one back, and its atlas."""
    folder = directory / "planted"
    if not folder.exists():
        make_planted_folder(folder)
        model = load_user_model(f"hf:{folder}")
        assert isinstance(model, RunnableModel)
        (directory / "lines").write_text("\n".join(LINES) + "\n", encoding="utf-8")
        build_atlas(model, Corpus.read(directory / "lines", None, 100), folder / "atlas")
    return folder


@pytest.mark.sweep
def test_heads_of_a_decoder_alone_are_those_of_its_atlas(planted: Path, start: Start) -> None:
    app = page(start("planted"), "heads")
    (lead,) = [one for one in captions(app) if "Nobody told" in one]
    assert "Over 7 texts and 50 sequences of random tokens, 2 of 4 look" in lead
    assert any("also on 50 sequences of 25 random tokens, which stand 4 times in a row" in one for one in captions(app))
    names = {one.label.replace("\\", "") for one in app.button if one.key and one.key.startswith("habit-")}
    assert names == {
        "**Induction head**",
        "**Previous-token head**",
    }
    assert not [one for one in app.button if one.key in ("view alignment", "view pruning", "view over training")]
    app.button(key="habit-decoder-1-0").click().run()
    assert not app.exception
    assert not [one for one in app.segmented_control if one.key == "kind"]  # it has one attention
    titles = as_read([one.value for one in app.markdown])
    assert any("induction: 100% of rows of random tokens repeated" in one for one in titles)
    assert not any("cross-attention" in one for one in captions(app))
    assert not any("are not known" in one for one in captions(app))  # English, and tagged
    for view in ("map", "search", "projection"):
        app = page(start("planted", heads=view), "heads")
        assert not said(app), view
    assert app.selectbox(key="plane").options == ["queries and keys", "token embeddings"]
    app.selectbox(key="plane").set_value("token embeddings").run()
    assert not app.exception
    (sentence,) = said(page(start("planted", heads="alignment"), "heads"))
    assert "have an atlas alone" in sentence


@pytest.mark.slow
def test_positions_of_a_folder_are_read_and_moved(start: Start) -> None:
    for model, written in (("marian", "translation"), ("gpt2", "continuation")):
        app = page(start(model), "positions")
        assert not app.info
        assert app.segmented_control(key="plot").options == ["experiments", "sentence"]
        app.segmented_control(key="plot").set_value("sentence").run()
        assert any("the first layer reads the third." in one for one in captions(app))
        app.segmented_control(key="plot").set_value("experiments").run()
        for move in POSITION_MOVES:
            app.selectbox(key="move").set_value(move).run()
            assert not app.exception, move
            assert any(f"Fed its old {written}, the model gave" in one for one in captions(app)) or (
                model == "gpt2" and "its table ends at position 95" in said(app)[0]
            )


def test_positions_that_attention_itself_knows_are_drawn(start: Start) -> None:
    for model, says in (("llama", "Rotary positions: pair i of the 8"), ("t5", "each of 32 ranges of distance")):
        app = page(start(model), "positions")
        assert not app.info, model
        assert any(says in one and "Measured and computed differ by" in one for one in captions(app)), model
