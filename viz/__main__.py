"""``python -m viz``: the app served with its first model loaded and warm, so that its first visitor does not wait."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Sequence

from streamlit.errors import StreamlitAPIException

from .serving.application import serve
from .serving.memory import give_back, keep_little
from .streamlit_internals import allow_caches_outside_of_runs

GARBAGE = 10.0
"""Seconds between two collections of garbage, which is given back then."""


def warm() -> None:
    """Load the model that the page opens with and translate what it opens with; visitors share both."""
    from model.checkpoint.load import CheckpointError  # only here: torch takes seconds, in which the server can begin

    from .ui import cache
    from .ui.sentences import examples

    for name in cache.checkpoints()[:1]:
        try:
            first, *_ = examples(cache.live(name).card)
        except CheckpointError:
            return  # The page says what is wrong with it.
        if first:
            cache.translation(name, first)


def _begin() -> None:
    """Warm up; then collect garbage for all visitors together, which stops them all.

    Streamlit would collect it after each run of each visitor (``runner.postScriptGC``). What is there once the app is
    warm, libraries above all, stays out of every collection.
    """
    warm()
    gc.collect()
    gc.freeze()
    while True:
        time.sleep(GARBAGE)
        gc.collect()
        give_back()


def main(arguments: Sequence[str]) -> None:
    """Serve the app, warming up beside it; the command line takes Streamlit's options, and the app's after ``--``."""
    allow_caches_outside_of_runs()
    keep_little()
    threading.Thread(target=_begin, name="warm", daemon=True).start()
    try:
        serve(arguments)
    except KeyboardInterrupt:  # Control+C: the server has ended, and raises it once more
        pass
    except (ValueError, StreamlitAPIException) as error:
        sys.exit(f"python -m viz: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
