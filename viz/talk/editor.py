"""The editor of a talk: its scenes and their fields, opening and saving it, and adding the current view."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from string import Template
from typing import Any

import streamlit as st

from attenscope.language import join_items, join_sentences, say, to_say
from attenscope.network.config import TransformerConfig
from attenscope.untrusted_trace import MAX_FILE_MEGABYTES, OpenedTrace
from attenscope.viz.figures.figure_style import KIND_NAMES
from attenscope.viz.talk import attachments, session
from attenscope.viz.talk.attachments import AttachedFile
from attenscope.viz.talk.checks import CheckedTalk, find_scene_trace_or_config
from attenscope.viz.talk.file import LONGEST_TALK_FILE, format_scene_view_toml, format_talk, parse_talk
from attenscope.viz.talk.scenes import (
    LONGEST_MINUTES,
    LONGEST_TEXTS,
    MOST_CHOICES,
    MOST_SCENES,
    PARTS_BY_PAGE,
    SCENE_PARTS,
    Mistake,
    Scene,
    Talk,
    explain_live_scene_obstacle,
    list_guessable_picture_parts,
)
from attenscope.viz.traces.session import (
    CHANGED_MASK_KEY,
    PASTED_MASK_KEY,
    UPLOADED_MASKS_KEY,
    get_open_trace,
    get_open_training_run,
)
from attenscope.viz.traces.upload_store import UploadStoreError
from attenscope.viz.ui import controls, style
from attenscope.viz.ui.address import AddressPage
from attenscope.viz.ui.addresses import masks
from attenscope.viz.ui.addresses.page_registry import PAGE_TITLES, PAGES
from attenscope.viz.ui.addresses.shared import MODEL, SENTENCE
from attenscope.viz.ui.captions import draw_caption, escape_markdown, escape_message
from attenscope.viz.web.page_components import draw_scene_preview_and_thumbnails

# The list of scenes, and the fields of the one that is edited.


TALK_STYLE = Path(__file__).parent / "talk.css"
LIVE_LABEL = to_say("Live: sentences from the audience are translated")
LIVE_HELP = to_say(
    "On stage by this app; in One file by the model itself, which then stands in the file and makes it larger."
)
GUESS_LABEL = to_say("Guess first: among what the audience chooses")
GUESS_HELP = to_say(
    "Two to nine parts of the picture. On stage the keys 1 to 9, or clicks, count the guesses; the next key shows "
    "them. Cover what would tell with “Hidden until the next key”."
)
VIEW_FIELD_HEIGHT = 190
"""Pixels of the field that holds a view."""


SENTENCE_SCENE_HINT = to_say(
    "With the heads and the picture left out, the sentence is the picture: lines lead from word to word."
)


def draw_scene_editor(
    talk: Talk,
    models: Mapping[str, TransformerConfig | None],
    beside: Mapping[str, AttachedFile],
    drawn: Mapping[int, Mapping[str, Any]],
) -> None:
    """Draw the list on the left, the chosen scene on the right; `drawn` are the scenes that can be shown, from 0."""
    if not talk.scenes:
        draw_caption(say("There is no scene yet. Press “Add to talk” in the menu “Share” of any page, or open a talk."))
        return
    at = min(session.get_edited_scene_index(), len(talk.scenes) - 1)
    left, right = st.columns([0.36, 0.64], gap="large")
    with left:
        st.session_state["scene-choice"] = at
        controls.draw_untranslated_choice(
            st.radio,
            say("Scenes"),
            range(len(talk.scenes)),
            format_func=lambda one: f"{one + 1} {escape_markdown(talk.scenes[one].title)}",
            key="scene-choice",
            label_visibility="collapsed",
            on_change=_choose_scene,
        )
    with right:
        _draw_scene_menu(at, len(talk.scenes))
        _draw_scene_preview_and_thumbnails(at, talk, drawn)
        network = find_scene_trace_or_config(talk.scenes[at], talk, models, beside)
        if talk.scenes[at].page == "explore" and isinstance(network, TransformerConfig):
            draw_caption(say(SENTENCE_SCENE_HINT))
        _draw_scene_fields(at, talk.scenes[at], network)


def _draw_scene_preview_and_thumbnails(at: int, talk: Talk, drawn: Mapping[int, Mapping[str, Any]]) -> None:
    """The chosen scene, on which its parts are hidden and left out, and a small picture of each in the list."""
    pictured = [drawn.get(number) for number in range(len(talk.scenes))]
    there = PARTS_BY_PAGE.get(talk.scenes[at].page, ())
    revision = session.get_talk_revision()

    def keep_parts(hide: Sequence[str], omit: Sequence[str]) -> None:
        scene, changed = talk.scenes[at], {"hide": hide, "omit": omit}
        kept = {name: tuple(part for part in SCENE_PARTS if part in now) for name, now in changed.items()}
        if kept != {name: getattr(scene, name) for name in kept}:
            session.edit_scene(revision, at, **kept)
            session.refresh_editor_fields()

    scheme = style.get_colour_scheme()
    if pictures := build_thumbnail_style("scene-choice", talk, session.load_shipped_talk()[0], scheme):
        st.html(f"<style>{pictures}</style>")
    draw_scene_preview_and_thumbnails(
        "scene-choice", pictured, at, scheme, {part: say(part) for part in there}, keep_parts
    )


def _choose_scene() -> None:
    session.set_edited_scene(st.session_state["scene-choice"])


def _draw_scene_menu(at: int, count: int) -> None:
    """The menu that changes the order of the scenes, or how many there are."""

    def button(name: str, what: str, possible: bool, change: Callable[[list[Scene]], int]) -> None:
        arguments = (at, change)
        st.button(
            name,
            key=f"scene-{what}",
            type="tertiary",
            disabled=not possible,
            on_click=session.rearrange_scenes,
            args=arguments,
        )

    def move(by: int) -> Callable[[list[Scene]], int]:
        def change(scenes: list[Scene]) -> int:
            scenes.insert(at + by, scenes.pop(at))
            return at + by

        return change

    def copy(scenes: list[Scene]) -> int:
        scenes.insert(at + 1, scenes[at])
        return at + 1

    def delete(scenes: list[Scene]) -> int:
        del scenes[at]
        return at

    # It stays open while a scene is moved, several places perhaps, and closes once there are more or fewer.
    place = say("Scene {number} of {count}", number=at + 1, count=count)
    with st.container(key="scene-moves"), st.popover(place, type="tertiary", key=f"scene-menu-{count}"):
        button(say("Move earlier"), "earlier", at > 0, move(-1))
        button(say("Move later"), "later", at < count - 1, move(1))
        button(say("Copy"), "copy", count < MOST_SCENES, copy)
        button(say("Delete"), "delete", True, delete)


def _draw_scene_fields(at: int, scene: Scene, network: TransformerConfig | OpenedTrace | None) -> None:
    """The scene's own fields; each change is kept at once."""
    revision = session.get_talk_revision()
    suffix = f"{revision}-{at}"

    def keep_field(name: str) -> None:
        value = st.session_state[f"scene-{name}-{suffix}"]
        kept = value.strip() if isinstance(value, str) else tuple(value) if isinstance(value, list) else value
        session.edit_scene(revision, at, **{name: kept})

    def line(name: str, label: str, hint: str) -> None:
        key = f"scene-{name}-{suffix}"
        st.text_input(
            label, getattr(scene, name), LONGEST_TEXTS[name], key, placeholder=hint, on_change=keep_field, args=(name,)
        )

    def build_parts(name: str, label: str) -> None:
        key = f"scene-{name}-{suffix}"
        chosen = list(getattr(scene, name))
        there = [part for part in SCENE_PARTS if part in PARTS_BY_PAGE.get(scene.page, SCENE_PARTS) or part in chosen]
        controls.draw_untranslated_choice(
            st.multiselect,
            label,
            there,
            chosen,
            key=key,
            on_change=keep_field,
            args=(name,),
            placeholder=say("Nothing"),
            format_func=say,
        )

    line("title", say("Title"), say("What stands above the picture"))
    line("point", say("What to look at"), say("One line under the picture, for the audience"))
    key = f"scene-notes-{suffix}"
    st.text_area(
        say("Notes"),
        scene.notes,
        190,
        LONGEST_TEXTS["notes"],
        key,
        placeholder=say("What you say"),
        on_change=keep_field,
        args=("notes",),
    )
    key = f"scene-minutes-{suffix}"
    label = say("Minutes that it is to take, for your clock")
    longest = LONGEST_MINUTES
    st.number_input(label, 0.0, longest, scene.minutes, 0.5, "%g", key=key, on_change=keep_field, args=("minutes",))
    left, right = st.columns(2)
    with left:
        build_parts("hide", say("Hidden until the next key"))
    with right:
        build_parts("omit", say("Left out"))
    if choices := list(dict.fromkeys([*scene.guess, *list_guessable_picture_parts(scene, network)])):
        more: dict[str, Any] = {
            "max_selections": MOST_CHOICES,
            "placeholder": say("Nothing"),
            "help": say(GUESS_HELP),
        }
        key = f"scene-guess-{suffix}"
        more["format_func"] = scene.choice_text
        controls.draw_untranslated_choice(
            st.multiselect,
            say(GUESS_LABEL),
            choices,
            list(scene.guess),
            key=key,
            on_change=keep_field,
            args=("guess",),
            **more,
        )
    if scene.live or not explain_live_scene_obstacle(scene):
        st.toggle(
            say(LIVE_LABEL), scene.live, f"scene-live-{suffix}", say(LIVE_HELP), on_change=keep_field, args=("live",)
        )
    _draw_view_address_field(at, scene)


def _draw_view_address_field(at: int, scene: Scene) -> None:
    """The page and its address, as they stand in the file."""
    revision = session.get_talk_revision()
    suffix = f"{revision}-{at}"
    key = f"scene-view-{suffix}"

    def edit() -> None:
        found, mistakes = _parse_scene(st.session_state[key])
        st.session_state["view-mistakes"] = (suffix, mistakes)
        if found and not mistakes:
            session.edit_scene(revision, at, page=found.page, view=found.view, lines={})

    with st.expander(say("The view"), key="scene-view"):
        st.text_area(
            say("As it stands in the file"), format_scene_view_toml(scene), VIEW_FIELD_HEIGHT, key=key, on_change=edit
        )
        of, mistakes = st.session_state.get("view-mistakes", ("", ()))
        for one in mistakes if of == suffix else ():
            st.error(escape_markdown(join_sentences(str(one), say("The view stays as it was."))))
        file = escape_markdown(scene.trace or scene.arrays)
        names = say("The names are those in the page's address.")
        change = say("To change a view by hand, open it and add it again.")
        if file:
            change = say("To change a view by hand, open {file} on its page and add it again.", file=file)
        draw_caption(join_sentences(names, change))
    if file or scene.page not in PAGES:  # Another tab would not have the file, and a stranger's page may be anywhere.
        return
    model = session.get_talk()[0].model
    st.link_button(say("Open this view"), scene.address(model), type="tertiary")


def _parse_scene(source: str) -> tuple[Scene | None, tuple[Mistake, ...]]:
    talk, mistakes = parse_talk(f"[[scene]]\n{source}")
    moved = tuple(Mistake(max(one.line - 1, 1), one.text) for one in mistakes)
    return (talk.scenes[0] if talk.scenes else None), moved


# Adding the view on the screen to the talk.


MODEL_PARAMETERS = (MODEL.name, SENTENCE.name, "changes")
"""Parameters of Explore's address that say nothing of an opened trace."""
PASTED_FILE_NAME = "pasted.txt"
"""The name of pasted arrays as a file beside a talk."""
ADDITION_KEY = "added to talk"
"""The session key of what became of a view that was to be added to the talk, until it is said."""
LONGEST_TITLE_SENTENCE = 60
"""Most characters of the sentence in the title that a new scene gets."""


def draw_add_view_button(page: AddressPage) -> None:
    """Draw a button that adds the view on the screen to the visitor's talk as a scene."""
    what = say("Make this view the next scene of your talk (page Talk)")
    if st.button(
        say("Add to talk"), key="add-this-view", help=what, on_click=_add_view_as_scene, args=(page,), width="stretch"
    ):
        st.rerun()  # The menu runs alone; the page keeps the talk, and says what became of it.


def show_add_view_message() -> None:
    """Say, once, what became of a view that was to be added to the talk."""
    if said := st.session_state.pop(ADDITION_KEY, ""):
        st.toast(said)


def _add_view_as_scene(page: AddressPage) -> None:
    """Add the view as a scene, with the file that it shows kept beside the talk; or say why it cannot be one."""
    mine, mistakes = st.session_state.get("talk") or (Talk(say(session.OWN_TALK_TITLE)), ())
    if problem := _explain_view_refusal(page.name, len(mine.scenes)):
        st.session_state[ADDITION_KEY] = problem
        return
    opened = get_open_trace() if page.name == "explore" else None
    try:
        trace = attachments.attach_trace(opened) if opened else ""
        arrays = "".join(attachments.attach_arrays(*one) for one in _collect_judged_mask_files(page.name))
    except (UploadStoreError, ValueError) as error:
        st.session_state[ADDITION_KEY] = escape_message(str(error))
        return
    scene = _build_scene_from_view(page, opened, trace, arrays)
    session.set_talk(replace(mine, scenes=(*mine.scenes, scene)), mistakes, len(mine.scenes))
    file = trace or arrays
    kept = say("{file} is kept beside it: Save on the page Talk hands out both as a zip.", file=file) if file else ""
    number = len(mine.scenes) + 1
    said = say("Scene {number} of your talk. Give it a title and notes on the page Talk.", number=number)
    st.session_state[ADDITION_KEY] = escape_markdown(join_sentences(said, kept))


def _build_scene_from_view(page: AddressPage, opened: OpenedTrace | None, trace: str, arrays: str) -> Scene:
    carried = () if trace or arrays else (MODEL, SENTENCE)
    said = (masks.MASKS_MEANT.name, masks.MASKS_ATTENTION.name)  # Of a mask that was brought alone.
    left_out = MODEL_PARAMETERS if trace else (masks.MASKS_SOURCE.name,) if arrays else said
    view = {one.name: st.session_state[one.key] for one in carried if st.session_state.get(one.key)}
    view |= {name: value for name, value in page.current_view_parameters().items() if name not in left_out}
    brought = "" if arrays.startswith(PASTED_FILE_NAME.partition(".")[0]) else arrays
    source = opened.drawable.source if opened else view.get(SENTENCE.name, brought)
    return Scene(_build_scene_title(page.name, view, source), page.name, view, trace=trace, arrays=arrays)


def _explain_view_refusal(page: str, scenes: int) -> str:
    """Why the view cannot become a scene; "" where it can."""
    if scenes >= MOST_SCENES:
        return say("A talk has at most {most} scenes: save this one and begin another.", most=MOST_SCENES)
    if is_opened_training_shown(page):
        return say("A scene is an address or a file: a training that was opened is neither.")
    if not _is_judge_view(page) or masks.MASKS_SOURCE.get() == "build":
        return ""
    if len(_collect_judged_mask_files(page)) == 1:
        return (
            say(
                "A scene shows a mask as it was brought, with what is meant: take back what you changed (cells, fixes, "
                "what an array is read as, another map of the file), or save the page."
            )
            if st.session_state.get(CHANGED_MASK_KEY)
            else ""
        )
    if _collect_judged_mask_files(page):
        return say("A scene shows one file: take the other uploads away, or open each on the page Talk.")
    if masks.MASKS_SOURCE.get() == "opened trace":
        return say("A scene shows an opened trace on Explore: add it to the talk there.")
    return say("There is no mask to show yet: paste, upload or build one first.")


def is_opened_training_shown(page: str) -> bool:
    """Whether the page shows the traces of a training that the visitor opened: no scene holds them."""
    return page == "training" and get_open_training_run() is not None


def _is_judge_view(page: str) -> bool:
    return page == "masks" and masks.MASKS_PART.get() == "judge"


def _collect_judged_mask_files(page: str) -> list[tuple[str, bytes]]:
    """What the page Masks judges of the visitor's own, as files: name and bytes of each. What was pasted is a text."""
    if not _is_judge_view(page):
        return []
    if masks.MASKS_SOURCE.get() == "paste":
        text = str(st.session_state.get(PASTED_MASK_KEY) or "").strip()
        return [(PASTED_FILE_NAME, text.encode())] if text else []
    uploaded = st.session_state.get(UPLOADED_MASKS_KEY) if masks.MASKS_SOURCE.get() == "upload" else None
    return [(one.name, bytes(one.getbuffer())) for one in uploaded or []]


def _build_scene_title(page: str, view: dict[str, str], source: str) -> str:
    """Return the title of a new scene: its sentence, and what the view shows of it."""
    chosen = (view.get(name, "") for name in ("view", "plot", "move", "why", "method"))
    what = view.get("part") or next(filter(None, chosen), "")
    fault = view.get("fault", "").replace("-", " ")
    kind = KIND_NAMES.get(view.get("kind", ""), "")
    layer, head = view.get("layer", 1), view.get("head", 1)
    place = say("layer {layer}, head {head}", layer=layer, head=head) if {"layer", "head"} & view.keys() else ""
    meant = _shorten(view.get(masks.MASKS_MEANT.name, ""))
    parts = (say(PAGE_TITLES[page]), what and say(what), meant, fault, kind and say(kind), place)
    seen = join_items(filter(None, parts))
    return say("“{sentence}” · {seen}", sentence=_shorten(source), seen=seen) if source else seen


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_TITLE_SENTENCE else f"{text[: LONGEST_TITLE_SENTENCE - 1]}…"


# The title and the menu: undo, open, save; and the mistakes in a talk.


MOST_LISTED_MISTAKES = 12
"""Mistakes that are shown at once."""


def draw_title_field(talk: Talk) -> None:
    """Draw the title of the talk as a field."""
    revision = session.get_talk_revision()
    key = f"talk-title-{revision}"

    def rename() -> None:
        session.rename_talk(revision, st.session_state[key].strip() or say(session.OWN_TALK_TITLE))

    label = say("Title of the talk")
    st.text_input(label, talk.title, LONGEST_TEXTS["title"], key, label_visibility="collapsed", on_change=rename)


def draw_talk_menu(talk: Talk) -> None:
    """Draw the buttons that undo a change, and open, save or begin a talk."""
    st.button(
        say("Undo"), key="talk-undo", type="tertiary", disabled=not session.can_undo(), on_click=session.undo_change
    )
    # Keyed by the revision, so that the menu closes once a talk is open.
    with st.popover(say("Open or save"), type="tertiary", key=f"talk-open-{session.get_talk_revision()}"):
        _draw_save_button(talk)
        key = f"talk-file-{session.get_talk_revision()}"
        label = say("A talk (TOML), with its traces and masks beside it or all in a zip")
        more: dict[str, Any] = {"accept_multiple_files": True, "type": attachments.UPLOAD_ENDINGS}
        controls.file_uploader(label, MAX_FILE_MEGABYTES, key=key, on_change=_open_uploaded_talk_files, **more)
        st.button(
            say("The talk that ships with the app"), key="talk-shipped", on_click=_open_shipped_talk, width="stretch"
        )
        empty = Talk(say(session.OWN_TALK_TITLE))
        st.button(say("An empty talk"), key="talk-empty", on_click=session.set_talk, args=(empty,), width="stretch")


def _draw_save_button(talk: Talk) -> None:
    """The talk as a file: as text, or with what it shows beside it in a zip."""
    name = re.sub(r"[^\w]+", "-", talk.title.lower(), flags=re.ASCII).strip("-") or "talk"
    there = attachments.get_attached_files() if attachments.list_talk_file_names(talk) else {}
    kind = (".zip", "application/zip") if there else (".toml", "application/toml")
    data = partial(attachments.pack_talk, talk, there) if there else format_talk(talk)
    file = f"{name}{kind[0]}"
    st.download_button(say("Save"), data, file, kind[1], key="talk-save", on_click="ignore", width="stretch")


def draw_mistakes(checked: CheckedTalk, reading: tuple[Mistake, ...]) -> None:
    """Draw every mistake with its line and what to do, and how many scenes can be shown."""
    if problem := st.session_state.pop("talk-problem", None):
        st.error(escape_markdown(problem))
    found = sorted((*reading, *checked.mistakes), key=lambda one: one.line)
    if not found:
        return
    lines = [f"- {escape_markdown(str(one))}" for one in found[:MOST_LISTED_MISTAKES]]
    if len(found) > MOST_LISTED_MISTAKES:
        lines.append(f"- {say('and {count} more', count=len(found) - MOST_LISTED_MISTAKES)}")
    ready = say(
        "{shown} of the {count} scenes that could be read can be shown.",
        shown=len(checked.shown),
        count=len(checked.talk.scenes),
    )
    st.warning("\n".join([*lines, "", ready]))


def _open_uploaded_talk_files() -> None:
    """Open the talk among the files that were brought; files without one are kept beside the talk that is open."""
    given = st.session_state[f"talk-file-{session.get_talk_revision()}"]
    if not given:
        return
    found, problems = attachments.expand_zip_files((file.name, file.getvalue()) for file in given)
    talks = [name for name in found if name.lower().endswith(attachments.TALK_ENDING)]
    problems += attachments.attach_files_and_list_problems(
        {name: data for name, data in found.items() if name not in talks}
    )
    if len(talks) > 1:
        problems.append(say("There are {count} talks; {name} is opened.", count=len(talks), name=talks[0]))
    opened = _read_talk_file(talks[0], found[talks[0]], problems) if talks else session.get_talk()
    if opened:
        session.set_talk(*opened, at=0)
    if problems:
        st.session_state["talk-problem"] = join_sentences(*problems)


def _read_talk_file(name: str, data: bytes, problems: list[str]) -> tuple[Talk, tuple[Mistake, ...]] | None:
    """The talk in a file; None, with what is wrong added to `problems`, where it is none."""
    if len(data) > LONGEST_TALK_FILE:
        most = LONGEST_TALK_FILE // 1024
        problems.append(say("{name} is larger than {most} kB, so it is no talk.", name=name, most=most))
        return None
    try:
        return parse_talk(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        problems.append(say("Line {line}: {name} is not text in UTF-8; save it as such.", line=line, name=name))
        return None


def _open_shipped_talk() -> None:
    session.set_talk(*session.load_shipped_talk(), at=0)


# The small pictures of the scenes of the talk that ships, in the list of the editor.
#
# They stand below each other in one image a colour scheme, beside the talk's file, and are taken of a rehearsal
# (``python -m publish.pictures thumbnails``). A rehearsal of the visitor's own takes their place.


THUMBNAIL_SIZE = (192, 93)
"""Pixels of one: twice as many as it is shown in."""
LIST_RULE = Template('.st-key-$key { --thumbnails: url("data:image/webp;base64,$image"); }')
SCENE_RULE = Template(
    '.st-key-$key [data-testid="stRadioOption"]:has([value="$at"]) > div::before '
    '{ content: ""; background: 0 $place% / 100% auto no-repeat var(--thumbnails); }'
)


def get_thumbnail_sheet_path(scheme: str) -> Path:
    """The image of all scenes in a colour scheme, light or dark."""
    return Path(__file__).parent / f"talk.{scheme}.webp"


def build_thumbnail_style(list_key: str, talk: Talk, shipped: Talk, scheme: str) -> str:
    """CSS that shows a picture of each scene which is drawn as one of the `shipped` talk; "" where none is.

    `list_key` is the Streamlit key of the list, whose options are the scenes by their places.
    """
    pictured = [_list_thumbnail_dependencies(scene, shipped.model) for scene in shipped.scenes]
    drawn = [_list_thumbnail_dependencies(scene, talk.model) for scene in talk.scenes]
    found = [(at, pictured.index(one)) for at, one in enumerate(drawn) if one in pictured]
    rules = [
        SCENE_RULE.substitute(key=list_key, at=at, place=f"{100 * row / (len(pictured) - 1):.4f}") for at, row in found
    ]
    return (
        "\n".join([LIST_RULE.substitute(key=list_key, image=_read_thumbnails_base64(scheme)), *rules]) if rules else ""
    )


def _list_thumbnail_dependencies(scene: Scene, model: str) -> Sequence[Hashable]:
    """What a scene's picture depends on, as in presenter/kept.js."""
    view = frozenset(scene.query(model).items())
    return scene.page, view, scene.live, scene.trace, scene.arrays, scene.omit, bool(scene.guess)


@cache
def _read_thumbnails_base64(scheme: str) -> str:
    return base64.b64encode(get_thumbnail_sheet_path(scheme).read_bytes()).decode()
