"""What README says of Python runs as it stands there; tests/model/capture/test_recipes.py runs its recipes."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_blocks_on_translation_and_attribution_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    run = [block for block in blocks if "attenscope.translate import" in block or "make_word_target" in block]
    assert len(run) == 2
    for block in run:
        exec(compile(block, str(README), "exec"), names)
    assert getattr(names["target"], "word", names["target"])
