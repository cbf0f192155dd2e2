"""The picture of the welcome in the first paint of Explore: seen before Streamlit has begun."""

from __future__ import annotations

import base64
import html
from typing import TYPE_CHECKING

from attenscope.language import COMPLETE_LANGUAGES, use_language
from attenscope.viz.explore.translation_preview import encode_translation_picture
from attenscope.viz.streamlit_internals import serve_folder
from attenscope.viz.web.component_scripts import (
    DIST_FOLDER,
    build_fetching_statements,
    read_component_style_sheet,
    read_standalone_script,
    read_style_sheet,
)

if TYPE_CHECKING:
    from attenscope.runnable_model import Translation


class WelcomePictures:
    """What stands at the beginning of a page that opens with the welcome, in each language; nothing until it is drawn.

    It is the component of the sentence (src/sentence/), at its place, with the data that the page will give to it.
    """

    def __init__(self) -> None:
        self._sentence = ""
        self._pictures: dict[str, bytes] = {}

    def draw(self, sentence: str, translation: Translation) -> None:
        """Draw what pages will show of the welcome and its translation; nothing where they pick no word."""
        pictures = {language: encode_translation_picture(translation, language) for language in COMPLETE_LANGUAGES}
        self._sentence = sentence
        self._pictures = {language: picture for language, picture in pictures.items() if picture is not None}

    def build_markup(self, language: str) -> str:
        """Return the element for the body of the page, and the script that draws in it; "" while there is none."""
        picture = self._pictures.get(language)
        if picture is None:
            return ""
        sheets = read_component_style_sheet("sentence") + read_style_sheet("welcome")
        with use_language(language):
            statements = build_fetching_statements("sentence", serve_folder("scripts", DIST_FOLDER))
        return (
            f'<div data-welcome="{base64.b64encode(picture).decode()}" inert><template shadowrootmode="open">'
            f'<style>{sheets}</style><p dir="auto">{html.escape(self._sentence)}</p><div></div></template></div>'
            f'<script type="module">{statements}{read_standalone_script("welcome")}(scripts.sentence);</script>'
        )
