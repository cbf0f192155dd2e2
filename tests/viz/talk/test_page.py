"""The page Talk without a browser: what it shows, edits and says of mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from attenscope.language import LANGUAGES, use_language
from attenscope.network.config import TransformerConfig
from attenscope.viz.talk import editor, file, session
from attenscope.viz.talk.checks import check_talk
from attenscope.viz.talk.file import format_talk, parse_talk
from attenscope.viz.talk.scenes import PARTS_BY_PAGE, SCENE_PARTS, Scene, Talk
from attenscope.viz.talk.session import load_shipped_talk
from attenscope.viz.ui import cache
from attenscope.viz.ui.addresses.page_registry import PAGES

PAGE = Path(__file__).parents[3] / "viz" / "pages" / "talk.py"
MODELS = {
    "everyday-en-de": TransformerConfig(heads=8, encoder_layers=4, decoder_layers=4),
}


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setattr(cache, "load_model_configs", lambda: MODELS)
    return AppTest.from_file(str(PAGE), default_timeout=60)


def titles(page: AppTest) -> list[str]:
    return [scene.title for scene in page.session_state["talk"][0].scenes]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_talk_that_ships_asks_for_nothing_that_is_missing(language: str) -> None:
    with use_language(language):
        talk, mistakes = load_shipped_talk()
    checked = check_talk(talk, MODELS)
    assert not mistakes
    assert not checked.mistakes
    assert checked.shown == talk.scenes
    assert all(scene.notes for scene in talk.scenes)
    assert parse_talk(format_talk(talk)) == (talk, ())  # saved, it is whole in one file


def test_scenes_are_edited_moved_copied_and_deleted(page: AppTest) -> None:
    one, two = Scene("One", "explore"), Scene("Two", "decode")
    page.session_state["talk"] = (Talk("Mine", (one, two)), ())
    page.run()
    assert not page.exception
    page.text_input(key="scene-title-0-0").set_value("First").run()
    assert titles(page) == ["First", "Two"]
    page.button(key="scene-later").click().run()
    assert titles(page) == ["Two", "First"]
    page.button(key="scene-copy").click().run()
    assert titles(page) == ["Two", "First", "First"]
    page.button(key="scene-delete").click().run()
    page.radio(key="scene-choice").set_value(0).run()
    page.button(key="scene-delete").click().run()
    assert titles(page) == ["First"]
    assert not page.exception


def test_the_fields_follow_the_language_until_the_talk_is_the_visitors_own(
    page: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def titled(language: str) -> list[str | None]:
        monkeypatch.setattr(session, "current_language", lambda: language)
        page.run()
        assert not page.exception
        return [page.text_input[0].value, page.text_input[1].value]

    assert titled("en") == ["How a Transformer attends", "Attention: whom does each word look at?"]
    assert titled("de") == ["Worauf ein Transformer achtet", "Attention: Wohin schaut jedes Wort?"]
    page.text_input[0].set_value("Mein Vortrag").run()
    assert titled("zh") == ["Mein Vortrag", "Attention: Wohin schaut jedes Wort?"]


def test_only_parts_that_the_page_has_can_be_hidden_or_left_out(page: AppTest) -> None:
    assert {part for parts in PARTS_BY_PAGE.values() for part in parts} == set(SCENE_PARTS)
    assert set(PARTS_BY_PAGE) == set(PAGES)
    talk = Talk("Mine", (Scene("One", "explore", hide=("tree",)), Scene("Two", "decode")))
    page.session_state["talk"] = talk, ()
    page.run()
    hide, omit = (page.multiselect(key=f"scene-{name}-0-0") for name in ("hide", "omit"))
    assert (hide.value, "tree" in hide.options, "tree" in omit.options) == (["tree"], True, False)
    assert omit.options == list(PARTS_BY_PAGE["explore"])
    page.radio(key="scene-choice").set_value(1).run()
    assert page.multiselect(key="scene-hide-0-1").options == [
        part for part in SCENE_PARTS if part in PARTS_BY_PAGE["decode"]
    ]


def test_a_scene_is_made_live_where_it_can_be(page: AppTest) -> None:
    scenes = Scene("One", "decode"), Scene("Two", "decode", {"method": "sample"})
    page.session_state["talk"] = (Talk("Mine", scenes), ())
    page.run()
    page.toggle(key="scene-live-0-0").set_value(True).run()
    assert [scene.live for scene in page.session_state["talk"][0].scenes] == [True, False]
    assert not page.warning
    page.radio(key="scene-choice").set_value(1).run()
    assert not [one for one in page.toggle if "live" in str(one.key)]


def test_a_view_is_linked_to_only_where_the_app_has_its_page(page: AppTest) -> None:
    talk = Talk("Of a stranger", (Scene("Two", "decode"), Scene("Elsewhere", "/evil.example")), "small")
    page.session_state["talk"] = talk, ()
    page.run()
    assert [one.proto.url for one in page.get("link_button")] == ["/decode?model=small"]
    page.radio(key="scene-choice").set_value(1).run()
    assert not page.exception
    assert not page.get("link_button")


def test_a_view_that_cannot_be_read_is_said_and_the_old_one_stays(page: AppTest) -> None:
    page.session_state["talk"] = (Talk("Mine", (Scene("One", "explore", {"head": "2"}),)), ())
    page.run()
    page.text_area(key="scene-view-0-0").set_value('page = "explore').run()
    assert "Line 1" in page.error[0].value
    assert page.session_state["talk"][0].scenes[0].view == {"head": "2"}


@pytest.mark.parametrize(
    ("scene", "line", "says"),
    [
        ('page = "nowhere"', 2, "no page 'nowhere'"),
        ('page = "explore"\n[scene.view]\nmodel = "none-such"', 4, "no model 'none-such'"),
        ('page = "explore"\n[scene.view]\nlayer = 2\nhead = 9', 5, "no layer 2, head 9"),
        ('page = "decode"\n[scene.view]\ncross = "5.1"', 4, "no layer 5, head 1"),
        ('page = "explore"\n[scene.view]\nchanges = "cross.1.12:off"', 4, "no layer 1, head 12"),
        ('page = "explore"\n[scene.view]\nchanges = "nonsense"', 4, "is no change"),
    ],
)
def test_what_is_missing_is_named_and_only_its_scene_left_out(scene: str, line: int, says: str) -> None:
    talk, _ = parse_talk(f'[[scene]]\n{scene}\n[[scene]]\npage = "decode"\n')
    checked = check_talk(talk, MODELS)
    assert [(one.line, says in one.text) for one in checked.mistakes] == [(line, True)]
    assert [one.page for one in checked.shown] == ["decode"]


def test_an_unknown_name_in_a_view_is_said_and_the_scene_shown() -> None:
    talk, _ = parse_talk('[[scene]]\npage = "explore"\n[scene.view]\nhaed = 2\n')
    checked = check_talk(talk, MODELS)
    assert "knows no 'haed'" in str(checked.mistakes[0])
    assert str(checked.mistakes[0]).startswith("Line 4: ")
    assert len(checked.shown) == 1


DRAFT = '[[scene]]\ntitle = "Kept"\npage = "decode"\n'


@pytest.mark.parametrize(
    ("held", "found", "left"),
    [
        (None, DRAFT, ["Kept"]),
        (Talk("Mine", (Scene("Now", "explore"),)), DRAFT, ["Now"]),
        (None, "nothing that is TOML", None),
        (None, DRAFT + "#" * file.LONGEST_TALK_FILE, None),
    ],
)
def test_a_draft_of_the_browser_is_taken_where_the_session_has_no_talk(
    monkeypatch: pytest.MonkeyPatch, held: Talk | None, found: str, left: list[str] | None
) -> None:
    state: dict[str, Any] = {"talk": (held, ())} if held else {}
    monkeypatch.setattr(session.st, "session_state", state)
    monkeypatch.setattr(session.st, "toast", lambda text: None)
    heard: list[Any] = []
    monkeypatch.setattr(
        session, "keep_draft_in_browser", lambda name, text, on_found: heard.append((name, text, on_found))
    )
    session.sync_talk_draft_with_browser("talk")
    (name, text, on_found), (files, keys, _) = heard
    assert (files, keys) == ("talk-files", "")
    assert name == "talk"
    assert bool(text) == bool(held)
    on_found(found)
    assert [one.title for one in state["talk"][0].scenes] == left if left else "talk" not in state


def test_changes_are_taken_back_one_after_another(page: AppTest) -> None:
    page.session_state["talk"] = (Talk("Mine", (Scene("One", "explore"), Scene("Two", "decode"))), ())
    page.run()
    assert page.button(key="talk-undo").disabled
    page.text_input(key="scene-title-0-0").set_value("First").run()
    page.button(key="scene-delete").click().run()
    assert titles(page) == ["Two"]
    page.button(key="talk-undo").click().run()
    assert titles(page) == ["First", "Two"]
    page.button(key="talk-undo").click().run()
    assert titles(page) == ["One", "Two"]
    assert page.button(key="talk-undo").disabled
    assert not page.exception


def report_every_field_as_it_was_drawn() -> None:
    """What Streamlit does of fields that a run drew anew and did not come to its end."""
    from attenscope.viz.talk import editor, session

    talk, _ = session.get_talk()
    now = session.get_talk_revision()
    session.rename_talk(now, talk.title)
    for at, scene in enumerate(talk.scenes):
        for name in ("title", "point", "notes", "minutes", "hide", "omit", "guess", "live"):
            session.edit_scene(now, at, **{name: getattr(scene, name)})
        found, _ = editor._parse_scene(editor.format_scene_view_toml(scene))
        assert found
        session.edit_scene(now, at, page=found.page, view=found.view, lines={})


@pytest.mark.parametrize("talk", [None, Talk("Mine", (Scene("One", "explore", notes="Say this."),))])
def test_a_field_that_says_what_it_said_changes_nothing(talk: Talk | None) -> None:
    page = AppTest.from_function(report_every_field_as_it_was_drawn)
    if talk:
        page.session_state["talk"] = (talk, ())
    page.run()
    assert not page.exception
    assert session._UNDO_KEY not in page.session_state
    assert ("talk" in page.session_state) == bool(talk)


def report_every_field_of_a_talk_that_was_undone() -> None:
    """What Streamlit does where a run is cut short after an undo."""
    from attenscope.viz.talk import session
    from attenscope.viz.talk.scenes import Scene, Talk

    session.set_talk(Talk("Mine", (Scene("One", "explore"), Scene("Two", "explore"))))
    drawn = session.get_talk_revision()
    session.undo_change()
    session.rename_talk(drawn, "Mine")
    session.edit_scene(drawn, 0, title="One")
    session.edit_scene(drawn, 99, title="A scene that is no more")


def test_a_field_of_a_talk_that_was_undone_changes_nothing() -> None:
    page = AppTest.from_function(report_every_field_of_a_talk_that_was_undone).run()
    assert not page.exception
    assert page.session_state["talk"] is None
    assert not page.session_state[session._UNDO_KEY]


def test_a_scene_is_called_by_its_sentence_and_what_is_seen() -> None:
    view = {"view": "links", "kind": "cross", "layer": "3", "head": "7"}
    assert (
        editor._build_scene_title("explore", view, "She lost.")
        == "“She lost.” · Explore, links, Cross-attention, layer 3, head 7"
    )
    assert editor._build_scene_title("masks", {}, "") == "Masks"
    fault = {"part": "gallery", "fault": "future-visible"}
    assert editor._build_scene_title("masks", fault, "") == "Masks, gallery, future visible"
    assert len(editor._build_scene_title("decode", {}, "word " * 60)) < 90
