"""Pictures as they are saved: what stands on the page stands in the file, where it stands there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.steps import LOADING, click, open_file, open_menu, open_page, saved

SENTENCE = "sentence=He+turned+the+offer+down."
SPACE = "{http://www.w3.org/2000/svg}"
LONG_RULE = "(causal+and+padding+and+not+window+2)+or+(window+3+and+causal+and+padding)"


class Picture:
    """A saved SVG."""

    def __init__(self, page: Page, folder: Path) -> None:
        self.root = ElementTree.parse(saved(page, "Save as SVG", folder)).getroot()

    def each(self, tag: str) -> Iterator[ElementTree.Element]:
        return self.root.iter(f"{SPACE}{tag}")

    @property
    def texts(self) -> list[str]:
        return ["".join(one.itertext()) for one in self.each("text")]

    def turned(self) -> list[str]:
        """The texts that stand at 45 degrees."""
        groups = [one for one in self.each("g") if "matrix(0.707107, -0.707107" in one.get("transform", "")]
        return ["".join(one.itertext()) for one in groups]

    def lines_of(self, words: str) -> list[ElementTree.Element]:
        """The texts in a row that make up `words`."""
        every = list(self.each("text"))
        for first in range(len(every)):
            for last in range(first + 1, min(first + 6, len(every)) + 1):
                if " ".join(self.texts[first:last]) == words:
                    return every[first:last]
        raise AssertionError(f"{words!r} is not among {self.texts}")


def panel(page: Page, name: str) -> Locator:
    drawn = page.locator(f'.plot[data-panel="{name}"]')
    return page.locator(".st-key-mask-pictures section").filter(has=drawn)


def test_a_stop_of_the_training_with_its_names_turned(page: Page, tmp_path: Path) -> None:
    open_page(page, f"/training?model=preset-annotated&{SENTENCE}&kind=decoder&at=released")
    heads = page.locator(".snapshots .tile")
    expect(heads.first).to_be_visible(timeout=LOADING)
    columns = page.locator(".snapshots .columns span")
    expect(columns.first).to_have_text("<s>")
    picture = Picture(page, tmp_path)
    assert picture.turned() == columns.all_inner_texts()
    assert {"Decoder self-attention · layer 1, head 1", "</s>", "L1", "h4"} <= set(picture.texts)
    assert {"random", "released"}.isdisjoint(picture.texts), "a mark of the slider"
    assert any(one.startswith("released") for one in picture.texts)
    assert len(list(picture.each("image"))) == heads.count() + 1
    click(open_menu(page, "share").get_by_role("radio", name="dark"))
    png = saved(page, "Save as PNG", tmp_path).read_bytes()
    assert int.from_bytes(png[16:20], "big") == 2 * (1280 + 24)


@pytest.mark.slow
def test_masks_with_long_notes_and_nothing_to_click(page: Page, disk: Page, tmp_path: Path) -> None:
    open_page(page, f"/masks?from=build&rule={LONG_RULE}")
    hint = ". Click a cell to turn it over"
    note = panel(page, "given").locator("p").first
    expect(note).to_contain_text(hint, timeout=LOADING)
    picture = Picture(page, tmp_path)
    for name in ("meant", "given", "effect", "depends"):
        lines = picture.lines_of(panel(page, name).locator("p").first.inner_text().removesuffix(hint))
        assert all(float(line.get("textLength", "inf")) <= 310 for line in lines)
        assert len({line.get("x") for line in lines}) == 1
        assert len({line.get("y") for line in lines}) == len(lines)
        assert name != "meant" or len(lines) > 1
    open_file(disk, saved(page, "Interactive page", tmp_path))
    expect(disk.get_by_text("the mask, as True = may attend")).to_be_visible()
    expect(disk.get_by_text("Click a cell")).to_have_count(0)


def test_a_view_of_words_offers_no_picture(page: Page, tmp_path: Path) -> None:
    open_page(page, f"/masks?part=try+on+the+model&tried=tests&{SENTENCE}")
    expect(page.locator(".st-key-share button").first).to_be_visible(timeout=LOADING)
    menu = open_menu(page, "share")
    expect(menu.get_by_role("button", name="Interactive page")).to_be_visible()
    expect(menu.get_by_role("radio", name="light")).to_be_visible()
    for name in ("Save as PNG", "Save as SVG"):
        expect(menu.get_by_role("button", name=name)).to_have_count(0)
    assert saved(page, "Numbers", tmp_path).stat().st_size > 100


def test_a_table_with_its_scale_its_line_and_its_cell(page: Page, tmp_path: Path) -> None:
    open_page(page, f"/positions?plot=table&{SENTENCE}")
    expect(page.locator(".matrix .bar canvas")).to_be_visible(timeout=LOADING)
    expect(page.locator(".matrix .bar span")).to_have_text(["−1.00", "1.00"])
    picture = Picture(page, tmp_path)
    assert {"−1.00", "1.00", "dimension →"} <= set(picture.texts)
    assert len(list(picture.each("image"))) == 2
    assert [one.get("stroke-width") for one in picture.each("line") if one.get("stroke-dasharray")] == ["2"]
    assert "4" in {one.get("stroke-width") for one in picture.each("rect")}  # The ring around the chosen cell.


def test_a_fault_with_its_name_right_above_its_picture(page: Page, tmp_path: Path) -> None:
    open_page(page, "/masks?part=gallery&fault=future-visible")
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=LOADING)
    picture = Picture(page, tmp_path)
    assert "The causal mask was forgotten" in picture.texts
    tops = [float(one.get("y", "0")) for one in picture.root if one.tag == f"{SPACE}svg"]
    assert tops == sorted(tops)
    assert tops[1] - tops[0] < 40


def test_notes_of_curves_stand_on_their_background(page: Page, tmp_path: Path) -> None:
    open_page(page, "/positions?plot=waves")
    expect(page.locator(".curves .note").first).to_be_visible(timeout=LOADING)
    notes = [one for one in Picture(page, tmp_path).each("text") if "note" in one.get("class", "")]
    assert notes
    for one in notes:
        assert "paint-order:stroke" in one.get("style", "")
        assert "stroke-width:4px" in one.get("style", "")


def test_the_weights_of_a_head_step_by_step(page: Page, tmp_path: Path) -> None:
    open_page(page, f"/?layer=1&{SENTENCE}&kind=decoder&view=pipeline&step=7")
    bars, masked = page.locator(".bar:not(.masked) .fill"), page.locator(".bar.masked")
    expect(bars.first).to_be_visible(timeout=LOADING)
    picture = Picture(page, tmp_path)
    assert len(list(picture.each("path"))) == masked.count() > 0
    assert len([one for one in picture.each("rect") if one.get("rx") == "2"]) == bars.count() > 0
    assert "Back" not in picture.texts


@pytest.mark.slow
def test_a_drawn_token_with_its_wave_and_its_outlines(page: Page, tmp_path: Path) -> None:
    open_page(page, f"/decode?{SENTENCE}&method=sample&temperature=2.0&step=3")
    expect(page.locator(".legend .wave")).to_be_visible(timeout=LOADING)
    expect(page.get_by_text("outlined: as it was drawn from")).to_be_visible()
    picture = Picture(page, tmp_path)
    assert any("c" in one.get("d", "") and one.get("fill") == "none" for one in picture.each("path"))
    outlined = [one for one in picture.each("rect") if one.get("fill") == "none"]
    assert len(outlined) == page.locator(".candidate .drawn:visible").count() > 0
    assert any(one.get("stroke-dasharray") for one in picture.each("path"))
