"""The catalogues brought up to date with the sources: ``python -m tests.messages``.

Messages are what `say`, `say_many` and `to_say` are given as literals, in Python and in JavaScript, and the choices of
the address, which stand there in English.
"""

from __future__ import annotations

import ast
import io
import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from attenscope.language import CATALOGUE_DOMAIN, LANGUAGES, LOCALE_FOLDER, SOURCE_LANGUAGE
from attenscope.viz.ui.address import ChoiceParameter
from attenscope.viz.ui.addresses.page_registry import PAGES
from tests.scripts import list_scripts

ROOT = Path(__file__).parent.parent
KEYWORDS = {"say": None, "to_say": None, "say_many": (1, 2)}
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
SAY_CALL = re.compile(rf"\bsay\(\s*{LITERAL}|\bsayMany\(\s*{LITERAL},\s*{LITERAL}")
"""A message of a script; Babel's reader overlooks those in a template literal inside of another."""
Said = str | tuple[str, str]
"""A message, or one with its plural."""
BEGUN = datetime(2026, 11, 23, tzinfo=UTC)
"""The date in a catalogue's head, which stays: what has changed is told by the history."""
TRANSLATED = tuple(language for language in LANGUAGES if language != SOURCE_LANGUAGE)


def messages() -> Catalog:
    """Every message of the sources, in the order of the files, without a translation."""
    found = Catalog(domain=CATALOGUE_DOMAIN)
    for part in ("model", "viz"):
        rows = [row for path in (ROOT / part).rglob("*.py") for row in _of_file(path)]
        rows += _of_scripts() if part == "viz" else []
        for file, _, message in sorted(rows, key=lambda row: row[:2]):
            found.add(message, locations=[(file, 0)])
    for file, _, message in _of_file(ROOT / "app.py"):
        found.add(message, locations=[(file, 0)])
    for page in PAGES.values():
        for option in _choices(page.parameters.values()):
            found.add(option, locations=[(f"viz/ui/addresses/{page.name}.py", 0)])
    return found


def in_scripts() -> list[Said]:
    """What scripts say, as far as it stands in them as literals."""
    return [message for _, _, message in _of_scripts()]


def _of_scripts() -> list[tuple[str, int, Said]]:
    found: list[tuple[str, int, Said]] = []
    for path in list_scripts():
        text = path.read_text(encoding="utf-8")
        for call in SAY_CALL.finditer(text):
            one, *many = (json.loads(literal) for literal in re.findall(LITERAL, call[0]))
            line = text.count("\n", 0, call.start()) + 1
            found.append((path.relative_to(ROOT).as_posix(), line, (one, many[0]) if many else one))
    return found


def _of_file(path: Path) -> list[tuple[str, int, Said]]:
    name = path.relative_to(ROOT).as_posix()
    return [(name, line, message) for line, message in in_python(path.read_text(encoding="utf-8"))]


def in_python(source: str) -> Iterator[tuple[int, Said]]:
    """Yield line and message of all that Python code says: also inside of f-strings, where Babel looks for nothing."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        literals = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        if name in KEYWORDS and literals:
            one, many = literals[0], literals[1] if KEYWORDS[name] else ""
            yield node.lineno, (one, many) if many else one


def _choices(parameters: Iterable[object]) -> list[str]:
    """What a person reads of the choices, as far as it is words."""
    read = (one.write(option) for one in parameters if isinstance(one, ChoiceParameter) for option in one.options)
    return [text for text in read if any(map(str.isalpha, text))]


def path(language: str) -> Path:
    """The catalogue of a language, as people edit it."""
    return LOCALE_FOLDER / language / "LC_MESSAGES" / f"{CATALOGUE_DOMAIN}.po"


def read(language: str) -> Catalog:
    """The catalogue of a language; an empty one where there is none yet."""
    if not path(language).exists():
        comment = f"# The interface in {language}; brought up to date by `python -m tests.messages`."
        return Catalog(
            language, CATALOGUE_DOMAIN, comment, "Attenscope", revision_date=BEGUN, creation_date=BEGUN, fuzzy=False
        )
    with path(language).open("rb") as file:
        return read_po(file, locale=language, domain=CATALOGUE_DOMAIN)


def compiled(catalog: Catalog) -> bytes:
    """A catalogue as gettext reads it."""
    made = io.BytesIO()
    write_mo(made, catalog)
    return made.getvalue()


def update(language: str) -> int:
    """Bring a language's catalogue up to date; what is no longer said goes. Returns how many have no translation."""
    catalog = read(language)
    catalog.update(messages(), no_fuzzy_matching=True, update_creation_date=False)
    catalog.obsolete.clear()
    path(language).parent.mkdir(parents=True, exist_ok=True)
    with path(language).open("wb") as file:
        write_po(file, catalog, width=120, omit_header=False, include_lineno=False, sort_by_file=False)
    path(language).with_suffix(".mo").write_bytes(compiled(read(language)))
    return sum(not is_translated(one) for one in catalog if one.id)


def is_translated(message: Message) -> bool:
    """Return whether every form of a message has a translation."""
    forms = message.string if isinstance(message.string, list | tuple) else [message.string]
    return bool(forms) and all(forms)


def main() -> None:
    for language in TRANSLATED:
        print(f"{path(language).relative_to(ROOT)}: {update(language)} of {len(read(language))} without a translation")


if __name__ == "__main__":
    main()
