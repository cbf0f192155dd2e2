"""The subcommand ``movie``: a film of a view or of a talk's scene, taken of it in Chromium, picture by picture."""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from attenscope.cli.translate_and_evaluate import WritableError, check_writable, write_output
from attenscope.language import add_language_option, join_sentences, say, use_language
from attenscope.viz.export import talk_html
from attenscope.viz.export.offline_html import build_talk_page
from attenscope.viz.figures.figure_style import DARK, LIGHT
from attenscope.viz.talk.attachments import read_talk_files_from_folder
from attenscope.viz.talk.file import parse_talk
from attenscope.viz.talk.scenes import Scene, Talk
from attenscope.viz.ui.addresses.page_registry import PAGES
from attenscope.viz.web.component_scripts import read_standalone_script

if TYPE_CHECKING:
    from attenscope.viz.export.parts import Slide

# Chromium without a window, driven over a pipe (the Chrome DevTools Protocol).


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Programs that are looked for, unless ``CHROMIUM`` names one."""
FLAGS = (
    *("--headless", "--remote-debugging-pipe", "--no-first-run", "--disable-sync", "--hide-scrollbars"),
    *("--force-color-profile=srgb", "--disable-gpu"),
)
READ_FD, WRITE_FD = 3, 4
"""Where Chromium reads what it is to do, and writes what it has done."""
SPARE_FD = 10
"""The lowest number for our own ends of the pipes, so that none is one of Chromium's."""


class BrowserError(RuntimeError):
    """There is no browser, or it did not do what it was to do; the text says what helps."""


class HeadlessPage:
    """One page of a browser that nobody sees."""

    def __init__(self, commands: int, replies: int) -> None:
        self._commands, self._replies = commands, replies
        self._unread, self._sent, self._session = b"", 0, ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result. Raises BrowserError."""
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        unwritten = json.dumps(message).encode() + b"\0"
        while unwritten:
            unwritten = unwritten[os.write(self._commands, unwritten) :]
        while (reply := self._read_protocol_message()).get("id") != self._sent:
            pass
        if "error" in reply:
            raise BrowserError(str(reply["error"].get("message")))
        result: dict[str, Any] = reply["result"]
        return result

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression of JavaScript, once it is there where it is a promise."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise BrowserError(str(found["exceptionDetails"].get("exception", {}).get("description", "")))
        return found["result"].get("value")

    def _read_protocol_message(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            read = os.read(self._replies, 1 << 20)
            if not read:
                raise BrowserError(say("The browser has ended before it was done."))
            self._unread += read
        message, _, self._unread = self._unread.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


def _find_browser() -> str:
    """Return the path of Chromium or Chrome. Raises BrowserError where there is none."""
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None or shutil.which(path) is None:
        raise BrowserError(say("No Chromium or Chrome was found: install it, or name it in CHROMIUM."))
    return path


@contextmanager
def _open_headless_page(width: int, height: int) -> Iterator[HeadlessPage]:
    """A page whose window is `width` x `height` pixels. Raises BrowserError."""
    path = _find_browser()
    if os.name == "nt":
        raise BrowserError(say("A browser is driven on Linux and macOS alone."))
    import fcntl  # Windows has none.

    (commands_read, commands), (replies, replies_write) = os.pipe(), os.pipe()
    ends = [fcntl.fcntl(one, fcntl.F_DUPFD, SPARE_FD) for one in (commands_read, replies_write)]
    for one in (commands_read, replies_write):
        os.close(one)

    def take_ends() -> None:
        os.dup2(ends[0], READ_FD)
        os.dup2(ends[1], WRITE_FD)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # Root has no sandbox, and what is drawn is our own file, which asks the network for nothing.
        more = ["--no-sandbox"] if os.geteuid() == 0 else []
        process = subprocess.Popen(
            [path, *FLAGS, *more, f"--user-data-dir={profile}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(READ_FD, WRITE_FD),
            preexec_fn=take_ends,
        )
        for one in ends:
            os.close(one)
        try:
            page = HeadlessPage(commands, replies)
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            page.call("Emulation.setDeviceMetricsOverride", **metrics)
            yield page
        finally:
            process.terminate()
            process.wait()
            os.close(commands)
            os.close(replies)


# The film.


STAGE_SIZE = (960, 540)
"""Pixels of a stage at 1x; a scene is laid out for so many (viz/web/src/stage/fit.js)."""
SIZES = {"720": 720 / 540, "1080": 2.0, "2160": 4.0}
"""Heights of films, each with the pixels that one of the stage has then."""
STILL_SECONDS, LAST_SECONDS = 3.0, 2.0
"""For how long a scene stands that does not move, and the last picture besides its own time."""

# What the page is asked. A component that moves has a `film` at its root: how many pictures, their seconds, show(at).
FIND_FILM = """window.filmOf = () => {
  const inside = (root) => [...root.querySelectorAll("*")];
  const within = (root) => [root, ...inside(root).flatMap(({ shadowRoot }) => shadowRoot ? within(shadowRoot) : [])];
  return within(document).flatMap(inside).find((one) => one.film)?.film;
};
const film = filmOf(); film ? { count: film.count, seconds: film.seconds } : null"""
READY = """(async () => {
  while (!document.body?.dataset.ready) await new Promise((done) => setTimeout(done, 30));
  await document.fonts.ready;
})()"""
UNOPERATED = """document.head.append(Object.assign(document.createElement("style"), {
  textContent: "nav, footer, .line .place { visibility: hidden; }" }))"""
PAINTED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
REVEAL = """document.dispatchEvent(new KeyboardEvent("keydown", { key: "PageDown", bubbles: true }))"""
ENCODE = """(async () => {
  const bytes = await (%s)({ kind: %s, pictures: %s, fill: "black" });
  return new Promise((done) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.split(",")[1]);
    reader.readAsDataURL(new Blob([bytes]));
  });
})()"""


@dataclass(frozen=True)
class FilmFrame:
    """One picture of a film, as PNG, and for how long it stands."""

    png: bytes
    seconds: float


def write_movie(arguments: Sequence[str]) -> int:
    """Write the film and print its length and size; return 1, with the reason printed, where it cannot be made."""
    given = build_movie_parser().parse_args(arguments)
    try:
        check_writable(given.out)
        _find_browser()  # Before anything takes long.
        talk_html.start_streamlit_runtime_without_server()
        with use_language(given.language):
            slide, palette = _build_slide(given), DARK if given.dark else LIGHT
            page = build_talk_page(slide.title, [slide], palette, date.today())
            frames, data = record_slide_film(page, given.out.suffix[1:], SIZES[given.height], covers=bool(slide.hide))
        write_output(given.out, data)
    except (WritableError, BrowserError, MovieError) as error:
        print(error, file=sys.stderr)
        return 1
    seconds = sum(one.seconds for one in frames)
    print(f"{given.out}: {seconds:.1f} s, {len(data) / 1e6:.1f} MB")
    return 0


class MovieError(ValueError):
    """What is asked for cannot be filmed; the text says why."""


def build_movie_parser() -> argparse.ArgumentParser:
    """Return the parser of the subcommand ``movie``."""
    parser = argparse.ArgumentParser(
        prog="python -m viz.export movie", description=say("A film of a view, or of a scene of a talk.")
    )
    parser.add_argument("view", help=say("the view's address, as /decode?sentence=..., or a talk, a TOML file"))
    parser.add_argument("out", type=_parse_film_path, help=say("the film to write, .webm or .gif"))
    parser.add_argument("--scene", type=int, default=1, metavar="N", help=say("which scene of the talk, from 1"))
    parser.add_argument("--height", choices=tuple(SIZES), default="1080", help=say("pixels that the film is high"))
    parser.add_argument("--dark", action="store_true", help=say("light ink on dark paper"))
    add_language_option(parser)
    return parser


def _parse_film_path(text: str) -> Path:
    path = Path(text)
    if path.suffix not in (".webm", ".gif"):
        raise argparse.ArgumentTypeError(say("{file} is to end in .webm or .gif", file=text))
    return path


def _build_slide(given: argparse.Namespace) -> Slide:
    """The scene as a slide of a file. Raises MovieError."""
    from attenscope.viz.ui import cache  # after the runtime is there, like everything that draws components

    talk, folder = read_single_scene_talk(given)
    (scene,) = talk.scenes
    beside, problems = read_talk_files_from_folder(talk, folder)
    palettes = [DARK if given.dark else LIGHT]
    (slide,) = talk_html.build_scene_slides(scene, talk, cache.load_model_configs(), palettes, beside)
    if slide.view is None:
        raise MovieError(join_sentences(*problems, slide.missing))
    title = scene.title or slide.view.title
    return replace(slide, title=title, live=None, guess=())


def read_single_scene_talk(given: argparse.Namespace) -> tuple[Talk, Path]:
    """A talk of the one scene that is filmed, and the folder of its files. Raises MovieError."""
    if not given.view.endswith(".toml"):
        url = urlsplit(given.view)
        page = url.path.strip("/") or "explore"
        if page not in PAGES:
            raise MovieError(say("There is no page {page!r}.", page=page))
        return Talk("", (Scene("", page, dict(parse_qsl(url.query, keep_blank_values=True))),)), Path()
    try:
        talk, _ = parse_talk(Path(given.view).read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise MovieError(say("{file} cannot be read as a talk: {reason}", file=given.view, reason=error)) from error
    if not 1 <= given.scene <= len(talk.scenes):
        facts = {"count": len(talk.scenes), "number": given.scene}
        raise MovieError(say("There is no scene {number}: the talk has {count}.", **facts))
    return replace(talk, scenes=(talk.scenes[given.scene - 1],)), Path(given.view).parent


def record_slide_film(page: str, kind: str, scale: float, *, covers: bool = False) -> tuple[list[FilmFrame], bytes]:
    """Return the pictures of a talk's page of one slide, and the film of them, a file of its `kind`: webm or gif.

    `covers` says that parts of it are hidden until the next key. A picture is what the browser shows of the page, and
    each step of what moves is one. Raises BrowserError.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "film.html"
        file.write_text(page, encoding="utf-8")
        pixels = [round(one * scale) for one in STAGE_SIZE]
        with _open_headless_page(*pixels) as browser:
            browser.call("Page.navigate", url=file.as_uri())
            browser.evaluate(READY)
            browser.evaluate(UNOPERATED)
            frames = _take_frames(browser, covers)
            pictures = [_encode_frame_as_data_url(one, pixels) for one in frames]
            script = ENCODE % (read_standalone_script("film"), json.dumps(kind), json.dumps(pictures))
            return frames, base64.b64decode(browser.evaluate(script))


def _encode_frame_as_data_url(frame: FilmFrame, pixels: Sequence[int]) -> dict[str, Any]:
    address = f"data:image/png;base64,{base64.b64encode(frame.png).decode()}"
    return {"address": address, "size": pixels, "seconds": frame.seconds}


def _take_frames(browser: HeadlessPage, covers: bool) -> list[FilmFrame]:
    def take(seconds: float) -> FilmFrame:
        browser.evaluate(PAINTED)
        shot = browser.call("Page.captureScreenshot", format="png", optimizeForSpeed=True)
        return FilmFrame(base64.b64decode(shot["data"]), seconds)

    frames = []
    if covers:
        frames.append(take(STILL_SECONDS))
        browser.evaluate(REVEAL)
    film = browser.evaluate(FIND_FILM)
    if film is None:
        return [*frames, take(STILL_SECONDS)]
    for at in range(film["count"]):
        browser.evaluate(f"filmOf().show({at})")
        last = LAST_SECONDS if at == film["count"] - 1 else 0
        frames.append(take(film["seconds"] + last))
    return frames
