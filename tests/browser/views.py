"""Every page and every main view, by its address."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from attenscope.language import SOURCE_LANGUAGE
from tests.browser.steps import LOADING, open_page

GIVEN = ("He turned the offer down.", "He turned the book down.", "Er ging.", "The dog bit the man.")
"""The sentences of the views, and those that a page offers."""
SENTENCE = "sentence=He+turned+the+offer+down."
EXPLORE = {
    "heatmap": ".st-key-heatmap .plot",
    "links": ".st-key-links svg",
    "text": ".st-key-text .texts",
    "pipeline": ".st-key-pipeline [aria-current]",
    "joint": ".st-key-joint .hm image",
    "flow": ".st-key-flow-map .hm image",
    "layers": ".st-key-lens .hm image",
    "compare": ".st-key-compare .hm image",
}
DECODE = {
    "greedy": ".decode-player canvas",
    "sample": ".decode-player .drawn",
    "beam": ".st-key-tree .node",
    "given&given=Er+ging.": ".decode-player canvas",
}
WHY = {
    "source+words": ".st-key-left-out .texts button",
    "deletion": ".st-key-deletion .js-line",
    "heads": ".st-key-parts .point",
    "score": ".st-key-score-parts .hm image",
    "source+or+prefix": ".st-key-shares .point",
    "two+sentences&second=He+turned+the+book+down.": ".st-key-patches .hm image",
    "layers": ".st-key-lens .hm image",
}
HEADS = {
    "map": ".st-key-head-map .plot",
    "head": "ol.shaded li",
    "search": "ol.shaded li",
    "alignment": ".st-key-picture .hm image",
    "over+training": ".st-key-over-training .plot",
    f"pruning&{SENTENCE}": ".st-key-pruned",
}
POSITIONS = {
    "table": ".st-key-picture .plot",
    "waves": ".st-key-picture .curves",
    "similarity": ".st-key-profile .curve",
    "rotation": ".st-key-circles .plot",
    "precision": ".st-key-picture .plot",
    "sentence": ".st-key-picture .js-plotly-plot",
    "experiments": ".st-key-picture .hm image",
    "heads": ".st-key-ranking .point",
}
TRAINING = {
    "snapshots": ".st-key-snapshots .snapshots",
    "curves": ".st-key-picture .js-line",
    "architecture": ".table tbody",
    "parameters": ".table tbody",
    "card": ".st-key-card table",
    "comparison": ".st-key-views",
}
MASKS = {
    "from=paste": "textarea",
    "from=build": '.plot[data-panel="effect"]',
    "from=upload": "[data-testid=stFileUploader]",
    "part=gallery": ".st-key-fault-list",
    "part=gallery&fault=observer": ".st-key-fault-pair",
    "part=try+on+the+model": ".st-key-tried-pair .hm image",
    "part=try+on+the+model&tried=one+token": ".st-key-poked-bars .point",
    "part=try+on+the+model&tried=tests": ".checks tbody",
    "part=convert": "[data-testid=stCode]",
}
PAGES = {
    f"/?{SENTENCE}&view=": EXPLORE,
    f"/decode?{SENTENCE}&method=": DECODE,
    f"/why?{SENTENCE}&why=": WHY,
    "/heads?heads=": HEADS,
    f"/positions?{SENTENCE}&plot=": POSITIONS,
    f"/training?{SENTENCE}&training=": TRAINING,
    f"/masks?{SENTENCE}&": MASKS,
    "/talk": {"": "[data-testid=stMain] textarea"},
}
VIEWS = {f"{page}{view}": drawn for page, views in PAGES.items() for view, drawn in views.items()}
"""The address of each view, and what is there once it is drawn."""


def open_view(page: Page, address: str, language: str = SOURCE_LANGUAGE) -> None:
    """Open a view in a language and wait until it is drawn."""
    open_page(page, f"{address}{'&' if '?' in address else '?'}lang={language}")
    expect(page.locator(VIEWS[address]).first).to_be_visible(timeout=LOADING)
