"""What is left in English: sentences that nobody says, and English words in what is said in another language."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import messages
from tests.english import ENGLISH, is_english
from tests.messages import KEYWORDS, LITERAL, ROOT, SAY_CALL
from tests.scripts import list_scripts

SOURCES = sorted(path for part in ("model", "viz") for path in (ROOT / part).rglob("*.py"))
SCRIPTS = [path for path in list_scripts() if path.name != "explain.js"]
"""The scripts that speak: a change that explain.js refuses is a mistake of whoever calls it."""
COMMENT = re.compile(r"^ *(?:/\*\*|\*|//).*$| // .*$", re.MULTILINE)
SENTENCE = re.compile(r"[A-Z][a-z]*[,:]?(?: [^ ]+){2,}")
"""Three words or more, the first with a capital letter."""
NOT_SAID = {
    "model/decoding/beam.py": "a mistake of whoever calls it from Python",
    "model/evaluation/attribution.py": "Markdown of a model card, which is English",
    "model/evaluation/quality.py": "Markdown of a model card and beside it",
    "model/experiments/ablation.py": "a mistake of whoever calls it",
    "model/atlas/duckdb_queries.py": "what DuckDB begins its errors with",
    "model/hugging_face/load.py": "text that a model reads",
    "model/language.py": "a mistake of whoever calls it",
    "model/runnable_model.py": "a mistake of whoever calls it",
    "model/masks/attention_call_origin.py": "a mistake of whoever calls it",
    "model/masks/toy_attention.py": "a mistake of whoever calls it",
    "model/network/attention.py": "a mistake of whoever calls it",
    "model/network/preset_adapters.py": "a mistake of whoever calls it",
    "model/positions/analysis.py": "a mistake of whoever calls it",
    "viz/figures/__init__.py": "said where plotly is missing: to whoever uses figures without the app",
    "viz/web/players.py": "a mistake of whoever calls it",
    "viz/streamlit_internals.py": "said when the app starts with another Streamlit, to whoever installs it",
    "viz/ui/addresses/decode.py": "a mistake of whoever calls it: a page shows the plain view",
    "viz/ui/addresses/heads.py": "a mistake of whoever calls it: a page shows the plain view",
    "viz/ui/addresses/masks.py": "choices as an address has them, which the page says",
    "viz/ui/addresses/why.py": "a mistake of whoever calls it: a page shows the plain view",
    "viz/positions/experiments.py": "a sentence that a model reads",
    "viz/ui/current_sentence.py": "sentences that a model reads",
}
"""Why the sentences of a module are not said in another language."""


def literals(tree: ast.AST) -> Iterator[str]:
    """The texts of a module that are neither said nor documentation; of an f-string, with {} for its values."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in KEYWORDS:
            yield from (text for keyword in node.keywords for text in literals(keyword))
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        else:
            yield from literals(node)


def unsaid(path: Path) -> list[str]:
    return [text for text in literals(ast.parse(path.read_text(encoding="utf-8"))) if SENTENCE.match(text)]


def test_every_sentence_that_a_person_reads_is_said() -> None:
    found = {path.relative_to(ROOT).as_posix(): texts for path in SOURCES if (texts := unsaid(path))}
    assert {name: texts for name, texts in found.items() if name not in NOT_SAID} == {}
    assert found.keys() >= set(NOT_SAID)


def test_every_sentence_of_a_script_is_said() -> None:
    found = []
    for path in SCRIPTS:
        script = COMMENT.sub("", SAY_CALL.sub("", path.read_text(encoding="utf-8")))
        texts = [one[1:-1] for one in re.findall(LITERAL, script) + re.findall(r"`[^`]*`", script)]
        found += [f"{path.name}: {text}" for text in texts if SENTENCE.match(text.removeprefix("${"))]
    assert found == []


@pytest.mark.parametrize("path", sorted(name for name in NOT_SAID if name.startswith("model/")))
def test_what_is_exempt_is_no_choice_of_a_page(path: str) -> None:
    """What an exempt module leaves in English is nothing that the catalogues know."""
    known = {one.id for one in messages.read("de")}
    assert not known & set(unsaid(ROOT / path))


def test_an_english_sentence_is_found() -> None:
    assert is_english("Die Zeile of the matrix zeigt es.", "de")
    assert not is_english("Die Zeile „of the matrix“ zeigt `the mask of it`.", "de")
    assert is_english("第 1 行 shows the weights of a token。", "zh")
    assert not is_english("第 1 行显示 Integrated Gradients 的结果。", "zh")


@pytest.mark.parametrize("language", sorted(ENGLISH))
def test_no_translation_is_english_in_part(language: str) -> None:
    forms = [one.string for one in messages.read(language) if one.id]
    said = [text for one in forms for text in ([one] if isinstance(one, str) else one or ())]
    assert len(said) > 3000
    assert [text for text in said if is_english(text, language)] == []
