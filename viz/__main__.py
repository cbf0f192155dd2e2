"""``python -m viz``: the app served with its first model loaded and warm, so that its first visitor does not wait."""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import time
from collections.abc import Sequence

from streamlit.errors import StreamlitAPIException

from attenscope.language import replace_commands_when_installed
from attenscope.viz.explore.translation_preview import PREVIEW_PATH, respond_with_preview
from attenscope.viz.explore.welcome_picture import WelcomePictures
from attenscope.viz.serving.server import AbsentSessions, limit_glibc_retained_memory, release_free_memory, serve_app
from attenscope.viz.streamlit_internals import allow_caches_outside_of_runs, end_absent_sessions

LOOK_INTERVAL = 3.0
"""Seconds between two looks at who has gone."""
COLLECTION_TURNS = 3
"""Looks between two garbage collections, after which free memory goes back to the system."""


def warm_up_first_model(pictures: WelcomePictures) -> None:
    """Load the model that the page opens with, translate what it opens with, and draw it; visitors share all."""
    # Imported only here: torch takes seconds, in which the server can start.
    from attenscope.checkpoint.load import CheckpointError
    from attenscope.viz.ui import cache
    from attenscope.viz.ui.current_sentence import list_example_sentences

    for name in cache.list_checkpoint_names()[:1]:
        try:
            first, *_ = list_example_sentences(cache.load_runnable_model(name).card)
        except CheckpointError:
            return  # The page says what is wrong with it.
        if first:
            found = cache.compute_translation(name, first)
            if not sys.argv[1:]:  # What a command line names is what its pages open with.
                pictures.draw(first, found)


def _warm_up_then_collect_garbage(pictures: WelcomePictures) -> None:
    """Warm up, then collect garbage for all visitors at once, which stops them all for that time.

    Streamlit would collect it after each run of each visitor (``runner.postScriptGC``). Objects that exist once the app
    is warm, libraries above all, stay out of every collection.
    """
    warm_up_first_model(pictures)
    from attenscope.viz.traces.session import measure_session_bytes  # Late, as it imports torch.

    absent = AbsentSessions()
    gc.collect()
    gc.freeze()
    for turn in itertools.count():
        time.sleep(LOOK_INTERVAL)
        if absent.has_ended_any or turn % COLLECTION_TURNS == 0:
            gc.collect()
            release_free_memory()
        end_absent_sessions(measure_session_bytes, absent.choose)


def main(arguments: Sequence[str]) -> None:
    """Serve the app, warming up beside it; the command line takes Streamlit's options, and the app's after ``--``."""
    allow_caches_outside_of_runs()
    limit_glibc_retained_memory()
    pictures = WelcomePictures()
    warm = threading.Thread(target=_warm_up_then_collect_garbage, args=(pictures,), name="warm", daemon=True)
    try:
        serve_app(arguments, {PREVIEW_PATH: respond_with_preview}, warm.start, pictures.build_markup)
    except KeyboardInterrupt:  # Control+C: the server has ended, and raises it once more
        pass
    except (ValueError, StreamlitAPIException) as error:
        sys.exit(f"{replace_commands_when_installed('python -m viz')}: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
