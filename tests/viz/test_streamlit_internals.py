"""What the pages take of Streamlit beyond its public interface, and what is said where it is gone."""

from __future__ import annotations

import pytest

from viz import streamlit_internals


def test_a_part_of_streamlit_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamlit_internals, "get_script_run_ctx", object)
    for use, part in (
        (streamlit_internals.went_through_history, "is_history_navigation"),
        (lambda: streamlit_internals.remove_query_parameters(["a"]), "remove_param"),
    ):
        with pytest.raises(streamlit_internals.InternalsError, match=rf"{part}.*written for Streamlit 1\.67"):
            use()
