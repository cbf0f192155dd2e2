"""A visitor who does at random what the page offers, and holds after each step what no page may break.

A walk is a list of steps, each a mapping of plain values, so that it can be printed, kept and walked again. What is
done is drawn from a seed and from what the page offers at that moment; a control is known by the key that stands
nearest above it, its kind and its number among those, never by its words. See :mod:`tests.journeys.wander` for the
command line.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import time
import unicodedata
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.browser.steps import RESTS, TRAFFIC
from tests.journeys.hands import FILES, PASTES, SENTENCES

Step = dict[str, Any]
SCRIPT = (Path(__file__).parent / "wanderer.js").read_text(encoding="utf-8")
ROOT = Path(__file__).resolve().parents[2]
LOCALES = {"en": "en-GB", "de": "de-DE", "zh": "zh-CN"}
WIDTHS = (1440, 1280, 800, 390)
HEIGHT = 900
RESTS_WITHIN = 90_000
RUN_BEGINS_WITHIN = 1_000
PATIENCE = 3_000
"""How long a control may take until it can be clicked."""
FRESH_EVERY = 5
"""Steps between two looks at the present address as a stranger."""
LEAVES_STAGE = ("PageDown", "PageDown", "PageDown", "PageUp", "ArrowRight", "1", "c", "Escape", "Escape")
KEYS = ("ArrowRight", "ArrowDown", "ArrowLeft", "End", "Home", "Enter")
OFTEN = {
    "back": 0.08,
    "forward": 0.04,
    "reload": 0.02,
    "theme": 0.02,
    "width": 0.02,
    "key": 0.02,
    "nav": 0.1,
    "preferences": 0.04,
    "sentence": 0.07,
}
"""How often something is done that is no control, or a control with this key, where no menu is open."""
LEFT_BY_LINK = 0.25
"""How often what is typed is not sent by Enter, but by a click on a link to a page."""
OUT_OF_MENU = 0.4
"""How often an open menu is left: by Escape, by a link to a page, or by Back."""
PASSED_BY = {"stale", "overflow", "box gone", "another to a stranger", "another after back", "another after forward"}
"""Kinds of faults after which a walk goes on, where they are ignored."""
looks = itertools.count()


@dataclass(frozen=True)
class Fault:
    """Something that a step broke."""

    kind: str
    what: str
    """What it is about, without what differs from walk to walk: two faults of one kind with one `what` are the same."""
    detail: str = ""
    page: str = ""

    @property
    def name(self) -> str:
        return f"{self.kind}: {self.page}: {self.what}"


@dataclass
class Failure:
    """A fault, the steps that led to it, and how they were found."""

    fault: Fault
    steps: list[Step]
    seed: int
    at: int
    """The step of the walk that broke it, from 1."""
    reproduced: bool = False
    more: list[Fault] = field(default_factory=list)
    places: list[list[Step]] = field(default_factory=list)
    """For each step of the walk, what a new visitor does to stand where it was taken."""

    def tail(self, length: int) -> list[Step]:
        """The last steps, after what brings a new visitor to where they begin; all, where there are no more."""
        count = len(self.steps)
        return self.steps if length >= count else self.places[count - length] + self.steps[count - length :]

    def told(self) -> str:
        """The failure as a person can follow it, and as it can be walked again."""
        lines = [
            f"{self.fault.name}",
            *([f"  {self.fault.detail}"] if self.fault.detail else []),
            *(f"  also {one.name}" for one in self.more),
            f"  seed {self.seed}, step {self.at}; "
            + (f"the same in {len(self.steps)} steps:" if self.reproduced else "not reproduced by the last steps:"),
            *(f"  {number}. {told(step)}" for number, step in enumerate(self.steps, start=1)),
            f"  --replay '{json.dumps(self.steps, ensure_ascii=False)}'",
        ]
        return "\n".join(lines)


def told(step: Step) -> str:
    """A step in words."""
    do, value = step["do"], step.get("value")
    place = f"“{step.get('name', '')}” [{step.get('key', '')} · {step.get('kind', '')} {step.get('n', 0)}]"
    words = {
        "open": f"open {value}",
        "back": "Back",
        "forward": "Forward",
        "reload": "reload",
        "theme": f"switch the browser to {value} colours",
        "width": f"make the window {value} wide",
        "key": f"press {value}",
        "link": f"click the link to page {value}",
        "press": f"click {place}",
        "select": f"choose option {value} of {place}",
        "combobox": f"open {place} and take option {value}",
        "text": f"type {shortened(value)} into {place} and "
        + (f"click the link to page {step['link']}" if "link" in step else "press Enter"),
        "slide": f"press {value} on the slider {place}",
        "plot": f"click {place} at {value}",
        "file": f"upload {value} to {place}",
    }
    return words[do]


def shortened(text: Any, longest: int = 90) -> str:
    said = repr(text)
    return said if len(said) <= longest else f"{said[: longest - 20]}… ({len(str(text))} characters)"


def draw(rng: random.Random, offers: dict[str, Any], state: dict[str, Any], avoided: Collection[str] = ()) -> Step:
    """One step of what the page offers; each group of controls with a key is as likely as any other.

    Controls with a key that is `avoided`, and what `OFTEN` calls so, are left alone.
    """
    if state["stage"]:
        return {"do": "key", "value": rng.choice(LEAVES_STAGE)}
    groups: dict[str, list[dict[str, Any]]] = {}
    for one in offers["controls"]:
        if one["key"] not in avoided:
            groups.setdefault(one["key"], []).append(one)
    if not groups or (offers["folded"] and rng.random() < OUT_OF_MENU):
        ways = {"do": "key", "value": "Escape"}, {"do": "link", "value": rng.randrange(60)}, {"do": "back"}
        return rng.choice(ways if groups else ways[:1])
    if not offers["folded"] and (often := _often(rng, groups, state)) and often["do"] not in avoided:
        return often
    return _used(rng, rng.choice(groups[rng.choice(sorted(groups))]))


def _often(rng: random.Random, groups: dict[str, list[dict[str, Any]]], state: dict[str, Any]) -> Step | None:
    """What is done more often than one control among all: a step of `OFTEN`, where it is possible."""
    do = rng.choices([*OFTEN, ""], [*OFTEN.values(), 1 - sum(OFTEN.values())])[0]
    entry = state["entry"]
    if do in groups:
        return _used(rng, rng.choice(groups[do]))
    possible = {"back": entry["index"] > state["first"], "forward": entry["index"] < entry["count"] - 1}
    values: dict[str, Sequence[Any]] = {"theme": ("light", "dark"), "width": WIDTHS, "key": KEYS}
    if do in values:
        return {"do": do, "value": rng.choice(values[do])}
    return {"do": do} if do == "reload" or possible.get(do) else None


def _used(rng: random.Random, control: dict[str, Any]) -> Step:
    """How a control is used."""
    kind = control["kind"]
    values: dict[str, Callable[[], Any]] = {
        "press": lambda: None,
        "select": lambda: rng.randrange(max(1, control["options"])),
        "combobox": lambda: rng.randrange(12),
        "text": lambda: rng.choice(
            SENTENCES if control["key"] in ("sentence", "with-sentence") else SENTENCES + PASTES
        ),
        "slide": lambda: rng.choice(("ArrowRight", "ArrowLeft", "Home", "End")),
        "plot": lambda: [round(rng.uniform(0.05, 0.95), 2), round(rng.uniform(0.05, 0.95), 2)],
        "file": lambda: rng.choice(sorted(FILES)),
    }
    step = {"do": kind, **{name: control[name] for name in ("key", "kind", "n", "name")}, "value": values[kind]()}
    if kind == "text" and rng.random() < LEFT_BY_LINK:
        step["link"] = rng.randrange(100)
    return step


def rest(page: Page) -> None:
    """Wait until the script has ended, all that was asked is answered, and what came is drawn."""
    page.wait_for_function(
        f"(look) => ({RESTS})(look) && window.wanderer.drawn()", arg=next(looks), timeout=RESTS_WITHIN, polling=50
    )


def look_at_rest(page: Page) -> dict[str, Any]:
    """What stands on a page that rests."""
    rest(page)
    seen: dict[str, Any] = page.evaluate("() => window.wanderer.look()")
    if seen["stale"]:  # On a busy machine a run may begin after a moment in which all was quiet.
        page.wait_for_timeout(RUN_BEGINS_WITHIN)
        rest(page)
        seen = page.evaluate("() => window.wanderer.look()")
    return seen


class Visitor:
    """One browser context, what it has heard of errors, and what its history has shown."""

    def __init__(
        self, chromium: Browser, url: str, language: str, width: int, files: Path, theme: str = "light"
    ) -> None:
        self.url, self.files = url, files
        self.width, self.theme, self.language = width, theme, language
        self.heard: list[str] = []
        self.seen: dict[str, dict[str, Any]] = {}
        """By the browser's name of an entry of its history: what was shown there last."""
        self.shown: dict[str, Any] = {}
        """What the page showed after the step before."""
        self.first = 0
        scheme: Any = theme
        self.context: BrowserContext = chromium.new_context(
            base_url=url,
            viewport={"width": width, "height": HEIGHT},
            locale=LOCALES[language],
            color_scheme=scheme,
            reduced_motion="reduce",
        )
        self.context.add_init_script(TRAFFIC)
        self.context.add_init_script(SCRIPT)
        self.page: Page = self.context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.heard.append(f"{error}"))
        self.page.on("dialog", lambda dialog: dialog.dismiss())

    def _console(self, message: ConsoleMessage) -> None:
        # Below a page's own path Streamlit first looks for its server there, and is told that there is none.
        if message.type == "error" and "/_stcore/" not in message.location.get("url", ""):
            self.heard.append(message.text)

    def close(self) -> None:
        self.context.close()

    def rest(self) -> None:
        rest(self.page)

    def look(self) -> dict[str, Any]:
        seen: dict[str, Any] = self.page.evaluate("() => window.wanderer.look()")
        return seen | {"first": self.first}

    def offers(self) -> dict[str, Any]:
        found: dict[str, Any] = self.page.evaluate("() => window.wanderer.controls()")
        return found

    def act(self, step: Step) -> bool:
        """Do one step; False where its control is not there, or cannot be reached."""
        do: str = step["do"]
        value: Any = step.get("value")
        if do == "open":
            self.page.goto(value)
            self.page.wait_for_function("() => window.wanderer && navigation.currentEntry")
            self.first = self.page.evaluate("() => navigation.currentEntry.index")
        elif do == "back":
            if self.page.evaluate("() => navigation.currentEntry.index") <= self.first:
                return False
            self.page.go_back()
        elif do == "forward":
            self.page.go_forward()
        elif do == "reload":
            self.page.reload()
        elif do == "theme":
            self.theme = value
            self.page.emulate_media(color_scheme=value)
        elif do == "width":
            self.width = value
            self.page.set_viewport_size({"width": value, "height": HEIGHT})
        elif do == "key":
            self.page.keyboard.press(value)
        elif do == "link":
            return self._follow_link(value)
        else:
            return self._use(step)
        return True

    def _use(self, step: Step) -> bool:
        do: str = step["do"]
        value: Any = step.get("value")
        handle = self.page.evaluate_handle("(id) => window.wanderer.find(id) ?? null", step).as_element()
        if handle is None:
            return False
        if do == "press":
            handle.click(timeout=PATIENCE)
        elif do == "plot":
            box = handle.bounding_box() or {"width": 1, "height": 1}
            handle.click(timeout=PATIENCE, position={"x": box["width"] * value[0], "y": box["height"] * value[1]})
        elif do == "select":
            handle.press("Shift")  # The rule of the history waits for a key or a click, as a person makes.
            handle.select_option(index=value, timeout=PATIENCE)
        elif do == "combobox":
            handle.click(timeout=PATIENCE)
            self._take_option(value)
        elif do == "text":
            handle.fill(value, timeout=PATIENCE)
            if "link" not in step or not self._follow_link(step["link"]):
                handle.press("Enter" if step["key"] == "sentence" else "Control+Enter")
        elif do == "slide":
            handle.focus()
            handle.press(value)
        elif do == "file":
            handle.set_input_files(self.files / value)
        return True

    def _follow_link(self, number: int) -> bool:
        """Click a link to a page, which a box that is typed in is left by; whether there is one in reach."""
        links = self.page.get_by_test_id("stTopNavLink")
        if not links.count():
            return False
        with suppress(PlaywrightTimeout):
            links.nth(number % links.count()).click(timeout=PATIENCE)
            return True
        return False

    def _take_option(self, number: int) -> None:
        """One of the list that has opened, if it has any."""
        options = self.page.locator('[role="option"]')
        try:
            options.first.wait_for(timeout=1_000)
        except PlaywrightTimeout:
            self.page.keyboard.press("Escape")
        else:
            options.nth(number % options.count()).click(timeout=PATIENCE)


def letters(text: str) -> str:
    """As `letters` of wanderer.js."""
    return re.sub(r"</?s>|[\s␣▁\u2060-\u2069]", "", unicodedata.normalize("NFKC", text)).lower()


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[tuple[str, str]]:
    """What differs between two fingerprints: the part's key, and both texts there."""
    if one["page"].rstrip("/") != other["page"].rstrip("/"):
        return [("page", f"{one['page']} | {other['page']}")]
    found = []
    for key in sorted({*one["texts"], *other["texts"]}):
        here, there = one["texts"].get(key, ""), other["texts"].get(key, "")
        if here != there:
            found.append((key or "page's text", _parted(here, there)))
    both = sorted({*one["sketches"]} & {*other["sketches"]})
    apart = [key for key in both if not _alike(one["sketches"][key], other["sketches"][key])]
    return found + [(f"drawn {key}", "the canvases differ") for key in apart]


def _parted(here: str, there: str, around: int = 60) -> str:
    """Where two texts part, with a little around it."""
    at = next((at for at, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), min(len(here), len(there)))
    begin = max(0, at - around // 3)
    return f"“{here[begin : at + around]}” | “{there[begin : at + around]}”"


def _alike(one: Sequence[str], other: Sequence[str], most: float = 12.0) -> bool:
    if len(one) != len(other):
        return False
    for a, b in zip(one, other, strict=True):
        if a == b or not a or not b:
            continue
        apart = [abs(int(x) - int(y)) for x, y in zip(a.split(","), b.split(","), strict=True)]
        if max(apart) > 4 * most or sum(apart) / len(apart) > most:
            return False
    return True


def tracebacks(said: str) -> list[Fault]:
    """The tracebacks in a log that pass through the project's own files, as Python writes them or as rich does.

    Streamlit itself leaves a traceback of its own files when a visitor goes in the middle of a reply.
    """
    found = []
    for one in re.sub(r"\x1b\[[\d;]*m", "", said).split("Traceback (most recent call last)")[1:]:
        ours = re.findall(rf'{re.escape(str(ROOT))}/((?:app|model|viz)[\w/]*\.py)(?:", line |:)\d+,? in (\w+)', one)
        named = re.findall(r"^[\w.]*(?:Error|Exception|Warning|Interrupt)\b[^\n]*", one, re.MULTILINE)
        if ours:
            found.append(Fault("traceback", ":".join(ours[-1]), (named or ["?"])[0][:200]))
    return found


def _find_lost_preferences(before: dict[str, Any], seen: dict[str, Any], step: Step) -> list[Fault]:
    """A language or colours that have changed in a step that does not choose them."""
    if not before or before["stage"] or seen["stage"] or step.get("key") == "preferences":
        return []
    changed_by = {"language": ("open", "back", "forward"), "scheme": ("theme",)}
    return [
        Fault("preference lost", name, f"{before[name]} | {seen[name]} at {seen['url']}", seen["fingerprint"]["page"])
        for name, steps in changed_by.items()
        if before[name] != seen[name] and step["do"] not in steps
    ]


class Wanderer:
    """Walks, and holds after each step what no page may break."""

    def __init__(
        self,
        chromium: Browser,
        url: str,
        log: Path | None,
        files: Path,
        *,
        language: str = "en",
        width: int = 1440,
        fresh_every: int = FRESH_EVERY,
        avoided: Collection[str] = (),
    ) -> None:
        self.chromium, self.url, self.log, self.files = chromium, url, log, files
        self.language, self.width, self.fresh_every = language, width, fresh_every
        self.avoided = avoided
        self.read_to = log.stat().st_size if log and log.exists() else 0
        self.boxes: dict[str, bool] = {}
        """By page and view: whether a stranger who opens it sees a sentence box."""
        self.strangers: dict[tuple[Any, ...], Visitor] = {}
        self.steps_walked = 0
        self.fresh_looks = 0
        self.unreachable: dict[str, int] = {}
        self.tell: Callable[[Failure], None] = lambda failure: None
        """Hears of each failure at once, before it is shrunk."""

    # What is held.

    def _logged(self) -> list[Fault]:
        """Tracebacks of the project's own files that the server has written since the last look."""
        if self.log is None or not self.log.exists():
            return []
        with self.log.open("rb") as file:
            file.seek(self.read_to)
            said = file.read().decode(errors="replace")
        self.read_to += len(said.encode())
        return tracebacks(said)

    def _boxed(self, visitor: Visitor, seen: dict[str, Any]) -> list[Fault]:
        """Whether the sentence box is in sight exactly where a stranger sees it."""
        page = seen["fingerprint"]["page"]
        view = f"{page}?{seen['chosen']}"
        if seen["stage"] or seen["box"]["visible"] or not seen["box"]["there"]:
            return []
        # Of two sentences in one view, one may be hidden: who looks at the same address decides.
        if self.boxes.get(view, True) and self._stranger(visitor, seen)["box"]["visible"]:
            return [Fault("box gone", "sentence box", f"display none: {seen['box']['hidden']}; {seen['url']}", page)]
        return []

    def _stranger(self, visitor: Visitor, seen: dict[str, Any]) -> dict[str, Any]:
        """The present address, opened by somebody else with a window, a language and colours like the visitor's."""
        look = visitor.width, visitor.language, seen["scheme"]  # which may be chosen on the page
        if look not in self.strangers:
            width, language, theme = look
            self.strangers[look] = Visitor(self.chromium, self.url, language, width, self.files, theme)
        stranger = self.strangers[look]
        self.fresh_looks += 1
        stranger.page.goto(seen["url"])
        stranger.rest()
        shown = stranger.look()
        # What a browser keeps for its visitor would make the next stranger a friend.
        stranger.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        self.boxes[f"{shown['fingerprint']['page']}?{shown['chosen']}"] = shown["box"]["visible"]
        stranger.heard.clear()
        return shown

    def _fresh(self, visitor: Visitor, seen: dict[str, Any]) -> list[Fault]:
        """What a stranger sees otherwise at the present address."""
        if seen["stage"] or seen["own"] or "present=" in seen["url"]:
            return []
        shown = self._stranger(visitor, seen)
        apart = differences(seen["fingerprint"], shown["fingerprint"])
        if apart:  # Once more: either may have been a moment late.
            seen = look_at_rest(visitor.page)
            apart = differences(seen["fingerprint"], self._stranger(visitor, seen)["fingerprint"])
        return self._apart("another to a stranger", seen, apart)

    @staticmethod
    def _apart(kind: str, seen: dict[str, Any], apart: list[tuple[str, str]]) -> list[Fault]:
        if not apart:
            return []
        # The sentence says most, then the rest by name.
        apart.sort(key=lambda one: (one[0] != "page", one[0] != "sentence", one[0] != "model", one[0]))
        keys = ", ".join(re.sub(r"-\d+.*|example-.*", "", key) for key, _ in apart[:3])
        detail = "; ".join(f"{key}: {texts}" for key, texts in apart[:3])
        return [Fault(kind, keys, f"{detail} at {seen['url']}", seen["fingerprint"]["page"])]

    def check(self, visitor: Visitor, step: Step, fresh: bool) -> list[Fault]:
        """All that does not hold after a step."""
        try:
            seen = look_at_rest(visitor.page)
        except PlaywrightTimeout:
            why = visitor.page.evaluate("() => window.wanderer?.unrest() ?? ''")
            address = visitor.page.url.removeprefix(self.url)
            return [*self._logged(), Fault("no rest", why, address, address.split("?")[0])]
        try:
            return self._check_at_rest(visitor, seen | {"first": visitor.first}, step, fresh)
        except PlaywrightTimeout as error:
            return [*self._logged(), Fault("no rest", "opened by a stranger", str(error)[:80], visitor.page.url)]

    def _check_at_rest(self, visitor: Visitor, seen: dict[str, Any], step: Step, fresh: bool) -> list[Fault]:
        """All that does not hold after a step, of what is seen of a page that rests."""
        found = self._logged()
        heard, visitor.heard = visitor.heard, []
        found += [
            Fault("console", re.sub(r"https?://\S+|\d+", "·", one)[:100], one[:300], seen["fingerprint"]["page"])
            for one in heard
        ]
        found += find_faults(seen) + self._boxed(visitor, seen) + _find_lost_preferences(visitor.shown, seen, step)
        visitor.shown = seen
        entry = seen["entry"]["key"]
        if step["do"] in ("back", "forward") and entry in visitor.seen and not found and not seen["own"]:
            apart = differences(visitor.seen[entry], seen["fingerprint"])
            if apart:
                visitor.rest()
                apart = differences(visitor.seen[entry], visitor.look()["fingerprint"])
            found += self._apart(f"another after {step['do']}", seen, apart)
        if fresh and not found:
            found += self._fresh(visitor, seen)
        if seen["stage"] or seen["own"]:
            visitor.seen.pop(entry, None)
        else:
            visitor.seen[entry] = seen["fingerprint"]
        if step["do"] in ("theme", "width") or step.get("key") == "preferences":
            visitor.seen = {entry: seen["fingerprint"]}  # Elsewhere the words, colours and places were others.
        return found

    # Walks.

    def visitor(self) -> Visitor:
        return Visitor(self.chromium, self.url, self.language, self.width, self.files)

    def walk(self, seed: int, count: int, ignored: Callable[[Fault], bool], begin: str = "/") -> list[Failure]:
        """Walk `count` steps; after a failure a new visitor begins."""
        rng = random.Random(seed)
        failures: list[Failure] = []
        at = 0
        while at < count:
            at = self._until_failure(rng, seed, at, count, ignored, begin, failures)
        return failures

    def _until_failure(
        self,
        rng: random.Random,
        seed: int,
        at: int,
        count: int,
        ignored: Callable[[Fault], bool],
        begin: str,
        failures: list[Failure],
    ) -> int:
        visitor = self.visitor()
        steps: list[Step] = []
        places: list[list[Step]] = []
        """Before each step: what a new visitor does to stand there."""
        try:
            step: Step = {"do": "open", "value": begin}
            while at < count:
                places.append(
                    [{"do": "theme", "value": visitor.theme}] * (visitor.theme != "light")
                    + [{"do": "width", "value": visitor.width}] * (visitor.width != self.width)
                    + ([{"do": "open", "value": visitor.page.url.removeprefix(self.url)}] if steps else [])
                )
                found = self.step(visitor, step, fresh=at % self.fresh_every == self.fresh_every - 1)
                at += 1
                self.steps_walked += 1
                steps.append(step)
                if found:
                    wanted = [one for one in found if not ignored(one)]
                    if wanted:
                        failures.append(Failure(wanted[0], steps[:], seed, at, more=wanted[1:]))
                        failures[-1].places = places
                        self.tell(failures[-1])
                    if wanted or not {one.kind for one in found} <= PASSED_BY:
                        return at
                state = visitor.look()
                step = draw(rng, visitor.offers(), state, self.avoided)
        finally:
            visitor.close()
        return at

    def step(self, visitor: Visitor, step: Step, fresh: bool) -> list[Fault]:
        try:
            done = visitor.act(step)
        except PlaywrightError as error:
            done = False
            name = f"{step['do']} {step.get('key', '')}"
            self.unreachable[name] = self.unreachable.get(name, 0) + 1
            if "Target crashed" in str(error) or "has been closed" in str(error):
                return [Fault("crash", str(error)[:80])]
        return self.check(visitor, step, fresh and done)

    def replay(self, steps: Sequence[Step], wanted: Callable[[Fault], bool]) -> Fault | None:
        """Walk the steps as a new visitor; the first fault that is wanted."""
        visitor = self.visitor()
        self._logged()
        try:
            for number, step in enumerate(steps, start=1):
                for one in self.step(visitor, step, fresh=number == len(steps)):
                    if wanted(one):
                        return one
        finally:
            visitor.close()
        return None

    def shrink(self, failure: Failure, tries: int = 24, seconds: float = 180) -> Failure:
        """The failure with as few steps as are found in some tries: the last ones first, then without parts of them."""
        until = time.monotonic() + seconds
        budget = itertools.count()
        last = failure.fault

        def fails(steps: list[Step]) -> bool:
            nonlocal last
            if next(budget) >= tries or time.monotonic() > until:
                return False
            same = lambda one: one.kind == failure.fault.kind and one.what == failure.fault.what  # noqa: E731
            if found := self.replay(steps, same):
                last = found
            return found is not None

        steps, count = failure.steps, len(failure.steps)
        for length in (1, 2, 3, 5, 8, 13, 21, 34, 55):
            if length >= count:
                break
            tail = failure.tail(length)
            if fails(tail):
                steps = tail
                break
        else:
            length = count
        reproduced = steps is not failure.steps or fails(steps)
        if reproduced:
            steps = fewer(steps, fails)
        return Failure(last, steps, failure.seed, failure.at, reproduced, failure.more)

    def close(self) -> None:
        for one in self.strangers.values():
            one.close()


def fewer(steps: list[Step], fails: Callable[[list[Step]], bool]) -> list[Step]:
    """Delta debugging: leave out ever smaller parts as long as it fails without them; what opens a page stays."""
    first = next((at for at, one in enumerate(steps) if one["do"] == "open"), 0) + 1
    head, tail = steps[:first], steps[first:]
    size = max(1, len(tail) // 2)
    while tail:
        at = 0
        while at < len(tail):
            without = tail[:at] + tail[at + size :]
            if fails(head + without):
                tail = without
            else:
                at += size
        if size == 1:
            break
        size //= 2
    return head + tail


def find_faults(seen: dict[str, Any]) -> list[Fault]:
    """What is wrong with a page as it stands."""
    page = seen["fingerprint"]["page"]
    found = [Fault("error box", re.sub(r"[\d.]+|“[^”]*”", "·", one)[:80], one, page) for one in seen["errors"]]
    found += [Fault("drawn twice", one, "", page) for one in seen["twice"]]
    found += [Fault("stale", one, "drawn by a former run", page) for one in seen["stale"]]
    if seen["overflow"]:
        over = seen["overflow"]
        found.append(Fault("overflow", over["what"], f"{over['by']} px", page))
    return found + [Fault(kind, what, detail, page) for kind, what, detail in belonging(seen)]


PLAIN = re.compile(r"[A-Za-zÄÖÜäöüß ,.?!'’-]{1,120}")


def belonging(seen: dict[str, Any]) -> list[tuple[str, str, str]]:
    """What stands under the sentence and does not belong to it: kind, what, and both texts."""
    box, tokens = seen["box"], seen["tokens"]
    found: list[tuple[str, str, str]] = []
    text = box["text"].strip()
    if not box["visible"] or not PLAIN.fullmatch(text):
        return found
    said = letters(text)
    if tokens["source"] is not None and tokens["source"] != said:
        found.append(("another sentence's", "decode player", f"{said} | {tokens['source']}"))
    axes, translation = tokens["axes"], tokens["translation"]
    kind = re.search(r"(?:^|&)kind=(\d)", seen["chosen"])
    if not axes or kind is None or "…" in axes["row"] + axes["column"]:
        return found
    wanted = {"0": (said, said), "1": (translation, said), "2": (translation, translation)}[kind[1]]
    for axis, expected in zip(("row", "column"), wanted, strict=True):
        if expected is not None and axes[axis] != expected and len(axes[axis]) > 0:
            found.append(("another sentence's", f"heatmap's {axis}s", f"{expected} | {axes[axis]}"))
    return found
