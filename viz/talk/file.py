"""Read and write the TOML file of a talk; every mistake is named by its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import tomli_w

from attenscope.atomic_write import replace_lone_surrogates
from attenscope.language import join_items, say, to_say
from attenscope.viz.talk.scenes import (
    FEWEST_CHOICES,
    LONGEST_CHOICE,
    LONGEST_MINUTES,
    LONGEST_TEXTS,
    MOST_CHOICES,
    MOST_SCENES,
    SCENE_PARTS,
    Mistake,
    Scene,
    Talk,
)
from attenscope.viz.ui.addresses.page_registry import PAGE_TITLES

# The file of a talk: TOML, one table for each scene.
#
#     title = "How a Transformer attends"
#     model = "everyday-en-de"                # of every scene that names no other
#
#     [[scene]]
#     title = "Whom does each word look at?"
#     notes = "What the speaker says."
#     point = "Follow the dark cells."        # what the audience is to look at
#     minutes = 2.5                           # that it is to take, for the speaker's clock
#     page = "explore"
#     hide = ["translation"]                  # covered until the next key
#     omit = ["heads"]                        # not shown at all
#     guess = ["She", "key"]                  # 2 to 9 parts of the picture, guessed among before the next key
#     live = true                             # the audience's sentences are translated
#     trace = "mine.safetensors"              # instead: a saved trace beside this file; arrays = "mask.npz" for Masks
#
#     [scene.view]                            # the page's address, as it stands after the question mark
#     sentence = "She lost her key."
#     kind = "cross"


TEXT_KEYS = ("title", "notes", "point", "page", "trace", "arrays")
"""The keys of a scene that are texts."""
LONGEST_TALK_FILE = 512 * 1024
"""Bytes or characters of the largest talk; a hundred scenes with notes are far smaller."""
LONGEST_VALUE = 2000
"""Characters of one value of a view."""
UNKNOWN_PART_TEXTS = {
    "hide": to_say("There is nothing called {part!r} to hide; use {known}."),
    "omit": to_say("There is nothing called {part!r} to omit; use {known}."),
}


def parse_talk(source: str) -> tuple[Talk, tuple[Mistake, ...]]:
    """The talk in a file's text, and what is wrong with it. A part that cannot be read is left out."""
    if len(source) > LONGEST_TALK_FILE:
        too_long = say(
            "A talk has at most {most:,} characters; this text has {count:,}.",
            most=LONGEST_TALK_FILE,
            count=len(source),
        )
        return Talk(say("A talk"), ()), (Mistake(1, too_long),)
    head, *found = split_scene_blocks(source)
    mistakes: list[Mistake] = []
    top = _parse_table(head, mistakes) or {}
    _report_unknown_keys(top, {"title", "model"}, head, mistakes)
    talk = _parse_text_fields(top, head, mistakes, "title", "model")
    scenes: list[Scene] = []
    for block in found[:MOST_SCENES]:
        scene = _parse_scene(block, mistakes)
        if scene:
            scenes.append(scene)
    if len(found) > MOST_SCENES:
        too_many = say("A talk has at most {most} scenes; cut it in two.", most=MOST_SCENES)
        mistakes.append(Mistake(found[MOST_SCENES].start, too_many))
    if not found:
        mistakes.append(Mistake(1, say("There is no scene. Begin each with a line that says [[scene]].")))
    return Talk(talk.get("title") or say("A talk"), tuple(scenes), talk.get("model", "")), tuple(mistakes)


def count_scenes(source: str) -> int:
    """Return how many scenes a file's text has, those that cannot be read among them."""
    return len(split_scene_blocks(source)) - 1


def format_talk(talk: Talk) -> str:
    """The file of a talk: what :func:`parse_talk` reads, in the order a person would write it."""
    head = {"title": talk.title} | ({"model": talk.model} if talk.model else {})
    return "\n".join([_format_toml(head), *map(_format_scene, talk.scenes)])


def format_scene_view_toml(scene: Scene) -> str:
    """The page and the address of a scene, as they stand in a file below ``[[scene]]``."""
    return _format_toml({"page": scene.page, "scene": {"view": dict(scene.view)}})


def _format_scene(scene: Scene) -> str:
    """A scene as a block of its own: tomli_w would write short ones as one list, in which no line is a scene's."""
    texts = {"title": scene.title, "page": scene.page}
    parts = {"hide": [*scene.hide], "omit": [*scene.omit], "guess": [*scene.guess], "live": scene.live}
    files = {"trace": scene.trace, "arrays": scene.arrays}
    more = {"point": scene.point, "notes": scene.notes, "minutes": scene.minutes, **parts, **files}
    own = _format_toml(texts | {name: value for name, value in more.items() if value})
    view = f"\n[scene.view]\n{_format_toml(scene.view)}" if scene.view else ""
    return f"[[scene]]\n{own}{view}"


def _format_toml(table: Mapping[str, Any]) -> str:
    return replace_lone_surrogates(tomli_w.dumps(table, multiline_strings=True))


def _parse_scene(block: TalkBlock, mistakes: list[Mistake]) -> Scene | None:
    table = _parse_table(block, mistakes)
    if table is None:
        return None
    _report_unknown_keys(table, {*TEXT_KEYS, "minutes", "hide", "omit", "guess", "live", "view"}, block, mistakes)
    texts = _parse_text_fields(table, block, mistakes, *TEXT_KEYS)
    if not texts.get("page"):
        mistakes.append(Mistake(block.start, say('The scene names no page; add for example: page = "explore"')))
        return None
    hide, omit = (_parse_scene_part_names(table, name, block, mistakes) for name in ("hide", "omit"))
    title = texts.get("title") or say(PAGE_TITLES.get(texts["page"], texts["page"].capitalize()))
    view = _parse_view(table.get("view", {}), block, mistakes)
    said = texts.get("notes", ""), texts.get("point", "")
    live, files = (
        _parse_boolean_field(table, "live", block, mistakes),
        (texts.get("trace", ""), texts.get("arrays", "")),
    )
    choices = _parse_guess_choices(table, block, mistakes)
    minutes = _parse_minutes(table, block, mistakes)
    return Scene(title, texts["page"], view, *said, hide, omit, live, *files, choices, minutes, block.lines)


def _parse_table(block: TalkBlock, mistakes: list[Mistake]) -> dict[str, Any] | None:
    """What the block says; None where it is not TOML, which is a mistake."""
    try:
        return block.table()
    except TalkError as error:
        mistakes.append(Mistake(error.line, str(error)))
        return None


def _report_unknown_keys(table: Mapping[str, Any], known: set[str], block: TalkBlock, mistakes: list[Mistake]) -> None:
    for name in table.keys() - known:
        names = join_items(sorted(known))
        what = say("There is no key {key!r} here and it is passed over; use {names}.", key=name[:60], names=names)
        mistakes.append(Mistake(block.line(name), what))


def _parse_text_fields(
    table: Mapping[str, Any], block: TalkBlock, mistakes: list[Mistake], *names: str
) -> dict[str, str]:
    found = {}
    for name in names:
        value, longest = table.get(name, ""), LONGEST_TEXTS.get(name, 60)
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


def _parse_scene_part_names(
    table: Mapping[str, Any], name: str, block: TalkBlock, mistakes: list[Mistake]
) -> tuple[str, ...]:
    value = table.get(name, [])
    given = [value] if isinstance(value, str) else value if isinstance(value, list) else [repr(value)]
    for part in given:
        if part not in SCENE_PARTS:
            what = say(UNKNOWN_PART_TEXTS[name], part=part, known=join_items(SCENE_PARTS))
            mistakes.append(Mistake(block.line(name), what))
    return tuple(part for part in SCENE_PARTS if part in given)


def _parse_guess_choices(table: Mapping[str, Any], block: TalkBlock, mistakes: list[Mistake]) -> tuple[str, ...]:
    """What the audience chooses among; nothing where it is no list of so many texts."""
    value = table.get("guess", [])
    texts = [str(one).strip() for one in value] if isinstance(value, list) else []
    choices = tuple(dict.fromkeys(one for one in texts if 0 < len(one) <= LONGEST_CHOICE))
    if "guess" not in table or (len(choices) == len(texts) and FEWEST_CHOICES <= len(choices) <= MOST_CHOICES):
        return choices
    what = say(
        "guess is to be a list of {fewest} to {most} different texts of at most {longest} characters, so the scene "
        "asks nothing.",
        fewest=FEWEST_CHOICES,
        most=MOST_CHOICES,
        longest=LONGEST_CHOICE,
    )
    mistakes.append(Mistake(block.line("guess"), what))
    return ()


def _parse_minutes(table: Mapping[str, Any], block: TalkBlock, mistakes: list[Mistake]) -> float:
    value = table.get("minutes", 0)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= LONGEST_MINUTES:
        return float(value)
    what = say("minutes is to be a number from 0 to {most:g}, so no time is shown.", most=LONGEST_MINUTES)
    mistakes.append(Mistake(block.line("minutes"), what))
    return 0.0


def _parse_boolean_field(table: Mapping[str, Any], name: str, block: TalkBlock, mistakes: list[Mistake]) -> bool:
    value = table.get(name, False)
    if not isinstance(value, bool):
        what = say("{name} is to be true or false, without quotation marks.", name=name)
        mistakes.append(Mistake(block.line(name), what))
    return value is True


def _parse_view(value: Any, block: TalkBlock, mistakes: list[Mistake]) -> dict[str, str]:
    if not isinstance(value, dict):
        mistakes.append(Mistake(block.line("view"), say("view is to be a table: a line that says [scene.view].")))
        return {}
    view = {}
    for name, one in value.items():
        plain = str(one).lower() if isinstance(one, bool) else str(one) if isinstance(one, (str, int, float)) else None
        if plain is None or len(plain) > LONGEST_VALUE:
            what = say(
                "{name} is to be a text or a number of at most {longest} characters; it is passed over.",
                name=name,
                longest=LONGEST_VALUE,
            )
            mistakes.append(Mistake(block.line(f"view.{name}"), what))
        else:
            view[name] = plain
    return view


# TOML read scene by scene, so that a mistake in one scene costs no other, with the line of each key.


SCENE_HEADER = re.compile(r"\s*\[\[\s*scene\s*\]\]\s*(#.*)?$")
SCENE_TABLE = re.compile(r"\s*\[\s*scene\s*\.\s*(\w+)\s*\]")
KEY_LINE = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([\w-]+))\s*=""")
ERROR_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
DEEP_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){50}""")
"""A dotted key of more parts than any view has: the time to read one grows with the square of their number."""
OUTSIDE_STRING = re.compile(r"""#.*|\"{3}|'{3}|"(?:\\.|[^"\\])*+(?:"|$)|'[^']*+(?:'|$)""")
INSIDE_STRING = {'"""': re.compile(r'\\.|"""'), "'''": re.compile("'''")}
"""Marks by which a string of several lines begins and each kind ends, with the texts that can hide such a mark."""


class TalkError(ValueError):
    """A part of the file that cannot be read, with its line."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


@dataclass(frozen=True)
class TalkBlock:
    """The lines of one scene, or those before the first."""

    text: str
    start: int
    """Its first line, from 1."""
    lines: Mapping[str, int]
    """Where each key stands; ``view.head`` for what is in the table ``[scene.view]``."""

    def table(self) -> dict[str, Any]:
        """What the block says. Raises TalkError."""
        try:
            found = _load_toml(self.text)
        except ValueError as error:
            place = ERROR_PLACE.search(str(error))
            last = self.start + self.text.rstrip("\n").count("\n")
            line = self.start + int(place[1]) - 1 if place and place[1] else last
            what = say(
                "This is not TOML ({reason}); its scene is left out until it is mended.",
                reason=ERROR_PLACE.sub("", str(error)),
            )
            raise TalkError(line, what) from error
        if "scene" not in found:
            return found
        scenes = found.pop("scene")
        if scenes == []:  # a talk without a scene is written like this
            return found
        if not isinstance(scenes, list) or not isinstance(scenes[0], dict):
            raise TalkError(self.start, say("A scene begins with [[scene]] on a line of its own."))
        return scenes[0]

    def line(self, key: str) -> int:
        return self.lines.get(key, self.start)


def split_scene_blocks(source: str) -> list[TalkBlock]:
    """What stands before the first scene, then each scene."""
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    outside = _find_lines_outside_strings(lines) if _is_valid_toml("\n".join(lines)) else [True] * len(lines)
    starts = [at for at, line in enumerate(lines) if outside[at] and SCENE_HEADER.match(line)]
    bounds = [0, *starts, len(lines)]
    return [
        TalkBlock(
            "\n".join(lines[low:high]) + "\n",
            low + 1,
            dict(_list_key_line_numbers(lines[low:high], outside[low:high], low + 1)),
        )
        for low, high in pairwise(bounds)
    ]


def _load_toml(text: str) -> dict[str, Any]:
    """Return what a text says. ValueError, also where the parser would take too long or go too deep."""
    if DEEP_KEY.search(text):
        raise ValueError(say("a key has more than fifty parts"))
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError as error:
        raise ValueError(say("too many brackets stand in each other")) from error
    except ValueError as error:
        raise ValueError(say("a number has too many digits")) from error


def _is_valid_toml(source: str) -> bool:
    try:
        _load_toml(source)
    except ValueError:
        return False
    return True


def _find_lines_outside_strings(lines: list[str]) -> list[bool]:
    """For each line of a sound file: whether it begins outside of a string of several lines."""
    found, inside = [], ""
    for line in lines:
        found.append(not inside)
        at = 0
        while mark := (INSIDE_STRING[inside] if inside else OUTSIDE_STRING).search(line, at):
            at = mark.end()
            if mark[0] in INSIDE_STRING:
                inside = "" if inside else mark[0]
    return found


def _list_key_line_numbers(lines: list[str], outside: list[bool], start: int) -> Iterator[tuple[str, int]]:
    yield "", start
    prefix = ""
    for at, (line, free) in enumerate(zip(lines, outside, strict=True), start):
        if not free:
            continue
        if table := SCENE_TABLE.match(line):
            prefix = f"{table[1]}."
            yield table[1], at
        elif key := KEY_LINE.match(line):
            yield prefix + (key[1] or key[2] or key[3]), at
