"""Components of words: a sentence and its translation, signed text, pieces, the word card, translations in a list."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import Route, expect

from attenscope.analysis.telling_word import weigh_words
from attenscope.experiments.ablation import WordFacts
from attenscope.experiments.lens import LogitLens
from attenscope.runnable_model import Translation
from attenscope.trace import Head
from attenscope.viz.figures.figure_style import LIGHT
from attenscope.viz.web import text_components
from tests.components.bare_page import ADDRESS, BarePage, rgb
from tests.viz.fakes import FakeTranslator

RESULT = FakeTranslator().translate("one two three")
SHARES = "(all) => all.map((one) => Number(one.style.getPropertyValue('--share')))"
PATHS = "(all) => all.map((one) => Number(one.getAttribute('stroke-width')))"


def sentence(result: Translation = RESULT, layer: int = 1, **more: object) -> text_components.SentencePicture:
    assert result.trace.cross
    words = weigh_words(result.trace.cross)
    assert words
    given = {"pinned": {"source": None, "target": None}} | more
    return text_components.SentencePicture(words, layer, 2, result.steps, **given)  # type: ignore[arg-type]


def encode_picture(picture: text_components.SentencePicture) -> bytes:
    return text_components.encode_sentence_picture(picture)


def test_a_word_shows_what_it_looked_at_and_is_pinned(bare: BarePage) -> None:
    picture = sentence()
    view = bare.mount("sentence", encode_picture(picture))
    source, target = (view.locator(f"button[data-side={side}]") for side in ("source", "target"))
    weights = picture.words.weights[1, 2]
    expect(view.locator(".says")).to_contain_text("Each curve is the word that head 2.3 looked at most.")
    strong = int((weights.max(1) >= 0.5).sum())
    expect(view.locator("path")).to_have_count(strong)
    target.nth(1).hover()
    linked = weights[1] >= 0.02
    expect(view.locator("path")).to_have_count(int(linked.sum()))
    expect(view.locator("button.met")).to_have_count(int(linked.sum()))
    expect(view.locator("button.spot")).to_have_text("TWO")
    widest = max(view.locator("path").evaluate_all(PATHS))
    assert widest == pytest.approx(1 + 7 * weights[1].max(), abs=0.04)
    assert "TWO" in view.locator(".says strong").all_inner_texts()[0]
    source.nth(2).hover()
    expect(view.locator("path")).to_have_count(int((weights[:, 2] >= 0.02).sum()))
    source.nth(2).click()
    target.nth(0).focus()
    bare.page.keyboard.press("ArrowRight")
    bare.page.keyboard.press("Enter")
    assert bare.pop_sent_values() == [["pin", {"side": "source", "index": 2}], ["pin", {"side": "target", "index": 1}]]
    expect(target.nth(0)).to_have_class("unsure")  # The model gave it 40%.


def test_the_pinned_word_stays_lit_and_leads_to_its_card(bare: BarePage) -> None:
    bare.page.evaluate("""() => document.body.insertAdjacentHTML("beforeend",
      '<div style="height: 3000px"></div><p class="st-key-wordcard">The card</p>')""")
    pinned = {"source": None, "target": 1}
    view = bare.mount("sentence", encode_picture(sentence(pinned=pinned, has_card=True, head_picked=True)))
    expect(view.locator("[aria-pressed=true]")).to_have_text("TWO")
    bare.page.emulate_media(reduced_motion="reduce")
    view.get_by_text("Its card ↓").click()
    bare.page.wait_for_function("() => scrollY > 500")
    assert bare.page.evaluate("() => 'headPicked' in document.documentElement.dataset")
    bare.page.mouse.move(1, 1)
    view.locator("button[data-side=source]").nth(0).focus()
    expect(view.get_by_text("Its card ↓")).to_be_hidden()
    bare.unmount()
    bare.page.wait_for_function("() => !('headPicked' in document.documentElement.dataset)")


def test_what_is_typed_is_translated_before_it_is_submitted(bare: BarePage) -> None:
    other = FakeTranslator().translate("four five")
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(body=encode_picture(sentence(other)), content_type="application/octet-stream")

    bare.page.route(f"{ADDRESS}translation-preview**", answer)
    bare.page.evaluate("""() => document.body.insertAdjacentHTML("afterbegin",
      '<div class="st-key-sentence"><textarea></textarea></div>')""")
    preview = {"model": "toy", "language": "en", "sentence": "one two three", "note": "Press Enter"}
    view = bare.mount("sentence", encode_picture(sentence(preview=preview)))
    box = bare.page.locator("textarea")
    box.fill("four\nfive")
    expect(view.locator("button[data-side=target]")).to_have_text(["FOUR", "FIVE"])
    expect(view.locator("small")).to_have_text("Press Enter")
    assert asked == [f"{ADDRESS}translation-preview?model=toy&language=en&sentence=four+five"]
    view.locator("button[data-side=target]").nth(1).click()
    assert bare.pop_sent_values() == [], "Python does not know that word yet"
    preview_of = preview | {"sentence": "four five"}
    bare.mount("sentence", encode_picture(sentence(other, preview=preview_of)))
    assert bare.pop_sent_values() == [["pin", {"side": "target", "index": 1}]]
    box.fill("six")
    submitted = bare.page.evaluate("""async () => {
      const waits = [];
      const event = new CustomEvent("attenscope-submit", { bubbles: true, detail: waits });
      document.querySelector("textarea").dispatchEvent(event);
      await Promise.all(waits);
      return waits.length;
    }""")
    assert submitted == 1
    assert len(asked) == 2
    box.fill("four five")
    expect(view.locator("small")).to_have_text("")
    assert bare.page.evaluate("() => 'previewed' in document.documentElement.dataset") is False


SIGNED = (
    text_components.SignedText("The sentence", "What it rests on", (" one", " two", "x"), np.array([0.5, -1.0, 0.0])),
    text_components.SignedText("The translation", "Written so far", (" EINS",), None),
    text_components.SignedText("Words", "", ("a", "b"), np.array([1.0, 1.0]), ("A", "B")),
)


def test_signed_text_is_shaded_by_sign_and_read(bare: BarePage) -> None:
    view = bare.mount("signed_text", text_components.encode_signed_text(SIGNED, LIGHT, "Attribution"))
    says, pieces = view.locator("h3 span"), view.locator("button")
    expect(says).to_have_text(["What it rests on", "Written so far", ""])
    pieces.nth(1).hover()
    expect(says.nth(0)).to_have_text("two: −1.000")
    colours = pieces.evaluate_all("(all) => all.map((one) => getComputedStyle(one).backgroundColor)")
    red, _, blue = (int(one) for one in colours[1][4:-1].split(", "))
    assert red > blue, "below zero it is orange"
    assert colours[2] == f"rgb{rgb(LIGHT.background)}"
    expect(view.locator("small")).to_have_text(["A", "B"])
    pieces.nth(0).focus()
    bare.page.keyboard.press("ArrowRight")
    bare.page.keyboard.press("End")
    expect(pieces.nth(5)).to_be_focused()
    bare.page.mouse.move(1, 1)
    expect(says.nth(0)).to_have_text("What it rests on")


def test_a_piece_of_the_translation_is_pinned_and_let_go_of(bare: BarePage) -> None:
    view = bare.mount("tokens", text_components.token_line_data(RESULT.steps, None))
    pieces = view.locator("button")
    expect(pieces).to_have_text(["ONE", "TWO", "THREE", "</s>"])
    expect(view.locator(".unsure")).to_have_text(["ONE", "</s>"])
    expect(pieces.nth(0)).to_have_attribute("title", "ONE 40%; next best: other 5.0%")
    pieces.nth(1).click()
    expect(pieces.nth(1)).to_have_attribute("aria-pressed", "true")
    assert bare.pop_sent_values() == [["pin", {"position": 1}]]
    view = bare.mount("tokens", text_components.token_line_data(RESULT.steps, 1, word=[1, 2]))
    expect(view.locator(".of-word")).to_have_text(["TWO", "THREE"])
    pieces.nth(1).click()
    expect(view.locator("[aria-pressed=true]")).to_have_count(0)
    pieces.nth(1).press("ArrowRight")
    expect(pieces.nth(2)).to_be_focused()
    bare.pop_sent_values()
    bare.mount("tokens", text_components.token_line_data(RESULT.steps, 1) | {"fixed": True})
    pieces.nth(0).click()
    assert bare.pop_sent_values() == [], "it is fixed"


LENS = LogitLens(
    places=("embedding", "layer 1", "layer 2"),
    tokens=((("a",),) * 4,) * 3,
    token_ids=np.zeros((3, 4, 1)),
    log_probs=np.zeros((3, 4, 1)),
    target_tokens=("ONE", "TWO", "THREE", "</s>"),
    ranks=np.array([[5] * 4, [2, 1, 1, 1], [1] * 4]),
    target_log_probs=np.zeros((3, 4)),
)


def card(step: int = 0, **more: object) -> dict[str, object]:
    assert RESULT.trace.cross
    facts = WordFacts(RESULT.source_tokens, RESULT.trace.cross.weights.mean((0, 1)), LENS)
    heads: list[tuple[Head, float]] = [(("cross", 1, 2), -0.75), (("encoder", 0, 0), 0.25)]
    data = text_components.word_card_data(RESULT.steps[step], facts, heads)
    return data | {"why": True, "chooses": True, "open": "Open in Decode"} | more


def test_a_word_card_says_why_and_leads_on(bare: BarePage) -> None:
    view = bare.mount("word_card", card())
    expect(view.locator(".word")).to_have_text("ONE")
    expect(view.locator(".fact")).to_have_text("40% · the most probable token")
    expect(view.locator("h4")).to_have_text(
        [
            "Instead of it",
            "It looked atall heads, by how much each passes on",
            "Heads that matterchange of log-prob. when off",
        ]
    )
    expect(view.locator(".decided")).to_contain_text("is the most probable token from layer 2 of 2 on.")
    for name in ("other, 5.0%", "Show cross 2.3: −0.75 nats without it", "Why this word?", "Open in Decode"):
        view.get_by_role("button", name=name).click()
    view.get_by_label("Close this card").click()
    told = bare.pop_sent_values()
    assert told[:2] == [["candidate", 99], ["head", ["cross", 1, 2]]]
    assert [name for name, _ in told[2:]] == ["why", "open", "close"]
    shares = view.locator(".bar").evaluate_all(
        "(all) => all.map((one) => Number(one.style.getPropertyValue('--share')))"
    )
    assert shares[0] == pytest.approx(0.05)
    assert shares[-2:] == [0.75, 0.25]


def test_a_card_waits_while_the_player_is_at_another_step(bare: BarePage) -> None:
    view = bare.mount("word_card", card(1))
    tell = """(step) => {
      document.documentElement.dataset.decodingStep = step;
      document.dispatchEvent(new Event("decodingStep"));
    }"""
    bare.page.evaluate(tell, 0)
    expect(view.locator(".card")).to_have_class("card waits")
    bare.page.evaluate(tell, 1)
    expect(view.locator(".card")).to_have_class("card")
    plain = card(1, why=False, chooses=False, open="", others=[], heads=[], masked=True, decided="")
    view = bare.mount("word_card", plain)
    expect(view.locator("h4")).to_have_text(["Words that matterchange of log-prob. when masked too"])
    expect(view.locator("button")).to_have_count(1)


def test_translations_stand_below_each_other_with_what_differs(bare: BarePage) -> None:
    rows = [
        text_components.TranslationVersion("greedy", [("der ", "same"), ("Hund", "gone")], ["−1.0"]),
        text_components.TranslationVersion("beam", [("der ", "same"), ("Kater", "new")], ["−0.5"]),
    ]
    view = bare.mount("versions", text_components.build_translation_versions_data(rows, ["log-prob."], 0))
    versions = view.locator("button.version")
    expect(versions).to_have_count(2)
    expect(versions.nth(1).locator(".new")).to_have_text("Kater")
    expect(versions.nth(0)).to_have_attribute("aria-pressed", "true")
    versions.nth(1).click()
    assert bare.pop_sent_values() == [["choice", {"number": 1}]]
    versions.nth(1).press("ArrowUp")
    expect(versions.nth(0)).to_be_focused()


def test_words_from_right_to_left_are_read_so(bare: BarePage) -> None:
    result = replace(FakeTranslator().translate("أحب القطط"))
    view = bare.mount("sentence", encode_picture(sentence(result)))
    expect(view.locator(".source")).to_have_attribute("dir", "rtl")
    first, second = (view.locator("button[data-side=source]").nth(at).bounding_box() for at in (0, 1))
    assert first
    assert second
    assert first["x"] > second["x"]
