"""What the shipped talk tells an audience, worked out again with the models that it shows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from attenscope.analysis.heads import compute_head_statistics, rank_heads_by_alignment
from attenscope.checkpoint.load import CHECKPOINTS_FOLDER
from attenscope.experiments.ablation import translate_with_changes
from attenscope.experiments.lens import load_training_snapshots, run_snapshots
from attenscope.interventions.changes import parse_changes
from attenscope.language import LANGUAGES, use_language
from attenscope.positions.experiments import PositionExperiment, run_experiment
from attenscope.runnable_model import Translation
from attenscope.trace import AttentionTrace
from attenscope.translate import Translator
from attenscope.viz.talk.scenes import Scene
from attenscope.viz.talk.session import load_shipped_talk
from attenscope.viz.why import cache as why_cache
from attenscope.viz.why.cache import ReadingKey, WordKey
from attenscope.viz.why.texts import RANDOM_ORDER, compute_curve_areas
from tests.model.language.test_texts import find_numbers

SCENES = {scene.title: scene for scene in load_shipped_talk()[0].scenes}
SENTENCES = (CHECKPOINTS_FOLDER / "sentences.en").read_text(encoding="utf-8").splitlines()


@cache
def model() -> Translator:
    return Translator.load("everyday-en-de")


@cache
def translated(text: str) -> Translation:
    return model().translate(text)


def traced(scene: Scene) -> AttentionTrace:
    return translated(scene.view["sentence"]).trace


def printed(scene: Scene, language: str) -> set[str]:
    """The numbers in what is said of a scene in a language, as English writes them."""
    with use_language(language):
        said = load_shipped_talk()[0].scenes[list(SCENES).index(scene.title)]
    return set(find_numbers("\n".join((said.title, said.point, said.notes)), language))


def fahrrad(scene: Scene) -> set[str]:
    cross = traced(scene).cross
    assert cross is not None
    row, column = cross.predicted_tokens.index(" Fahrrad"), cross.key_tokens.index(" bicycle")
    assert scene.view["pin"] == f"target.{row + 1}"
    assert cross.weights[2, 2, row, column] >= 0.9
    assert cross.weights[2, 2, row].argmax() == column
    assert all(token[0] == " " or not token.isalpha() for token in cross.predicted_tokens)  # no word in pieces
    verb = cross.predicted_tokens.index(" hast")
    assert cross.key_tokens[cross.weights[2, 2, verb].argmax()] == " buy"
    return {"0.9"}


def gekauft(scene: Scene) -> set[str]:
    cross = traced(scene).cross
    assert cross is not None
    row = int(scene.view["step"]) - 1
    assert (cross.predicted_tokens[row], scene.view["cross"]) == (" gekauft", "3.6")
    assert cross.key_tokens[cross.weights[2, 5, row].argmax()] == " buy"
    return set()


def thirty_two(scene: Scene) -> set[str]:
    cross = traced(scene).cross
    assert cross is not None
    assert cross.weights.shape[:2] == (4, 8)
    spread = compute_head_statistics(cross)["entropy"].mean(1)
    assert spread[0] > spread[1:].max() + 0.1  # the haze of the first layer
    best = {found.layer: found.mass for found in reversed(rank_heads_by_alignment(cross, ("predicted",)))}
    assert best[1] > 0.5 > best[0]
    fed = rank_heads_by_alignment(cross, ("fed",))[0]  # the sharp one there
    assert (fed.layer, fed.head) == (0, 1)
    assert fed.mass > 0.5
    return {"2"}


def aligning(scene: Scene) -> set[str]:
    masses = np.zeros((4, 8))
    for text in SENTENCES:
        cross = translated(text).trace.cross
        assert cross is not None
        for found in rank_heads_by_alignment(cross, ("predicted",)):
            masses[found.layer, found.head] += found.mass
    assert np.unravel_index(masses.argmax(), masses.shape) == (2, 3)
    cross = traced(scene).cross
    assert cross is not None
    row = cross.predicted_tokens.index(" mich")
    assert cross.predicted_tokens[row : row + 2] == (" mich", " angerufen")
    looked_at = [cross.key_tokens[key] for key in cross.weights[2, 3, row : row + 2].argmax(-1)]
    assert looked_at == [" me", " called"]  # "the lines cross"
    return {"3", "4"}


def one_back(scene: Scene) -> set[str]:
    encoder = traced(scene).encoder
    assert encoder is not None
    rows = encoder.weights[1, 2].diagonal(-1)
    assert encoder.weights[1, 2, 0].argmax() == 0
    shares = []
    for text in SENTENCES:
        other = translated(text).trace.encoder
        assert other is not None
        shares.append(compute_head_statistics(other)["previous"][1, 2])
        stripe = other.weights[1, 2].argmax(-1)[1:] == np.arange(len(other.key_tokens) - 1)
        assert stripe.mean() >= 0.5, text  # "the stripe stays when you type another sentence"
    assert len(SENTENCES) == 66
    return {f"{100 * value:.0f}" for value in (np.mean(shares), rows.mean(), rows.min(), rows.max())}


def without_places(scene: Scene) -> set[str]:
    before = translated(scene.view["sentence"])
    assert f"“{before.text}”" in scene.notes
    for text in (scene.view["sentence"], "The cat chased the dog."):
        after = run_experiment(model(), translated(text), PositionExperiment("remove")).after
        assert scene.notes.count(f"“{after.text}”") == 2
    return set()


def backwards(scene: Scene) -> set[str]:
    after = run_experiment(model(), translated(scene.view["sentence"]), PositionExperiment("reverse")).after
    assert f"“{after.text}”" in scene.notes
    return set()


def changed(scene: Scene) -> str:
    changes = parse_changes(scene.view["changes"])
    return translate_with_changes(model(), scene.view["sentence"], changes).text


def one_head_off(scene: Scene) -> set[str]:
    assert sum(one.layers * one.heads for one in traced(scene).maps.values()) == 96
    text = scene.view["sentence"]
    for head in range(1, 9):
        assert (
            translate_with_changes(model(), text, parse_changes(f"encoder.1.{head}:off")).text == translated(text).text
        )
    assert changed(scene) == translated(text).text
    return set()


def one_layer_off(scene: Scene) -> set[str]:
    assert scene.view["changes"].count(":off") == 8
    assert translated(scene.view["sentence"]).text.endswith("liest jeden Abend ein Buch im Garten.")
    assert f"“{changed(scene)}”" in scene.notes
    for head in range(1, 9):
        alone = translate_with_changes(model(), scene.view["sentence"], parse_changes(f"cross.1.{head}:off"))
        assert alone.text == translated(scene.view["sentence"]).text
    return set()


def pinned(scene: Scene) -> WordKey:
    """The word of a scene of Why that its address pins, one piece long."""
    return WordKey(ReadingKey("everyday-en-de", scene.view["sentence"]), int(scene.view["pin"][7:]) - 1, 1)


def left_out(scene: Scene) -> set[str]:
    found = why_cache.compute_attributions_by_method(pinned(scene))["leave-one-out"]
    assert found.target.tokens == (" Fahrrad",)
    source = len(found.target.source_tokens)
    at, prefix = found.target.source_tokens.index(" bicycle"), np.abs(found.scores[source:])
    assert found.target.prefix_tokens[prefix.argmax()] == " rote"
    largest = found.scores[at], np.delete(np.abs(found.scores[:source]), at).max(), prefix.max()
    return {f"{value:.2f}" for value in largest}


def deleted(scene: Scene) -> set[str]:
    curves = why_cache.compute_deletion_curves(pinned(scene))
    assert curves.remaining_share(curves.methods["leave-one-out"])[2] < 0.001
    worse = [
        name for name, area in compute_curve_areas(curves).items() if area > compute_curve_areas(curves)[RANDOM_ORDER]
    ]
    assert worse == ["gradient-x-input"]
    return {"0.1", f"{curves.band[1][2]:.0%}"[:-1]}


def summed(scene: Scene) -> set[str]:
    parts = why_cache.compute_logit_parts(pinned(scene))
    heads = [one for one in parts.parts_by_size if one.part.head is not None]
    cross = sum(one.score for one in heads if one.part.kind == "cross")
    return {f"{parts.logit:.1f}", f"{cross:.1f}", f"{heads[0].score:.2f}"}


def loose(scene: Scene) -> set[str]:
    scores = why_cache.load_attribution_scores("everyday-en-de")
    assert scores
    found = why_cache.compute_source_shares(ReadingKey("everyday-en-de", scene.view["sentence"], scene.view["given"]))
    assert found.mean_effect < 0
    return {f"{-found.mean_effect:.2f}", f"{scores.loose.threshold:.2f}"}


def patched(scene: Scene) -> set[str]:
    first, second, same = (ReadingKey("everyday-en-de", scene.view[name]) for name in ("sentence", "second", "control"))
    assert why_cache.compute_sentence_pair_contrast(first, second).target.tokens == (" Der",)
    found = why_cache.compute_patch_map(first, second, "encoder stream")
    control = why_cache.compute_control_patch_map(first, second, same, "encoder stream")
    assert found.columns[1:3] == (" dogs", " are")
    dog, verb = found.fraction[:, 1].min(), found.fraction[:, 2].max()
    assert f"at “is” {verb:.0%} at most" in scene.notes
    return {f"{share:.0%}"[:-1] for share in (dog, verb, np.abs(control.fraction).max())}


def greedy(scene: Scene) -> set[str]:
    found = translated(scene.view["sentence"])
    assert found.text == "Heute lassen sie ihr Haus verlassen."
    first, second = found.steps[int(scene.view["step"]) - 1].candidates[:2]
    assert (first.token, second.token) == (" lassen", " verlassen")
    return {f"{np.exp(one.log_prob):.0%}"[:-1] for one in (first, second)}


def beam(scene: Scene) -> set[str]:
    best = model().search(scene.view["sentence"], 4).best[0]
    text = model().tokenizer.decode(best.token_ids)
    assert text == "Heute verlassen sie ihr Haus."
    return {f"{best.score * len(best.token_ids):.1f}", f"{translated(scene.view['sentence']).log_prob:.1f}"}


def born(scene: Scene) -> set[str]:
    sentence = scene.view["sentence"]
    final = translated(sentence)
    moments = run_snapshots(load_training_snapshots(model().checkpoint), sentence, final.target_ids)
    assert len(moments) == 9
    texts = {moment.step: moment.translation.text for moment in moments}
    assert set(texts[0].split()) == set(texts[1].split()) == {"rained"}
    assert texts[10] == texts[50] == ""
    assert texts[200].count(",") > len(texts[200].split())
    assert f"“{texts[800]}”" in scene.notes
    assert texts[2500].split().count("roten") == 2
    assert texts[6000] == final.text
    found = {}
    for moment in moments:
        cross = moment.trace.cross
        assert cross is not None
        if moment.step == 0:
            assert compute_head_statistics(cross)["entropy"][2, 3] > 0.95  # "spread evenly"
        for head in rank_heads_by_alignment(cross, ("predicted",)):
            found[moment.step, head.layer, head.head] = head.mass
    assert found[200, 2, 3] < 0.2  # "at which step does the first diagonal appear?"
    assert found[800, 2, 3] > 0.5
    sure = {moment.step: moment.mean_token_probability for moment in moments}
    assert sure[2500] > sure[800] + 0.4
    return {"200", "800", "2,500", "6,000"}


CLAIMS: dict[str, Callable[[Scene], set[str]]] = {
    "Attention: whom does each word look at?": fahrrad,
    "Guess first: where does it look to write “gekauft”?": gekauft,
    "Thirty-two heads, thirty-two habits": thirty_two,
    "A head that aligns": aligning,
    "A head that looks one place back": one_back,
    "Take the places away: who chased whom?": without_places,
    "Count the places backwards": backwards,
    "Switch a head off": one_head_off,
    "Switch a whole layer off": one_layer_off,
    "What did it need to write “Fahrrad”?": left_out,
    "Is that true? Delete and see": deleted,
    "No head does it alone": summed,
    "A translation that has come loose": loose,
    "One position carries the number": patched,
    "Greedy: always the likeliest next token": greedy,
    "Beam search: keep four beginnings alive": beam,
    "Nobody told the heads: how they came to be": born,
}


@pytest.mark.parametrize("title", SCENES)
def test_every_number_and_quote_of_a_scene_is_what_the_model_does(title: str) -> None:
    """A scene without a claim prints no number; one with claims prints those that they compute, and no other.

    What a translation quotes is what the English text does: tests/model/language/test_texts.py
    """
    scene = SCENES[title]
    computed = CLAIMS[title](scene) if title in CLAIMS else set()
    assert {language: printed(scene, language) for language in LANGUAGES} == dict.fromkeys(LANGUAGES, computed)


def test_no_claim_is_of_a_scene_that_is_gone() -> None:
    assert set(CLAIMS) <= set(SCENES)
