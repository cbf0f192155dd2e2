"""The controls that pages share: the sentence, the model, the head, the look, and a given translation."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.analysis.heads import HeadPlace
from attenscope.checkpoint.card import CheckpointSummary, group_by_direction
from attenscope.checkpoint.load import CheckpointError
from attenscope.decoding.greedy_and_sampling import DecodingStep
from attenscope.language import format_number, join_sentences, say, to_say
from attenscope.runnable_model import (
    CHAT_TEMPLATE,
    NO_TEMPLATE,
    Ability,
    InputError,
    LocalError,
    LocalModel,
    RunnableModel,
    Translation,
    remove_template_from_model_name,
)
from attenscope.text.words import LANGUAGE_NAMES
from attenscope.trace import Head, Kind, Sizes
from attenscope.translate import Translator
from attenscope.viz.figures.figure_style import SCALE_NAMES, Look, format_signed, quote_token
from attenscope.viz.figures.heatmap import ROW_LABEL_NAMES, RowLabel
from attenscope.viz.serving.middleware import NO_FILES_TEXT, ServerSettings
from attenscope.viz.ui import cache, style
from attenscope.viz.ui.address import (
    ChoiceParameter,
    NumberParameter,
    Parameter,
    keep_parameters_across_pages,
)
from attenscope.viz.ui.addresses.shared import (
    CHANGES,
    COLOURS,
    GIVEN_TRANSLATION,
    HEAD,
    KIND,
    LAYER,
    MODEL,
    READ_GIVEN,
    ROWS,
    SCALE,
    SENTENCE,
)
from attenscope.viz.ui.captions import choose_model, draw_caption, escape_markdown, escape_message
from attenscope.viz.ui.current_sentence import list_example_sentences, put_model_sentence, put_welcome_sentence
from attenscope.viz.web.maps import EVERY_LAYER, PlaceListener, draw_transformer
from attenscope.viz.web.page_components import can_audience_type_sentence, is_presenting, submit_on_enter

# Controls that return a plain value, which is kept in the address and in the session.


MAX_EARLIER_SENTENCES = 12
MAX_BUTTON_CHARACTERS = 70
"""Characters of an earlier sentence that its button shows."""
KIND_ORDER: tuple[Kind, ...] = ("encoder", "cross", "decoder")
"""Keys come to cross-attention from the left, queries from the right."""


def draw_examples_menu(model: RunnableModel) -> None:
    """Draw a menu of sentences that a model can read, but its welcome; nothing where there are none."""
    if len(list_example_sentences(model.card)) < 2:
        return
    with st.container(key="examples", width="content"):
        menu = draw_examples_menu_container()
    if menu:
        with menu:
            draw_example_sentences(model)


def draw_examples_menu_container() -> DeltaGenerator | None:
    """Draw the menu of examples, which closes once one is chosen; see :func:`draw_menu`."""
    return draw_menu(say("Examples"), f"examples beside {SENTENCE.get()}", "example-list")


def draw_menu(label: str, key: str, list_key: str) -> DeltaGenerator | None:
    """Draw a menu; return where its list is drawn, or None while it is closed.

    It closes as soon as its `key` is another: a key names what is chosen in it.
    """
    menu = st.popover(label, type="tertiary", key=key, on_change="rerun")
    if not menu.open:
        return None
    with menu:
        return st.container(key=list_key)


def draw_sentence_and_model_controls(
    beside: Callable[[RunnableModel], None] = draw_examples_menu,
    draw_examples: Callable[[RunnableModel], None] | None = None,
) -> tuple[RunnableModel, str]:
    """Draw the sentence box, earlier sentences and the model choice; return the model and the sentence.

    :mod:`.current_sentence` says what the box holds at first, and with another model.

    `beside` draws what stands beside the choice of the model, `draw_examples` draws examples before it.
    """
    keep_parameters_across_pages(MODEL, SENTENCE)
    box = st.container(key="sentence-box")
    with st.container(key="try", horizontal=True, vertical_alignment="center", gap="small"):
        chips = st.container(key="chips", horizontal=True, gap="small")
        earlier = st.container(key="earlier", width="content")
        terms = st.container(key="terms", width="content")
        model = _draw_model_choice()
        put_model_sentence(model.name, model.card)
        beside(model)
        with terms:
            _draw_licence_note(model)
    with earlier:
        _draw_earlier_sentences()
    if draw_examples:
        with chips:
            draw_examples(model)
    return model, _draw_sentence_field(box)


def draw_example_sentences(model: RunnableModel) -> None:
    """Draw sentences that a model can read, but its welcome."""
    for example in list_example_sentences(model.card)[1:]:
        st.button(escape_markdown(example), key=f"example-{example}", on_click=_choose_sentence, args=(example,))


def hide_sentence_box() -> None:
    """Leave the sentence box out of the page: for a view that no sentence changes. What is in it stays."""
    hidden = ":is(.st-key-sentence-box, .st-key-chips, .st-key-earlier, .st-key-examples) { display: none; }"
    style.add_fragment_style("without-sentence", hidden)


def get_encoder_only_model() -> LocalModel | None:
    """The model of the command line that is chosen, where it only reads; None for one that writes."""
    return cache.find_encoder_only_model(_get_model_name())


def _get_model_name() -> str:
    names = cache.list_models()
    return MODEL.get() if remove_template_from_model_name(MODEL.get()) in names else next(iter(names), "")


def draw_encoder_sentence_box() -> str:
    """Draw the sentence box for a model that only reads; return the sentence."""
    keep_parameters_across_pages(MODEL, SENTENCE)
    box = st.container(key="sentence-box")
    with st.container(key="try", horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(key="earlier", width="content"):
            _draw_earlier_sentences()
        draw_untranslated_choice(st.selectbox, say("Model"), _list_model_names(), width=215, **MODEL.binding)
    put_welcome_sentence({})
    return _draw_sentence_field(box)


def draw_model_choice() -> None:
    """Draw the list of models, beside one that reads no text: the sentence stays for the others."""
    keep_parameters_across_pages(MODEL)
    SENTENCE.hold()
    draw_untranslated_choice(st.selectbox, say("Model"), _list_model_names(), width=215, **MODEL.binding)


def is_text_fixed() -> bool:
    """Return whether what the model reads stands as text, and not in a box: in a scene that nobody types into."""
    return is_presenting() and not can_audience_type_sentence()


def _draw_sentence_field(place: DeltaGenerator) -> str:
    """The sentence box itself."""
    with place:
        if is_text_fixed():
            return draw_fixed_text(SENTENCE.get())
        hint = say("Type a sentence and press Enter")
        # No default: an emptied box is in the address too, as an empty sentence, and not the welcome.
        return sentence_input(say("Sentence"), SENTENCE, value=None, placeholder=hint, label_visibility="collapsed")


def draw_fixed_text(text: str) -> str:
    """Draw the sentence of a scene on the whole screen as text, in as many lines as it needs."""
    with st.container(key="sentence"):
        st.html(f'<p dir="auto">{html.escape(text)}</p>')
    return text


def require_translation(model: RunnableModel, text: str) -> Translation:
    """Return the translation of `text`; end the page with a message when it cannot be translated."""
    try:
        found = cache.compute_translation(model.name, text)
    except InputError as error:
        st.info(escape_message(str(error)))
        st.stop()
    _remember_sentence(text)
    return found


def draw_attention_head_selector(sizes: Sizes, *, heads: bool = True, shows_default: bool = False) -> Head:
    """Draw the Transformer, in which it is chosen which attention is looked at.

    Args:
        sizes: How many layers and heads each kind of attention has.
        heads: Whether heads are offered; False where tiles or a picture offer them.
        shows_default: Whether layer 1 and head 1 stand in the address as well.

    Returns:
        The kind of attention, the last of `sizes` until one is chosen, and the layer and the head, from 0.
    """
    kind = _sync_attention_kind(sizes)
    layers, count = sizes[kind]
    layer = LAYER.hold(range(1, layers + 1), shows_default=shows_default) - 1
    head = HEAD.hold(range(1, count + 1), shows_default=shows_default) - 1
    draw_transformer_selector((kind, layer, head), sizes, choose_attention_head, heads=heads)
    return kind, layer, head


def draw_layer_choice(sizes: Sizes) -> tuple[Kind, int]:
    """As :func:`draw_attention_head_selector`, where what is looked at is the same for all heads of a layer."""
    kind = _sync_attention_kind(sizes)
    layer = LAYER.hold(range(1, sizes[kind][0] + 1)) - 1
    draw_transformer_selector((kind, layer, 0), sizes, choose_attention_head, heads=False)
    return kind, layer


def draw_attention_kind_selector(sizes: Sizes) -> Kind:
    """As :func:`draw_layer_choice`, where all layers of a kind of attention are looked at together."""
    kind = _sync_attention_kind(sizes)
    if len(sizes) > 1:
        draw_transformer_selector((kind, EVERY_LAYER, 0), sizes, choose_attention_head, heads=False)
    return kind


def draw_transformer_selector(
    place: Head,
    sizes: Sizes,
    on_pick: PlaceListener,
    *,
    heads: bool = True,
    key: str = "transformer",
) -> None:
    """Draw the Transformer with a place marked; nothing where there is only one to choose."""
    kind = place[0]
    layers = {kind: sizes[kind][0] for kind in KIND_ORDER if kind in sizes}
    if len(layers) == layers[kind] == 1 and not heads:
        return
    names = {kind: KIND.label(kind) for kind in layers}
    draw_transformer(layers, place, names, heads=sizes[kind][1] if heads else 0, key=key, on_pick=on_pick)


def _sync_attention_kind(kinds: Collection[Kind]) -> Kind:
    """The chosen kind of attention, or the last; one that is chosen and not there comes back with another model."""
    chosen = KIND.get()
    shown = KIND.hold((tuple(kinds)[-1], *kinds))
    if chosen not in kinds:
        st.session_state[KIND.key] = chosen
    return shown


def choose_attention_head(kind: Kind | None, layer: int | None, head: int | None) -> None:
    """Look at another kind of attention, layer or head; for callbacks."""
    if kind is not None:
        KIND.set(kind)
    if layer is not None:
        LAYER.set(layer + 1)
    if head is not None:
        HEAD.set(head + 1)


def draw_model_changes_note(changes: str) -> None:
    """Draw which changes to the model a page shows, "" where they are left out, and the button that undoes them."""
    with st.container(key="changed", horizontal=True, vertical_alignment="center"):
        draw_caption(describe_model_changes(changes))
        st.button(say("Undo all changes"), key="undo", type="tertiary", on_click=CHANGES.reset)


def describe_model_changes(changes: str) -> str:
    """Return which changes to the model are made, in the words of the address."""
    if not changes:
        return say("The changes are left out.")
    count = changes.count(",") + 1
    if count < 4:
        return say("Of the changed model: {changes}.", changes=changes)
    return say("Of the changed model: {count} changes.", count=count)


def set_layer_and_head(layer: int, head: int) -> None:
    """Set the layer and head, counted from 0; for callbacks."""
    st.session_state[LAYER.key], st.session_state[HEAD.key] = layer + 1, head + 1


AUTO_SELECTED_HEAD = "auto-selected head"
"""The session key of the model, the sentence and the head that a page itself has chosen last."""
NO_HEAD: HeadPlace = (-1, -1)
"""In its place where the visitor has chosen the head."""


def remember_auto_selected_head(model: str, identity: str, place: HeadPlace) -> None:
    """Remember that a page, and not the visitor, has chosen a head of a sentence."""
    st.session_state[AUTO_SELECTED_HEAD] = model, identity, place


def sync_look_settings() -> tuple[Look, RowLabel]:
    """How pictures are coloured and their rows named, as chosen in :func:`draw_look_settings`; kept in the address."""
    rows = ROWS.hold()
    return Look(style.get_palette(), COLOURS.hold(), SCALE.hold()), rows


def draw_look_settings() -> None:
    """Draw the choices of how pictures are coloured and their rows named."""
    sync_look_settings()
    more: dict[str, Any] = {"horizontal": True}
    draw_untranslated_choice(
        st.radio,
        say("Decoder rows are named by the token"),
        ROWS.options,
        format_func=lambda one: say(ROW_LABEL_NAMES[one]),
        **ROWS.synced_widget_arguments | more,
    )
    draw_untranslated_choice(
        st.radio,
        say("Colour grows with the weight"),
        SCALE.options,
        format_func=lambda one: say(SCALE_NAMES[one]),
        **SCALE.synced_widget_arguments | more,
    )
    draw_untranslated_choice(st.radio, say("Colours"), COLOURS.options, **COLOURS.synced_widget_arguments | more)


def _draw_model_choice() -> RunnableModel:
    names = _list_model_names()
    if not names:
        st.info(say("There is no trained model yet. Train one with `python -m model train`, then reload this page."))
        st.stop()
    name = draw_untranslated_choice(st.selectbox, say("Model"), names, width=215, **MODEL.binding)
    chosen = cache.load_command_line_model(name)
    if isinstance(chosen, LocalError):
        st.error(escape_markdown(str(chosen)))
        st.stop()
    if isinstance(chosen, LocalModel):
        st.info(
            escape_markdown(
                say(
                    "{model} only reads, and writes nothing: look at it on Explore, or choose another here.", model=name
                )
            )
        )
        st.stop()
    try:
        return cache.load_runnable_model(name)
    except CheckpointError as error:
        st.error(escape_message(str(error)))
        st.stop()


def _list_model_names() -> list[str]:
    """Return the names of all models that can be chosen; draw why models of the command line could not be loaded."""
    for problem in cache.list_command_line_errors():
        st.error(escape_markdown(problem))
    chosen = MODEL.get()
    return [chosen if name == remove_template_from_model_name(chosen) else name for name in cache.list_models()]


PREFIX_CHOICE, TEMPLATE_SWITCH = "prompt prefix", "chat template"
"""Session keys of what is put before a text, and of whether the chat template is applied."""


def draw_prompt_template_choice() -> None:
    """Draw how the chosen model is given a text, where it can be given it in several ways."""
    model = cache.load_command_line_model(_get_model_name())
    if not isinstance(model, RunnableModel) or len(model.prompt_templates) < 2:
        return

    def choose(name: str) -> None:
        st.session_state[MODEL.key] = model.with_prompt_template(name).name

    applied = model.prompt_template
    if CHAT_TEMPLATE in model.prompt_templates:
        st.session_state[TEMPLATE_SWITCH] = applied == CHAT_TEMPLATE
        switch = lambda: choose(CHAT_TEMPLATE if st.session_state[TEMPLATE_SWITCH] else NO_TEMPLATE)  # noqa: E731
        st.toggle(say("Apply the chat template"), key=TEMPLATE_SWITCH, on_change=switch)
        return
    st.session_state[PREFIX_CHOICE] = applied
    draw_untranslated_choice(
        st.selectbox,
        say("Task prefix"),
        model.prompt_templates,
        format_func=lambda name: say("none") if name == NO_TEMPLATE else name,
        key=PREFIX_CHOICE,
        on_change=lambda: choose(st.session_state[PREFIX_CHOICE]),
    )


def require_ability(model: RunnableModel, ability: Ability) -> RunnableModel:
    """Return the model if it has the ability that a page needs; otherwise end the page with a message."""
    if not model.can(ability):
        st.info(escape_markdown(model.cannot(ability)))
        st.stop()
    return model


def require_project_translator(model: RunnableModel, ability: Ability) -> Translator:
    """The same for an ability that only models of this project have."""
    require_ability(model, ability)
    assert isinstance(model, Translator)
    return model


def draw_model_list() -> None:
    """The models by direction, folded away: what each is, its size and its score; one can be chosen here as well."""
    groups = group_by_direction(cache.load_model_summaries(), LANGUAGE_NAMES)
    if not groups:
        return
    with st.expander(say("Models")), st.container(key="model-list"):
        for group, found in groups.items():
            st.markdown(f"**{escape_markdown(group)}**")
            for one in found:
                key = f"model {one.name}"
                st.button(escape_markdown(one.name), key=key, type="tertiary", on_click=choose_model, args=(one.name,))
                draw_caption(model_summary_text(one))


def model_summary_text(one: CheckpointSummary) -> str:
    """What a model is, how large, and how well it translates, as far as its folder says."""
    score = one.score
    return join_sentences(
        say("{title}.", title=one.title) if one.title else "",
        say("{millions:.1f} M parameters.", millions=one.parameters / 1e6),
        say("{bleu:.1f} BLEU on {set}, beam {beam}.", bleu=score.bleu, set=score.set, beam=score.beam) if score else "",
    )


def _draw_licence_note(model: RunnableModel) -> None:
    """Beside the choice: what a model may not be used for, if anything."""
    licence = str(model.card.get("licence", ""))
    if "non-commercial" in licence.lower():
        st.caption(escape_markdown(licence[:MAX_BUTTON_CHARACTERS]))


def _draw_earlier_sentences() -> None:
    current = st.session_state.get(SENTENCE.key)
    earlier = [one for one in st.session_state.get("history", []) if one != current]
    if not earlier:
        return
    # Keyed by the sentence, so that the list closes once another one is chosen.
    with st.popover(say("Earlier"), type="tertiary", key=f"earlier than {current}"):
        for at, text in enumerate(earlier):
            shown = text if len(text) <= MAX_BUTTON_CHARACTERS else text[: MAX_BUTTON_CHARACTERS - 1] + "…"
            st.button(
                escape_markdown(shown), key=f"earlier-{at}", type="tertiary", on_click=_choose_sentence, args=(text,)
            )


def _remember_sentence(text: str) -> None:
    others = [one for one in st.session_state.get("history", []) if one != text]
    st.session_state["history"] = [text, *others][:MAX_EARLIER_SENTENCES]


def _choose_sentence(text: str) -> None:
    st.session_state[SENTENCE.key] = text


# Widgets whose values stand in the address; choices are keys, shown in the words of the visitor's language.


T = TypeVar("T")
CHOICE_WORDS = "words of choices"
"""The session key of a mapping from a widget's key to the words in which the browser shows what is chosen."""


def draw_untranslated_choice(
    draw: Callable[..., Any],
    label: str,
    options: Sequence[Any],
    *rest: Any,
    key: str,
    on_change: Callable[..., None] | None = None,
    **more: Any,
) -> Any:
    """Draw a choice, such as `st.selectbox`, among options that are the same in every language.

    `format_func` says them in the visitor's. A browser sends back the words that it shows, and Streamlit 1.67 does not
    tell it that these have changed, as in another language or of the pieces of another sentence: the value is set anew
    then, so that the browser gets its new words. What it still sends of options that are gone, as of a talk before
    Undo, is a text, and no choice.
    """
    words = more.get("format_func", str)

    def say_chosen() -> list[str]:
        found = st.session_state.get(key)
        return [words(one) for one in (found if isinstance(found, list) else [found]) if one in options]

    def choose_option(*given: Any) -> None:
        found = st.session_state[key]
        chosen = found if isinstance(found, list) else [found]
        if on_change and (more.get("accept_new_options") or all(one in options for one in chosen)):
            on_change(*given)

    shown = st.session_state.setdefault(CHOICE_WORDS, {})
    if (said := say_chosen()) and shown.get(key, said) != said:
        st.session_state[key] = st.session_state[key]
    found = draw(label, options, *rest, key=key, on_change=on_change and choose_option, **more)
    shown[key] = say_chosen()
    return found


def segmented_control(label: str, of: ChoiceParameter[T], options: Sequence[T] | None = None, **more: Any) -> T:
    """One of the options side by side, the first where the default is missing; the label is for screen readers."""
    listed = of.options if options is None else tuple(options)
    of.hold(listed)
    return draw_untranslated_choice(
        st.segmented_control,
        label,
        listed,
        required=True,
        format_func=of.label,
        label_visibility="collapsed",
        **of.synced_widget_arguments | more,
    )


def view_control(
    of: ChoiceParameter[T], first: Sequence[T], impossible: Collection[T] = ()
) -> tuple[T, DeltaGenerator]:
    """The choice of a view: the `first` side by side with the chosen one, the rest folded into a menu.

    An `impossible` view is not offered, and shown where an address names it. Returns the view and the menu, in which a
    page puts what else is rare.
    """
    chosen = of.hold()
    listed, more = split_shown_and_menu_views(of.options, chosen, first, impossible)
    st.session_state[of.key] = chosen  # The list may be another than in the run before, and would forget it.
    found = segmented_control(say("View"), of, listed)
    # Keyed by the view, so that the menu closes once another one is chosen.
    with st.popover(say("More"), type="tertiary", key=f"more than {chosen}"):
        menu = st.container(key="more-views")
    with menu:
        draw_view_buttons(more, of.label, of.set)
    return found, menu


def split_shown_and_menu_views(
    views: Sequence[T], chosen: T, first: Sequence[T], impossible: Collection[T] = ()
) -> tuple[list[T], list[T]]:
    """Return the views that stand side by side, the `first` and the `chosen` one, and the rest, for a menu.

    An `impossible` view is in neither, unless it is chosen.
    """
    listed = [one for one in first if one == chosen or one not in impossible]
    listed += [chosen] if chosen not in listed else []
    return listed, [one for one in views if one not in (*listed, *impossible)]


def draw_view_buttons(views: Sequence[T], label: Callable[[T], str], choose: Callable[[T], None]) -> None:
    """Draw the views that a menu holds, a button each; a press calls `choose`."""
    for one in views:
        st.button(label(one), key=f"view {one}", type="tertiary", on_click=choose, args=(one,))


def selectbox(label: str, of: ChoiceParameter[T], options: Sequence[T] | None = None, **more: Any) -> T:
    """One of the options in a list; the first of them where the default is not there."""
    listed = of.options if options is None else tuple(options)
    of.hold(listed)
    return draw_untranslated_choice(
        st.selectbox, label, listed, format_func=of.label, **of.synced_widget_arguments | more
    )


def selectbox_with_default(label: str, of: Parameter[T | None], options: Sequence[T], default: T, **more: Any) -> T:
    """One of the options; until one is chosen it follows `default`, and the address says nothing.

    The parameter has a slot of its own, as its name is the widget's key.
    """
    chosen = of.hold()
    if chosen not in options:
        chosen = None
        of.show_in_address(None)
    shown = default if chosen is None else chosen
    st.session_state[of.name] = shown

    def choose() -> None:
        if st.session_state[of.name] != shown:  # As drawn it is reported after a run that was cut short.
            of.set(st.session_state[of.name])

    return draw_untranslated_choice(st.selectbox, label, options, key=of.name, on_change=choose, **more)


def number_input(label: str, of: NumberParameter[Any], default: Any = None, **more: Any) -> Any:
    """A number between the parameter's bounds, or narrower ones: `min_value`, `max_value`."""
    first = of.default if default is None else default
    of.follow_default(first)
    bounds = {"min_value": of.low, "max_value": of.high}
    found = st.number_input(label, value=first, **bounds | of.binding | more)
    return first if found is None else found


def toggle(label: str, of: Parameter[bool], **more: Any) -> bool:
    return st.toggle(label, of.default, **of.binding | more)


def sentence_input(label: str, of: Parameter[str], **more: Any) -> str:
    """A sentence in as many lines as it needs; Enter submits it, and a line break within is a space."""
    submit_on_enter(of.name)
    text = st.text_area(label, height="content", **of.binding | more)
    return " ".join((text or "").splitlines())


def text_input(label: str, of: Parameter[str], default: str | None = None, **more: Any) -> str:
    first = of.default if default is None else default
    of.follow_default(first)
    return st.text_input(label, first, **of.binding | more) or ""


def file_uploader(label: str, megabytes: int, **more: Any) -> Any:
    """A place for files of at most `megabytes` each, and at most what the server takes; a sentence where it takes none.

    What a file uploader of Streamlit returns: a file or None, with `accept_multiple_files` a list.
    """
    if ServerSettings.from_process_environment().read_only:
        st.caption(say(NO_FILES_TEXT))
        return [] if more.get("accept_multiple_files") else None
    return st.file_uploader(label, max_upload_size=min(megabytes, max_upload_megabytes()), **more)


def max_upload_megabytes() -> int:
    """The megabytes of a file that the server takes."""
    return int(st.get_option("server.maxUploadSize"))


# A given translation: where it is typed, and how probable the model finds it.


GIVEN_HINT = to_say("Type a translation: how probable is each of its tokens?")
GIVEN_LABELS = {"translation": to_say("Given translation"), "continuation": to_say("Given continuation")}
SURPRISING_BELOW = 0.05
"""A given token less probable than this is named."""
MAX_SURPRISING_TOKENS = 4
GIVEN_SENTENCE_KEY = "given-for"
"""Where the session has the sentence that the given translation belongs to."""


def draw_given_translation_field(sentence: str, own: str) -> str:
    """The text field for a given translation, which pages share.

    For a sentence without a given translation, or once it is emptied, it begins with the model's own, for the visitor
    to change.
    """
    state = st.session_state
    if GIVEN_TRANSLATION.key not in state:  # A link, or the browser's history, says what is given for this sentence.
        state[GIVEN_SENTENCE_KEY] = sentence
    if state.get(GIVEN_SENTENCE_KEY) != sentence or not GIVEN_TRANSLATION.get().strip():
        state[GIVEN_SENTENCE_KEY] = sentence
        GIVEN_TRANSLATION.put(own)
    GIVEN_TRANSLATION.restore_previous_page_value()
    return text_input(
        say("Given"), GIVEN_TRANSLATION, placeholder=say(GIVEN_HINT), label_visibility="collapsed"
    ).strip()


def is_given_translation_on(sentence: str) -> bool:
    """Whether a given translation is read instead of the model's own; a new sentence turns it off."""
    state = st.session_state
    if state.setdefault("given-of", sentence) != sentence:
        state["given-of"], state[READ_GIVEN.key] = sentence, False
    return READ_GIVEN.hold()


def draw_given_translation_toggle(sentence: str, what: str = "translation") -> bool:
    """The switch that has a given translation read instead of the model's own; `what` it writes, for its label."""
    is_given_translation_on(sentence)
    return st.toggle(say(GIVEN_LABELS[what]), **READ_GIVEN.synced_widget_arguments)


def set_given_translation(sentence: str, translation: str) -> None:
    """Have a translation of a sentence read, "" for the model's own; for callbacks."""
    state = st.session_state
    state["given-of"], state[READ_GIVEN.key] = sentence, bool(translation)
    if translation:
        state[GIVEN_SENTENCE_KEY], state[GIVEN_TRANSLATION.key] = sentence, translation


def draw_scored_given_translation_field(model: str, sentence: str, own: str) -> str:
    """The translation that a visitor types, with its probability under it; "" where it cannot be read."""
    given = draw_given_translation_field(sentence, own)
    try:
        draw_caption(describe_given_translation(cache.compute_teacher_forced(model, sentence, given).steps))
    except InputError as error:
        st.info(escape_message(str(error)))
        return ""
    return given


def describe_given_translation(steps: tuple[DecodingStep, ...]) -> str:
    """What the model thinks of a given translation: its probability, and the tokens that surprised it most."""
    total = sum(step.log_prob for step in steps)
    perplexity = math.exp(-total / len(steps))
    text = say(
        "Log-probability {total}, perplexity {perplexity:.1f} a token.",
        total=format_signed(total),
        perplexity=perplexity,
    )
    surprising = [step for step in steps if step.log_prob < math.log(SURPRISING_BELOW)]
    surprising.sort(key=lambda step: step.log_prob)
    if not surprising:
        nothing = say(
            "Nothing surprised the model: every token had a probability of {share:.0%} or more.", share=SURPRISING_BELOW
        )
        return join_sentences(text, nothing)
    parts = [_describe_surprising_token(step) for step in surprising[:MAX_SURPRISING_TOKENS]]
    if len(surprising) > MAX_SURPRISING_TOKENS:
        parts.append(say("and {count} more", count=len(surprising) - MAX_SURPRISING_TOKENS))
    return join_sentences(text, say("Surprising: {tokens}.", tokens=say("; ").join(parts)))


def _describe_surprising_token(step: DecodingStep) -> str:
    chance = math.exp(step.log_prob)
    return say(
        "{token} was its choice no. {rank:,} ({chance}), it would have written {best}",
        token=quote_token(step.token),
        rank=step.rank,
        chance=format_number(chance, ".2%") if chance >= 0.0001 else say("less than {share:.2%}", share=0.0001),
        best=quote_token(step.candidates[0].token),
    )
