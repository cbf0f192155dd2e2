"""Every page and every main view, by its address."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from .steps import LOADING, open_page

SENTENCE = "sentence=He+turned+the+offer+down."
MASKS = "/masks?part"
VIEWS = {
    "explore: heatmap": ("/", ".st-key-heatmap .plot"),
    "explore: links": ("/?view=links", ".st-key-links svg"),
    "explore: text": ("/?view=text", ".st-key-text .texts"),
    "explore: pipeline": ("/?view=pipeline", ".st-key-pipeline [aria-current]"),
    "explore: joint": ("/?view=joint", ".st-key-joint .hm image"),
    "explore: flow": ("/?view=flow", ".st-key-flow-map .hm image"),
    "explore: layers": ("/?view=layers", ".st-key-lens .hm image"),
    "explore: compare": ("/?view=compare", ".st-key-compare .hm image"),
    "decode: greedy": (f"/decode?{SENTENCE}", ".decode-player canvas"),
    "decode: sample": (f"/decode?{SENTENCE}&method=sample", ".decode-player .drawn"),
    "decode: beam": (f"/decode?{SENTENCE}&method=beam", ".st-key-tree .point"),
    "decode: given": (f"/decode?{SENTENCE}&method=given&given=Er+ging.", ".decode-player canvas"),
    "positions: table": ("/positions?plot=table", ".st-key-picture .plot"),
    "positions: waves": ("/positions?plot=waves", ".st-key-picture .curves"),
    "positions: similarity": ("/positions?plot=similarity", ".st-key-profile .curve"),
    "positions: rotation": ("/positions?plot=rotation", ".st-key-circles .plot"),
    "positions: precision": ("/positions?plot=precision", ".st-key-picture .plot"),
    "positions: sentence": (f"/positions?plot=sentence&{SENTENCE}", ".st-key-picture .js-plotly-plot"),
    "positions: experiments": (f"/positions?plot=experiments&{SENTENCE}", ".st-key-picture .hm image"),
    "positions: heads": (f"/positions?plot=heads&{SENTENCE}", ".st-key-ranking .point"),
    "training: snapshots": (f"/training?{SENTENCE}", ".st-key-snapshots .snapshots"),
    "training: curves": ("/training?training=curves", ".st-key-picture .js-line"),
    "training: architecture": ("/training?training=architecture", ".table tbody"),
    "training: parameters": ("/training?training=parameters", ".table tbody"),
    "training: card": ("/training?training=card", ".st-key-card table"),
    "training: comparison": ("/training?training=comparison", ".st-key-views"),
    "masks: paste": ("/masks", "textarea"),
    "masks: build": ("/masks?from=build", '.plot[data-panel="effect"]'),
    "masks: upload": ("/masks?from=upload", "[data-testid=stFileUploader]"),
    "masks: gallery": (f"{MASKS}=gallery", ".st-key-fault-list"),
    "masks: fault": (f"{MASKS}=gallery&fault=observer", ".st-key-fault-pair"),
    "masks: trial": (f"{MASKS}=try+on+the+model&{SENTENCE}", ".st-key-tried-pair .hm image"),
    "masks: one token": (f"{MASKS}=try+on+the+model&tried=one+token&{SENTENCE}", ".st-key-poked-bars .point"),
    "masks: tests": (f"{MASKS}=try+on+the+model&tried=tests&{SENTENCE}", ".checks tbody"),
    "masks: convert": (f"{MASKS}=convert", "[data-testid=stCode]"),
    "talk": ("/talk", "[data-testid=stMain] textarea"),
}
"""The address of each view, and what is there once it is drawn."""


def open_view(page: Page, name: str) -> None:
    """Open a view and wait until it is drawn."""
    address, drawn = VIEWS[name]
    open_page(page, address)
    expect(page.locator(drawn).first).to_be_visible(timeout=LOADING)
