"""The route that translates what a visitor types before they ask for it: the picture of the sentence, without a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

if TYPE_CHECKING:
    from attenscope.runnable_model import Translation

PREVIEW_PATH = "translation-preview"
"""The path of the route below that of the app, where src/sentence/preview.js asks."""
LONGEST_TEXT = 400
"""Characters of a text that is translated before it is asked for."""
PATIENCE = 2.0
"""Seconds that a preview waits for its turn: later it would be of a text that has been typed on."""


async def respond_with_preview(request: Request) -> Response:
    """Answer with what the sentence component reads, or with nothing (204) where there is no preview.

    The query names the `model`, the `language` of the texts and the `sentence`.
    """
    asked = [request.query_params.get(name, "") for name in ("model", "language", "sentence")]
    found = await run_in_threadpool(build_preview, *asked)
    headers = {"Cache-Control": "no-store"}
    if found is None:
        return Response(status_code=204, headers=headers)
    return Response(found, media_type="application/octet-stream", headers=headers)


def build_preview(model: str, language: str, sentence: str) -> bytes | None:
    """Return the picture of a sentence and its translation at the word that tells most, as the page will choose it.

    None for an unknown model or language, a text that is empty or too long or cannot be translated, a translation
    without words, and where the turn to compute does not come soon: previews let everything else go first.
    """
    from attenscope.checkpoint.load import CheckpointError  # Late, as these import torch.
    from attenscope.language import COMPLETE_LANGUAGES, use_language
    from attenscope.runnable_model import InputError
    from attenscope.viz.fair_queue import COMPUTE_QUEUE, BusyError
    from attenscope.viz.ui import cache

    if language not in COMPLETE_LANGUAGES or not sentence.strip() or len(sentence) > LONGEST_TEXT:
        return None
    if model not in cache.list_models():
        return None
    with use_language(language):
        try:
            with COMPUTE_QUEUE.turn(COMPUTE_QUEUE.ticket(is_long=True), PATIENCE):
                found = cache.compute_translation(model, sentence)
        except (BusyError, CheckpointError, InputError):
            return None
    return encode_translation_picture(found, language)


def encode_translation_picture(found: Translation, language: str) -> bytes | None:
    """Return the picture of a translation at the word that pages pick, in a language; None where they pick none."""
    import attenscope.viz.visitor_language  # noqa: F401  (has pictures speak the language of the block)
    from attenscope.analysis.telling_word import pick_telling_word, weigh_words
    from attenscope.language import use_language
    from attenscope.viz.explore.screen import locate_word_of_reading
    from attenscope.viz.web.text_components import SentencePicture, SentenceSide, encode_sentence_picture

    cross = found.trace.cross
    words = weigh_words(cross) if cross is not None else None
    telling = pick_telling_word(cross) if cross is not None else None
    if words is None or telling is None:
        return None
    pinned: dict[SentenceSide, int | None] = {"source": None, "target": None}
    pinned |= locate_word_of_reading(words, telling)
    with use_language(language):
        return encode_sentence_picture(SentencePicture(words, telling.layer, telling.head, found.steps, pinned))
