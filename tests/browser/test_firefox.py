"""The engine and the live file in Firefox, which is another engine of JavaScript, WebAssembly and Unicode."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import cast

import pytest
from playwright.sync_api import Page

from attenscope.checkpoint.load import Checkpoint, list_checkpoints, load_checkpoint
from attenscope.network.config import PRESETS
from attenscope.translate import Translator
from attenscope.viz.export.browser_model_file import build_live_model_html
from tests.browser.engine_page import EnginePage
from tests.browser.firefox import NAMES, FirefoxPage, firefox
from tests.browser.test_engine import (
    HOSTILE,
    SENTENCES,
    TOY,
    check_numbers,
    check_tokenizer,
    random_texts,
    toy_checkpoint,
)

pytestmark = pytest.mark.slow
OPENED = """async () => {
  const until = Date.now() + 30000;
  while (!document.body.dataset.drawn && Date.now() < until) await new Promise((done) => setTimeout(done, 50));
  return document.querySelectorAll(".heatmap canvas, .part").length;
}"""
TRANSLATE = """async (sentence) => {
  const { text, tokens } = await window.attenscope.translate(sentence);
  return [text, tokens];
}"""


@pytest.fixture(scope="module")
def fox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FirefoxPage]:
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no Firefox found: install it (apt install firefox-esr)")
    with firefox(program, tmp_path_factory.mktemp("firefox")) as page:
        yield page


def engine_in(fox: FirefoxPage, folder: Path, checkpoint: Checkpoint) -> EnginePage:
    return EnginePage(cast("Page", fox), folder, checkpoint)


def test_every_number_is_that_of_torch(fox: FirefoxPage, tmp_path: Path) -> None:
    for name in PRESETS:
        checkpoint = toy_checkpoint(preset=name)
        engine, translator = engine_in(fox, tmp_path, checkpoint), Translator(checkpoint)
        check_numbers(translator.translate(TOY), engine.translate(TOY))
        found = engine.translate(TOY, beam=3)["tree"]["best"]
        assert [tuple(one["ids"]) for one in found] == [one.token_ids for one in translator.search(TOY, 3).best]


@pytest.mark.skipif("everyday-zh-en" not in list_checkpoints(), reason="the checkpoint is not here")
def test_a_released_model_reads_and_writes_as_in_python(fox: FirefoxPage, tmp_path: Path) -> None:
    checkpoint = load_checkpoint("everyday-zh-en")
    engine, translator = engine_in(fox, tmp_path, checkpoint), Translator(checkpoint)
    check_tokenizer(engine, translator.tokenizer, [*SENTENCES.values(), *HOSTILE, *random_texts(500, 5)])
    for text in (SENTENCES["zh"], "我不知道。", "你想喝茶还是咖啡？"):
        check_numbers(translator.translate(text), engine.translate(text))


def test_the_live_file_opens_from_a_disk(fox: FirefoxPage, tmp_path: Path) -> None:
    translator = Translator(toy_checkpoint())
    file = tmp_path / "live.html"
    file.write_text(build_live_model_html([translator.checkpoint], date(2026, 11, 22)), encoding="utf-8")
    fox.goto(file.as_uri())
    assert fox.evaluate(OPENED) > 2
    expected = translator.translate(TOY)
    assert fox.evaluate(TRANSLATE, TOY) == [expected.text, list(expected.target_tokens)]
