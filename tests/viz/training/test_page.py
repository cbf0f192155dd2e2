"""The page Training on a toy model: its views, its figures, what it sends, and what it does with broken files."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import save_file
from streamlit.testing.v1 import AppTest

from attenscope.checkpoint import card, load
from attenscope.checkpoint.card import find_differing_fields, read_preset_model
from attenscope.checkpoint.load import save_checkpoint, unique_weights
from attenscope.checkpoint.measurements import CARD_FILE, HISTORY_FILE, HistoryRow, Score, save_score, write_history
from attenscope.checkpoint.recipe import RECIPE_FILE, Recipe
from attenscope.checkpoint.snapshots import copy_snapshots_to_checkpoint, list_snapshot_steps
from attenscope.network.config import PRESETS, make_preset_config
from attenscope.network.transformer import Transformer
from attenscope.translate import Translator
from attenscope.viz.export.share_menu import OFFERED_VIEW
from attenscope.viz.figures.curves import plot_training_curves
from attenscope.viz.figures.figure_style import DARK, LIGHT, Look
from attenscope.viz.page_setup import SHARE_MENU
from attenscope.viz.training import architecture_and_card_views, curves, texts
from attenscope.viz.training import cache as training_cache
from attenscope.viz.training.architecture_and_card_views import sanitise_card
from attenscope.viz.ui import cache
from attenscope.viz.ui.addresses.training import TRAINING_VIEWS
from attenscope.viz.ui.style import table_html
from attenscope.viz.web.component_scripts import FULL_BYTE
from attenscope.viz.web.players import SnapshotSequence, SnapshotText, encode_snapshot_player
from tests import toy
from tests.viz.fakes import attention
from tests.viz.page_texts import as_read
from tests.viz.web.test_packing import unpack

PAGE = Path(__file__).resolve().parents[3] / "viz" / "pages" / "training.py"
SENTENCE = "the old dog sees a red house today."
HISTORY_ROWS = (
    HistoryRow(1, 0, 6.0, 1e-4, 900, 2),
    HistoryRow(10, 0, 3.0, 1e-3, 900, 20, 12.5),
    HistoryRow(100, 1, 1.0, 0.0, 900, 200, 31.25),
)
SCORE = Score("toy test", 20, 1, 44.4, "nrefs:1", 55.5, "nc:6")


@pytest.fixture
def checkpoints(tmp_path: Path, toy_checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one model that has snapshots of steps 10 and 50, and a history."""
    place = tmp_path / "toy-en-de"
    shutil.copytree(toy_checkpoint, place)
    write_history(HISTORY_ROWS, place / HISTORY_FILE)
    (tmp_path / "run").mkdir()
    for step in (10, 50):
        save_file(unique_weights(toy.random_model(seed=step)), tmp_path / "run" / f"snapshot-{step:07d}.safetensors")
    copy_snapshots_to_checkpoint(tmp_path / "run", place)
    monkeypatch.setattr(load, "CHECKPOINTS_FOLDER", tmp_path)
    monkeypatch.setattr(cache, "list_checkpoint_names", lambda: load.list_checkpoints(tmp_path))
    for cached in (
        cache._load_model_on_device,
        cache.compute_translation,
        training_cache.load_snapshots,
        training_cache.compute_snapshot_runs,
        training_cache.list_snapshot_steps,
        training_cache.load_training_history,
        training_cache.load_bleu_scores,
        training_cache.load_model_card,
        training_cache.load_comparable_checkpoints,
    ):
        cached.clear()
    return tmp_path


def opened(view: str, **address: str) -> AppTest:
    app = AppTest.from_file(str(PAGE), default_timeout=150)
    app.query_params.update({"sentence": SENTENCE, "training": view, **address})
    app.run()
    assert not app.exception
    return app


def said(app: AppTest) -> str:
    return " ".join(as_read(one.value for one in (*app.caption, *app.info, *app.error)))


def sent(app: AppTest) -> tuple[dict, bytes]:
    found = [one.proto for one in app.get("bidi_component")]
    return unpack(next(proto.bytes for proto in found if proto.component_name.endswith("snapshots")))


EXPLAINED = {
    "snapshots": f"the same translation, “{toy.translation(SENTENCE)}”",
    "curves": "100 steps, 2 passes over the data, 0.1 hours.",
    "architecture": "Filled in where a preset differs from toy-en-de;",
    "parameters": "generator.weight are the same numbers as source_embedding.table.weight.",
    "card": "toy-en-de has no card yet.",
    "comparison": "No checkpoint of a preset is here yet.",
}
"""What each view says of the model and the history of `checkpoints`."""


@pytest.mark.parametrize("view", TRAINING_VIEWS)
def test_every_view_is_shown(checkpoints: Path, view: str) -> None:
    app = opened(view)
    assert not app.error
    assert EXPLAINED[view] in said(app)


def test_the_slider_goes_from_random_to_released(checkpoints: Path) -> None:
    app = opened("snapshots", at="10", kind="decoder")
    header, body = sent(app)
    assert [one["tick"] for one in header["moments"]] == ["random", "10", "50", "released"]
    assert [one["quality"] for one in header["moments"]] == [
        "dev BLEU not measured yet",
        "dev BLEU 12.5",
        "dev BLEU 12.5 at step 10",
        "dev BLEU 31.2 at step 100",
    ]
    assert header["moments"][-1]["text"] == toy.translation(SENTENCE)
    assert header["moments"][-1]["belief"] > 0.9 > header["moments"][0]["belief"]
    assert header["start"] == 1
    assert header["kind"] == "Decoder self-attention"
    assert len(body) == 4 * header["layers"] * header["heads"] * header["queries"] * header["keys"]


def test_without_snapshots_the_page_says_so_and_shows_the_two_ends(checkpoints: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "run")
    copy_snapshots_to_checkpoint(tmp_path / "run", checkpoints / "toy-en-de")
    app = opened("snapshots")
    assert [one["tick"] for one in sent(app)[0]["moments"]] == ["random", "released"]
    assert "No snapshots of" in said(app)


def test_a_model_that_began_with_trained_weights_has_nothing_to_scrub(checkpoints: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "run")
    place = checkpoints / "toy-en-de"
    copy_snapshots_to_checkpoint(tmp_path / "run", place)
    Recipe("toy-en-de", "en", "de", begin_from="first.json").save(place / RECIPE_FILE)
    app = opened("snapshots")
    assert "there are the released ones alone" in said(app)
    assert not app.error


def test_a_damaged_snapshot_gets_a_sentence(checkpoints: Path) -> None:
    (checkpoints / "toy-en-de" / "snapshots" / "step-0000010.safetensors.xz").write_bytes(b"broken")
    app = opened("snapshots")
    assert "step-0000010.safetensors.xz is damaged" in said(app)


def test_a_broken_history_gets_a_sentence(checkpoints: Path) -> None:
    (checkpoints / "toy-en-de" / HISTORY_FILE).write_text("nothing")
    for view in ("snapshots", "curves"):
        assert "is not a training history" in said(opened(view))


def test_a_view_that_cannot_be_drawn_is_not_handed_out_either(checkpoints: Path) -> None:
    app = opened("snapshots")
    assert OFFERED_VIEW in app.session_state
    app.session_state[SHARE_MENU] = True
    (checkpoints / "toy-en-de" / HISTORY_FILE).unlink()
    training_cache.load_training_history.clear()
    app.button(key="view curves").click().run()
    assert "there is nothing to draw" in said(app)
    assert OFFERED_VIEW not in app.session_state


@pytest.mark.parametrize(("key", "nonsense"), [("at", "-1"), ("at", "x"), ("training", "all"), ("layer", "99")])
def test_nonsense_in_the_address_falls_back(checkpoints: Path, key: str, nonsense: str) -> None:
    header, _ = sent(opened(**{"view": "snapshots"} | {"view" if key == "training" else key: nonsense}))
    plain, _ = sent(opened(view="snapshots"))
    place = (0, 0) if key in ("layer", "at") else (plain["layer"], plain["head"])  # What names a view is an old link.
    assert (header["start"], header["layer"], header["head"]) == (3, *place)


def test_a_sentence_that_is_none_gets_a_sentence(checkpoints: Path) -> None:
    assert "nothing to translate" in said(opened("snapshots", sentence=" "))
    assert not opened("curves", sentence=" ").info


def test_the_card_is_shown_as_text(checkpoints: Path) -> None:
    card = "<!-- secret -->\n# Toy\n\n![gone](https://example.org/x.png) costs $5 and $6, <script>alert(1)</script>\n"
    (checkpoints / "toy-en-de" / CARD_FILE).write_text(card)
    shown = " ".join(one.value for one in opened("card").markdown)
    assert "# Toy" in shown
    assert "gone costs \\$5 and \\$6" in shown
    assert "https" not in shown
    assert "secret" not in shown
    assert not any(one.proto.allow_html for one in opened("card").markdown if "Toy" in one.value)


def test_a_card_loses_pictures_formulas_and_directives_but_no_code() -> None:
    assert sanitise_card("a ![p](http://x) `:red[x] $y$` :red[z] $q$") == "a p `:red[x] $y$` \\:red[z] \\$q\\$"
    assert sanitise_card("9:30 and a: b") == "9:30 and a: b"


def test_the_licence_stands_beside_the_choice_where_it_forbids_something(checkpoints: Path) -> None:
    assert "CC0" not in said(opened("curves"))
    path = checkpoints / "toy-en-de" / "config.json"
    facts = json.loads(path.read_text())
    facts["card"]["licence"] = "non-commercial research and education only"
    path.write_text(json.dumps(facts))
    cache._load_model_on_device.clear()
    assert "non-commercial research and education only" in said(opened("curves"))


# What is drawn and sent.


def test_curves_draw_what_was_measured() -> None:
    figure = plot_training_curves({"a": HISTORY_ROWS, "b": HISTORY_ROWS[:2]}, LIGHT, "Two <b>", marked=(0, 10, 500))
    loss, bleu, rate = figure.data[0], figure.data[2], figure.data[4]
    assert list(loss.x) == [1, 10, 100]
    assert list(loss.y) == [6.0, 3.0, 1.0]
    assert (list(bleu.x), list(bleu.y)) == ([10, 100], [12.5, 31.25])
    assert list(rate.y) == [1e-4, 1e-3, 0.0]
    assert figure.layout.title.text == "<b>Two &lt;b&gt;</b>"
    assert [shape.x0 for shape in figure.layout.shapes] == [0, 10]
    assert [note.text for note in figure.layout.annotations] == ["b", "a"]
    logarithmic = plot_training_curves({"a": HISTORY_ROWS}, DARK, "One", log_steps=True)
    assert list(logarithmic.layout.xaxis.range) == [0, 2]
    assert not logarithmic.layout.annotations


def test_the_snapshots_are_one_byte_a_weight() -> None:
    maps = [attention("cross", ("a", "b"), ("x", "y", "z"), ("A", "B"), seed=seed) for seed in (1, 2)]
    shown = [SnapshotText("1", "step 1", "text", 0.5, ""), SnapshotText("2", "step 2", "<b>", 0.6, "")]
    scrubbed = SnapshotSequence(shown, maps, 1, (0, 2), Look(), "predicted", "run")
    header, body = unpack(encode_snapshot_player(scrubbed))
    assert (header["queries"], header["keys"], header["layer"], header["head"]) == (2, 3, 0, 2)
    assert (header["rows"], header["columns"]) == (["A", "B"], ["x", "y", "z"])
    levels = np.frombuffer(body, np.uint8).reshape(2, *maps[0].weights.shape)
    np.testing.assert_allclose(levels[1] / FULL_BYTE, maps[1].weights, atol=1 / FULL_BYTE)
    other = attention("cross", ("a",), ("x", "y", "z"))
    with pytest.raises(ValueError, match="all maps must be of one shape"):
        encode_snapshot_player(dataclasses.replace(scrubbed, maps=[maps[0], other]))


def test_a_table_holds_no_markup_of_its_cells() -> None:
    made = table_html(["<i>"], [["<script>", ("a & b", 'x" y')]], "<b>")
    assert "<script>" not in made
    assert "<i>" not in made
    assert "a &amp; b" in made
    assert 'class="x&quot; y"' in made


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_does_not_differ_from_itself(name: str) -> None:
    own = make_preset_config(name)
    rows = architecture_and_card_views.build_architecture_rows(
        own, {"same": own, "wider": make_preset_config(name, d_model=1024, qkv_bias=not own.qkv_bias)}
    )
    fields = {str(row[0]): row[1:] for row in rows}
    assert {row[1] for row in fields.values()} <= {("·", "same"), ("", "group"), ("0 choices, 0 sizes", "same")}
    assert fields["d_model"][2] == "1,024"
    assert rows[-1][-1] == ("1 choice, 1 size", "same")
    listed = {str(row[0]) for row in rows if isinstance(row[0], str)}
    assert listed == {field.name for field in dataclasses.fields(own)} - {"preset"}


def test_parameters_are_saved_with_what_they_share(toy_translator: Translator) -> None:
    table = architecture_and_card_views.tabulate_tensors(card.list_state_tensors(toy_translator.model))
    assert table[table["shared with"] == ""]["parameters"].sum() == sum(
        one.numel() for one in toy_translator.model.parameters()
    )
    assert "generator.weight" in architecture_and_card_views.describe_shared_tensors(
        card.list_state_tensors(toy_translator.model)
    )


def test_a_score_kept_for_a_snapshot_comes_before_the_history() -> None:
    kept = dataclasses.replace(SCORE, step=50)
    assert texts.describe_snapshot_bleu(50, HISTORY_ROWS, [kept]) == "BLEU 44.4 on toy test"
    assert texts.describe_snapshot_bleu(None, HISTORY_ROWS, [kept]) == "dev BLEU 31.2 at step 100"
    assert texts.describe_snapshot_bleu(None, (), ()) == "dev BLEU not measured yet"
    test, dev = (
        dataclasses.replace(kept, set=name, step=None, bleu=value) for name, value in (("other", 1.0), (kept.set, 2.0))
    )
    assert texts.describe_snapshot_bleu(None, HISTORY_ROWS, [test, kept, dev]) == "BLEU 2.0 on toy test"
    assert texts.describe_snapshot_bleu(None, HISTORY_ROWS, [test]) == "BLEU 1.0 on other"


def test_a_translation_that_was_not_ended_is_marked(checkpoints: Path) -> None:
    moments = training_cache.compute_snapshot_runs("toy-en-de", SENTENCE)
    said = curves.describe_snapshots(cache.load_translator("toy-en-de"), moments)
    ended = [one.translation.stop_reason == "eos" for one in moments]
    assert sorted(set(ended)) == [False, True]
    assert [not (one.text or "").endswith(" …") for one in said] == ended


def small(folder: Path, name: str) -> None:
    sizes = {"d_model": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 24, "max_length": 40}
    vocabulary = {"vocab_size": toy.VOCABULARY, "target_vocab_size": toy.VOCABULARY}
    model = Transformer(make_preset_config(name, **sizes, **vocabulary))
    save_checkpoint(toy.checkpoint(model), folder)
    (folder / "recipe.json").write_text(json.dumps({"name": folder.name, "model": {"preset": name, **sizes}}))
    write_history(HISTORY_ROWS, folder / HISTORY_FILE)


def test_models_trained_alike_stand_beside_each_other(checkpoints: Path) -> None:
    assert "No checkpoint of a preset" in said(opened("comparison"))
    for name in ("original", "torch_like"):
        small(checkpoints / f"preset-{name}", name)
    save_score(checkpoints / "preset-original", SCORE)
    training_cache.load_comparable_checkpoints.clear()
    found, faults = training_cache.load_comparable_checkpoints("en")
    assert [one.name for one in found] == ["preset-original", "preset-torch_like"]
    assert not faults
    fields = {"norm_order", "final_norm", "qkv_bias", "output_bias", "init", "equal_layers"}
    assert set(find_differing_fields(found)) == fields
    one = read_preset_model(checkpoints / "preset-original")
    assert one is not None
    assert one.parameters == sum(
        tensor.numel()
        for tensor in unique_weights(Translator.load(checkpoints / "preset-original", "cpu").model).values()
    )
    app = opened("comparison")
    assert "only fields in which they differ" in said(app)
    assert "Without a checkpoint here: pad_row, torch_like" not in said(app)
    assert "Without a checkpoint here: pad_row, annotated, shared_bpe, vaswani2017." in said(app)
    (checkpoints / "preset-torch_like" / "scores.json").write_text("[]")
    training_cache.load_comparable_checkpoints.clear()
    assert "preset-torch_like/scores.json is not a list of scores" in said(opened("comparison"))


def test_it_begins_with_the_default_model_which_kept_its_snapshots() -> None:
    app = AppTest.from_file(str(PAGE), default_timeout=150)
    app.query_params["training"] = "curves"
    app.run()
    assert app.selectbox(key="model").value == cache.list_models()[0]
    assert len(list_snapshot_steps(cache.list_models()[0])) == 7
    assert "Dotted: steps with a snapshot." in said(app)


def test_the_numbers_of_the_snapshots_are_those_of_the_head_that_is_shown() -> None:
    maps = [attention("cross", ("a", "b"), ("c", "d", "e"), seed=seed) for seed in (1, 2)]
    stops = [SnapshotText(name, name, "", 0.5, "") for name in ("random", "released")]
    found = curves.tabulate_snapshot_attention_weights(
        SnapshotSequence(stops, maps, 0, (1, 0), Look(LIGHT), "fed", "run")
    )
    assert list(found.columns) == ["query", "key", "weight"]
    for name, one in zip(("random", "released"), maps, strict=True):
        assert np.allclose(found[found.index == name]["weight"].to_numpy(), one.weights[1, 0].ravel())
