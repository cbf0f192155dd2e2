"""Check a talk against the pages, models and heads there are; each mistake has its line and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from attenscope.interventions.changes import HeadChange, InterventionError, parse_changes
from attenscope.language import join_items, say
from attenscope.runnable_model import remove_template_from_model_name
from attenscope.untrusted_trace import OpenedTrace
from attenscope.viz.talk.scenes import (
    FEWEST_CHOICES,
    Mistake,
    Scene,
    Talk,
    explain_live_scene_obstacle,
    find_choice_problem,
    list_ignored_live_parameters,
)
from attenscope.viz.ui.address import ChoiceParameter, NumberParameter, Parameter
from attenscope.viz.ui.addresses.decode import DECODE_CROSS_HEAD, DECODE_OWN_HEAD
from attenscope.viz.ui.addresses.page_registry import PAGE_TITLES, PAGES
from attenscope.viz.ui.addresses.shared import CHANGES, HEAD, KIND, LAYER, MODEL

if TYPE_CHECKING:
    from attenscope.network.config import TransformerConfig
    from attenscope.viz.talk.attachments import AttachedFile

TRACE_PAGES, ARRAYS_PAGES = ("explore",), ("masks",)
"""The pages that show a file beside a talk."""


@dataclass(frozen=True)
class CheckedTalk:
    """A talk and what is wrong with it."""

    talk: Talk
    mistakes: tuple[Mistake, ...]
    shown: tuple[Scene, ...]
    """The scenes that can be shown, because nothing that they need is missing; `live` only where it is possible."""
    numbers: tuple[int, ...] = ()
    """Which scenes of the talk these are, from 0."""


def check_talk(
    talk: Talk, models: Mapping[str, TransformerConfig | None], beside: Mapping[str, AttachedFile] | None = None
) -> CheckedTalk:
    """Hold every scene against the pages and the `models` there are, by name; the first is the default.

    None stands for a model of the command line, which is not one of this project. `beside` are the files that were
    brought along with the talk, by name.
    """
    mistakes: list[Mistake] = []
    shown, numbers = [], []
    beside = beside or {}
    for number, scene in enumerate(talk.scenes, 1):
        missing = list(_find_missing_file(scene, beside) or _find_missing_requirements(scene, talk, models))
        choices, problems = _select_valid_guess_choices(scene, talk, models, beside)
        others = (
            *_find_unknown_parameters(scene),
            *_find_unreadable_values(scene),
            *_find_live_scene_problems(scene, talk, models),
            *problems,
        )
        mistakes += [_build_mistake(number, scene, *one) for one in (*missing, *others)]
        if not missing:
            shown.append(replace(scene, live=scene.live and not explain_live_scene_obstacle(scene), guess=choices))
            numbers.append(number - 1)
    return CheckedTalk(talk, tuple(mistakes), tuple(shown), tuple(numbers))


def find_scene_model(scene: Scene, talk: Talk, models: Mapping[str, TransformerConfig | None]) -> str:
    """The name of the model that a scene asks for; "" where there is none at all."""
    return scene.view.get(MODEL.name) or talk.model or next(iter(models), "")


def _build_mistake(number: int, scene: Scene, key: str, text: str) -> Mistake:
    line = scene.lines.get(key, scene.lines.get("", 0))
    return Mistake(line, text if line else say("Scene {number}: {text}", number=number, text=text))


def _find_missing_file(scene: Scene, beside: Collection[str]) -> list[tuple[str, str]]:
    """The file that the scene names and cannot show."""
    for key, name, pages in (("trace", scene.trace, TRACE_PAGES), ("arrays", scene.arrays, ARRAYS_PAGES)):
        if name and scene.page not in pages:
            there = join_items(say(PAGE_TITLES[page]) for page in pages)
            missing = say(
                "The page {page} shows no {key} of a file, so the scene is left out; {there} does.",
                page=scene.page,
                key=key,
                there=there,
            )
            return [(key, missing)]
        if name and name not in beside:
            missing = say(
                "There is no file {name!r} beside the talk, so the scene is left out; open the talk together with it, "
                "or as a zip that holds both.",
                name=name,
            )
            return [(key, missing)]
    return []


def _find_missing_requirements(
    scene: Scene, talk: Talk, models: Mapping[str, TransformerConfig | None]
) -> Iterator[tuple[str, str]]:
    """What the scene cannot be shown without: the key that asks for it, and what to do."""
    if scene.page not in PAGES:
        yield (
            "page",
            say(
                "There is no page {page!r}, so the scene is left out; use {pages}.",
                page=scene.page,
                pages=join_items(PAGES),
            ),
        )
        return
    if scene.trace or scene.arrays:  # a file has heads of its own
        return
    name = remove_template_from_model_name(find_scene_model(scene, talk, models))
    if name not in models:
        missing = say("There is no model {name!r}, so the scene is left out; there is none here yet.", name=name)
        if models:
            missing = say(
                "There is no model {name!r}, so the scene is left out; models here: {there}.",
                name=name,
                there=join_items(models),
            )
        yield "view.model", missing
        return
    for key, kind, layer, head in _list_scene_heads(scene):
        config = models[name]
        if config is None:  # its heads are not known before it is loaded
            continue
        layers = config.encoder_layers if kind == "encoder" else config.decoder_layers
        if not (1 <= layer <= layers and 1 <= head <= config.heads):
            yield (
                key,
                say(
                    "There is no layer {layer}, head {head} in the {kind} attention of {name}, so the scene is left "
                    "out; it has layers 1 to {layers} and heads 1 to {heads}.",
                    layer=layer,
                    head=head,
                    kind=kind,
                    name=name,
                    layers=layers,
                    heads=config.heads,
                ),
            )
    try:
        parse_changes(scene.view.get(CHANGES.name, ""))
    except InterventionError as error:
        yield "view.changes", str(error)


def _list_scene_heads(scene: Scene) -> Iterator[tuple[str, str, int, int]]:
    """Every head a scene names: the key, the kind of attention, layer and head from 1."""
    view = scene.view
    if {LAYER.name, HEAD.name} & view.keys():
        key = HEAD.name if HEAD.name in view else LAYER.name
        layer, head = (_parse_number_or_zero(view.get(one.name, "1")) for one in (LAYER, HEAD))
        yield f"view.{key}", KIND.value_of(view.get(KIND.name, "")), layer, head
    for one, kind in ((DECODE_CROSS_HEAD, "cross"), (DECODE_OWN_HEAD, "decoder")):
        first, dot, second = view.get(one.name, "").partition(".")
        if dot and scene.page == "decode":
            yield (
                f"view.{one.name}",
                kind,
                _parse_number_or_zero(first),
                1 if second == "mean" else _parse_number_or_zero(second),
            )
    try:
        changes = parse_changes(view.get(CHANGES.name, ""))
    except InterventionError:
        return
    for change in changes:
        if isinstance(change, HeadChange):
            yield "view.changes", change.kind, change.layer + 1, change.head + 1


def _find_unknown_parameters(scene: Scene) -> Iterator[tuple[str, str]]:
    known = PAGES[scene.page].parameters if scene.page in PAGES else scene.view
    for name in scene.view:
        if name not in known:
            unknown = say(
                "The page {page} knows no {name!r}, so it is passed over; it knows {there}.",
                page=scene.page,
                name=name,
                there=join_items(sorted(known)),
            )
            yield f"view.{name}", unknown


def _find_unreadable_values(scene: Scene) -> Iterator[tuple[str, str]]:
    """Values that the page cannot read: the key, what it can read, and the nearest of it."""
    known = PAGES[scene.page].parameters if scene.page in PAGES else {}
    for name, value in scene.view.items():
        if name not in known or known[name].understands([value]):
            continue
        yield f"view.{name}", _explain_unreadable_value(name, value, scene.page, known[name])


def _explain_unreadable_value(name: str, value: str, page: str, one: Parameter[Any]) -> str:
    facts = {"name": name, "value": value[:60], "page": page}
    if isinstance(one, ChoiceParameter):
        options = [one.write(option) for option in one.options]
        near = get_close_matches(value, options, 1)
        if near:
            return say(
                "{name} = {value!r} means nothing on the page {page}: it is one of {options}; {near!r} is nearest.",
                options=join_items(options),
                near=near[0],
                **facts,
            )
        return say(
            "{name} = {value!r} means nothing on the page {page}: it is one of {options}.",
            options=join_items(options),
            **facts,
        )
    if isinstance(one, NumberParameter):
        return say(
            "{name} = {value!r} means nothing on the page {page}: it is a number from {low:g} to {high:g}.",
            low=one.low,
            high=one.high,
            **facts,
        )
    return say(
        "{name} = {value!r} means nothing on the page {page}: it is at most {longest:,} characters of its kind.",
        longest=one.longest,
        **facts,
    )


def _find_live_scene_problems(
    scene: Scene, talk: Talk, models: Mapping[str, TransformerConfig | None]
) -> Iterator[tuple[str, str]]:
    """What a scene that is to take sentences cannot do with them, all of it or in the file."""
    if not scene.live or scene.page not in PAGES:
        return
    if reason := explain_live_scene_obstacle(scene):
        yield "live", say("The scene takes no sentences and shows its own: {reason}.", reason=reason)
        return
    name = remove_template_from_model_name(find_scene_model(scene, talk, models))
    if models.get(name, ()) is None:
        yield (
            "live",
            say("{name} is no model that a file can hold: in One file the scene shows its own sentence.", name=name),
        )
    for one in list_ignored_live_parameters(scene):
        yield (
            f"view.{one}",
            say("In One file, sentences that are typed into this scene are shown without {name}.", name=one),
        )


def find_scene_trace_or_config(
    scene: Scene, talk: Talk, models: Mapping[str, TransformerConfig | None], beside: Mapping[str, AttachedFile]
) -> TransformerConfig | OpenedTrace | None:
    """Return the trace that a scene shows, or the configuration of its model: either says which heads there are."""
    file = beside.get(scene.trace)
    return (
        file
        if isinstance(file, OpenedTrace)
        else models.get(remove_template_from_model_name(find_scene_model(scene, talk, models)))
    )


def _select_valid_guess_choices(
    scene: Scene, talk: Talk, models: Mapping[str, TransformerConfig | None], beside: Mapping[str, AttachedFile]
) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    """What the audience can choose among, and what is wrong with the rest."""
    network = find_scene_trace_or_config(scene, talk, models, beside)
    found = {choice: find_choice_problem(choice, scene, network) for choice in scene.guess}
    choices = tuple(choice for choice, problem in found.items() if not problem)
    problems = [("guess", problem) for problem in found.values() if problem]
    if scene.guess and len(choices) < FEWEST_CHOICES:
        few = say("It takes {fewest} choices to guess, so the scene asks nothing.", fewest=FEWEST_CHOICES)
        return (), [*problems, ("guess", few)]
    return choices, problems


def _parse_number_or_zero(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
