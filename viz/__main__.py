"""``python -m viz``: the app served with its first model loaded and warm, so that its first visitor does not wait."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from streamlit.web import cli

from .streamlit_internals import allow_caches_outside_of_runs

APP = Path(__file__).parents[1] / "app.py"


def warm() -> None:
    """Load the model that the page opens with and translate what it opens with; visitors share both."""
    from model.checkpoint.load import CheckpointError  # only here: torch takes seconds, in which the server can begin

    from .ui import cache
    from .ui.controls import examples

    for name in cache.checkpoints()[:1]:
        try:
            first, *_ = examples(cache.live(name).card)
        except CheckpointError:
            return  # The page says what is wrong with it.
        if first:
            cache.translation(name, first)


def main() -> None:
    """``streamlit run app.py`` with what follows on the command line, warming up beside it."""
    allow_caches_outside_of_runs()
    threading.Thread(target=warm, name="warm", daemon=True).start()
    sys.argv = ["streamlit", "run", str(APP), *sys.argv[1:]]
    cli.main(prog_name="streamlit")


if __name__ == "__main__":
    main()
