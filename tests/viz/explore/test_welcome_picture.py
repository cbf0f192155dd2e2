"""What a page that opens with the welcome begins with: the picture that it will show, in the reader's language."""

from __future__ import annotations

import base64
import dataclasses
import re
import sys
from types import SimpleNamespace

import pytest

from attenscope.translate import Translator
from attenscope.viz.__main__ import warm_up_first_model
from attenscope.viz.explore.translation_preview import encode_translation_picture
from attenscope.viz.explore.welcome_picture import WelcomePictures
from attenscope.viz.ui import cache

HOSTILE = "<b>A</b> </template><script>alert(1)</script> & a dog"


def test_the_beginning_holds_the_picture_that_the_page_will_show(toy_translator: Translator) -> None:
    found, pictures = toy_translator.translate("a man is riding a horse ."), WelcomePictures()
    assert pictures.build_markup("en") == ""
    pictures.draw(HOSTILE, found)
    markup = {language: pictures.build_markup(language) for language in ("en", "de", "zh")}
    assert pictures.build_markup("xx") == ""
    for language, text in markup.items():
        packed = re.findall(r'<div data-welcome="([\w+/=]+)"', text)
        assert [base64.b64decode(one) for one in packed] == [encode_translation_picture(found, language)]
        assert text.count("<script") == text.count("</script>") == text.count("</template>") == 1
        assert "&lt;b&gt;A&lt;/b&gt; &lt;/template&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp; a dog" in text
    assert len(set(markup.values())) == 3


@pytest.mark.parametrize("options", [[], ["--open", "run.npz"], ["--model=hf:folder"]])
def test_no_page_begins_with_the_welcome_where_the_command_line_names_something_else(
    toy_translator: Translator, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    text, pictures = "a man is riding a horse .", WelcomePictures()
    checkpoint = SimpleNamespace(card={"examples": f"{text} | a dog"})
    monkeypatch.setattr(sys, "argv", ["app.py", *options])
    monkeypatch.setattr(cache, "list_checkpoint_names", lambda: ["toy"])
    monkeypatch.setattr(cache, "load_runnable_model", lambda _name: checkpoint)
    monkeypatch.setattr(cache, "compute_translation", lambda _name, asked: toy_translator.translate(asked))
    warm_up_first_model(pictures)
    assert (f'<p dir="auto">{text}</p>' in pictures.build_markup("en")) == (not options)


def test_a_translation_without_a_telling_word_has_no_beginning(toy_translator: Translator) -> None:
    found, pictures = toy_translator.translate("a man is riding a horse ."), WelcomePictures()
    pictures.draw("a man", dataclasses.replace(found, captured=dataclasses.replace(found.trace, cross=None)))
    assert pictures.build_markup("en") == ""
