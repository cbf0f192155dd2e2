"""The file of a talk: TOML, a table a scene, read with every mistake named by its line.

title = "How a Transformer attends"
model = "everyday-en-de"                # of every scene that names no other

[[scene]]
title = "Whom does each word look at?"
notes = "What the speaker says."
point = "Follow the dark cells."        # what the audience is to look at
page = "explore"
hide = ["translation"]                  # covered until the next key
omit = ["heads"]                        # not shown at all
guess = ["She", "key"]                  # 2 to 9 parts of the picture, guessed among before the next key
live = true                             # the audience's sentences are translated
trace = "mine.safetensors"              # instead: a saved trace beside this file; arrays = "mask.npz" for Masks

[scene.view]                            # the page's address, as it stands after the question mark
sentence = "She lost her key."
kind = "cross"
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tomli_w

from model.atomic_write import whole_characters
from model.language.say import listed, say, to_say

from ..ui.addresses.pages import TITLES
from . import guess
from .scenes import LONGEST, MOST_SCENES, PARTS, Mistake, Scene, Talk
from .toml import Block, TalkError, blocks

TEXTS = ("title", "notes", "point", "page", "trace", "arrays")
"""The keys of a scene that are texts."""
LONGEST_FILE = 512 * 1024
"""Of a talk, in bytes or characters; a hundred scenes with notes are far smaller."""
VALUE = 2000
"""Characters of one value of a view."""
UNKNOWN_PART = {
    "hide": to_say("There is nothing called {part!r} to hide; use {known}."),
    "omit": to_say("There is nothing called {part!r} to omit; use {known}."),
}


def read(source: str) -> tuple[Talk, tuple[Mistake, ...]]:
    """The talk in a file's text, and what is wrong with it. A part that cannot be read is left out."""
    if len(source) > LONGEST_FILE:
        too_long = say(
            "A talk has at most {most:,} characters; this text has {count:,}.", most=LONGEST_FILE, count=len(source)
        )
        return Talk(say("A talk"), ()), (Mistake(1, too_long),)
    head, *found = blocks(source)
    mistakes: list[Mistake] = []
    top = _table(head, mistakes) or {}
    _unknown(top, {"title", "model"}, head, mistakes)
    talk = _texts(top, head, mistakes, "title", "model")
    scenes: list[Scene] = []
    for block in found[:MOST_SCENES]:
        scene = _scene(block, mistakes)
        if scene:
            scenes.append(scene)
    if len(found) > MOST_SCENES:
        too_many = say("A talk has at most {most} scenes; cut it in two.", most=MOST_SCENES)
        mistakes.append(Mistake(found[MOST_SCENES].start, too_many))
    if not found:
        mistakes.append(Mistake(1, say("There is no scene. Begin each with a line that says [[scene]].")))
    return Talk(talk.get("title") or say("A talk"), tuple(scenes), talk.get("model", "")), tuple(mistakes)


def scene_count(source: str) -> int:
    """Return how many scenes a file's text has, those that cannot be read among them."""
    return len(blocks(source)) - 1


def write(talk: Talk) -> str:
    """The file of a talk: what :func:`read` reads, in the order a person would write it."""
    head = {"title": talk.title} | ({"model": talk.model} if talk.model else {})
    return "\n".join([_toml(head), *map(_written, talk.scenes)])


def write_view(scene: Scene) -> str:
    """The page and the address of a scene, as they stand in a file below ``[[scene]]``."""
    return _toml({"page": scene.page, "scene": {"view": dict(scene.view)}})


def _written(scene: Scene) -> str:
    """A scene as a block of its own: tomli_w would write short ones as one list, in which no line is a scene's."""
    texts = {"title": scene.title, "page": scene.page}
    parts = {"hide": [*scene.hide], "omit": [*scene.omit], "guess": [*scene.guess], "live": scene.live}
    files = {"trace": scene.trace, "arrays": scene.arrays}
    more = {"point": scene.point, "notes": scene.notes, **parts, **files}
    own = _toml(texts | {name: value for name, value in more.items() if value})
    view = f"\n[scene.view]\n{_toml(scene.view)}" if scene.view else ""
    return f"[[scene]]\n{own}{view}"


def _toml(table: Mapping[str, Any]) -> str:
    return whole_characters(tomli_w.dumps(table, multiline_strings=True))


def _scene(block: Block, mistakes: list[Mistake]) -> Scene | None:
    table = _table(block, mistakes)
    if table is None:
        return None
    _unknown(table, {*TEXTS, "hide", "omit", "guess", "live", "view"}, block, mistakes)
    texts = _texts(table, block, mistakes, *TEXTS)
    if not texts.get("page"):
        mistakes.append(Mistake(block.start, say('The scene names no page; add for example: page = "explore"')))
        return None
    hide, omit = (_parts(table, name, block, mistakes) for name in ("hide", "omit"))
    title = texts.get("title") or say(TITLES.get(texts["page"], texts["page"].capitalize()))
    view = _view(table.get("view", {}), block, mistakes)
    said = texts.get("notes", ""), texts.get("point", "")
    live, files = _switch(table, "live", block, mistakes), (texts.get("trace", ""), texts.get("arrays", ""))
    choices = _choices(table, block, mistakes)
    return Scene(title, texts["page"], view, *said, hide, omit, live, *files, choices, block.lines)


def _table(block: Block, mistakes: list[Mistake]) -> dict[str, Any] | None:
    """What the block says; None where it is not TOML, which is a mistake."""
    try:
        return block.table()
    except TalkError as error:
        mistakes.append(Mistake(error.line, str(error)))
        return None


def _unknown(table: Mapping[str, Any], known: set[str], block: Block, mistakes: list[Mistake]) -> None:
    for name in table.keys() - known:
        names = listed(sorted(known))
        what = say("There is no key {key!r} here and it is passed over; use {names}.", key=name[:60], names=names)
        mistakes.append(Mistake(block.line(name), what))


def _texts(table: Mapping[str, Any], block: Block, mistakes: list[Mistake], *names: str) -> dict[str, str]:
    found = {}
    for name in names:
        value, longest = table.get(name, ""), LONGEST.get(name, 60)
        if not isinstance(value, str):
            what = say('{name} is to be a text in quotation marks: {name} = "..."', name=name)
            mistakes.append(Mistake(block.line(name), what))
        elif len(value) > longest:
            what = say("{name} is cut to {longest} characters; shorten it.", name=name, longest=longest)
            mistakes.append(Mistake(block.line(name), what))
            found[name] = value[:longest]
        else:
            found[name] = value.strip()
    return found


def _parts(table: Mapping[str, Any], name: str, block: Block, mistakes: list[Mistake]) -> tuple[str, ...]:
    value = table.get(name, [])
    given = [value] if isinstance(value, str) else value if isinstance(value, list) else [repr(value)]
    for part in given:
        if part not in PARTS:
            what = say(UNKNOWN_PART[name], part=part, known=listed(PARTS))
            mistakes.append(Mistake(block.line(name), what))
    return tuple(part for part in PARTS if part in given)


def _choices(table: Mapping[str, Any], block: Block, mistakes: list[Mistake]) -> tuple[str, ...]:
    """What the audience chooses among; nothing where it is no list of so many texts."""
    value = table.get("guess", [])
    texts = [str(one).strip() for one in value] if isinstance(value, list) else []
    choices = tuple(dict.fromkeys(one for one in texts if 0 < len(one) <= guess.LONGEST))
    if "guess" not in table or (len(choices) == len(texts) and guess.FEWEST <= len(choices) <= guess.MOST):
        return choices
    what = say(
        "guess is to be a list of {fewest} to {most} different texts of at most {longest} characters, so the scene "
        "asks nothing.",
        fewest=guess.FEWEST,
        most=guess.MOST,
        longest=guess.LONGEST,
    )
    mistakes.append(Mistake(block.line("guess"), what))
    return ()


def _switch(table: Mapping[str, Any], name: str, block: Block, mistakes: list[Mistake]) -> bool:
    value = table.get(name, False)
    if not isinstance(value, bool):
        what = say("{name} is to be true or false, without quotation marks.", name=name)
        mistakes.append(Mistake(block.line(name), what))
    return value is True


def _view(value: Any, block: Block, mistakes: list[Mistake]) -> dict[str, str]:
    if not isinstance(value, dict):
        mistakes.append(Mistake(block.line("view"), say("view is to be a table: a line that says [scene.view].")))
        return {}
    view = {}
    for name, one in value.items():
        plain = str(one).lower() if isinstance(one, bool) else str(one) if isinstance(one, (str, int, float)) else None
        if plain is None or len(plain) > VALUE:
            what = say(
                "{name} is to be a text or a number of at most {longest} characters; it is passed over.",
                name=name,
                longest=VALUE,
            )
            mistakes.append(Mistake(block.line(f"view.{name}"), what))
        else:
            view[name] = plain
    return view
