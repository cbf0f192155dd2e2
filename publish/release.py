"""The files of a release in `dist/`: ``python -m publish.release``. The same commit gives the same bytes each time.

The wheel is made of the files of git, all else of the working tree: commit first. All bear the date of the commit.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
LIVE_FILE, TALK_FILE, SITE_FILE = "attenscope-live.html", "attenscope-talk.html", "attenscope-site.zip"
CHECKSUMS_FILE = "SHA256SUMS"
TALK = "viz/talk/talk.toml"
ZIP_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of every file in the site's archive: the earliest that a zip file can say."""


def run_module(*command: str, folder: Path = ROOT) -> None:
    """Run a command of this environment's Python in a folder, and end with its output where it fails."""
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def read_git(*arguments: str) -> bytes:
    """Return what git prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def set_build_environment() -> None:
    """Set what builds read: the date of the commit, and English, whatever the terminal speaks."""
    os.environ.setdefault("SOURCE_DATE_EPOCH", read_git("log", "-1", "--format=%ct").decode().strip())
    os.environ |= {
        "LANGUAGE": "en",
        "NO_MKDOCS_2_WARNING": "1",
        "STREAMLIT_LOGGER_LEVEL": "error",
    }


def build_wheel() -> None:
    """Write the wheel of what is committed."""
    options = ("--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(read_git("archive", "HEAD"))) as files:
            files.extractall(folder, filter="data")
        run_module("pip", "wheel", *options, "--wheel-dir", str(DIST), ".", folder=Path(folder))


def build_site() -> None:
    """Write the site as one archive."""
    with tempfile.TemporaryDirectory() as folder:
        run_module("mkdocs", "build", "--quiet", "--site-dir", folder)
        write_folder_archive(Path(folder), DIST / SITE_FILE)


def write_folder_archive(folder: Path, archive: Path) -> None:
    """Write a zip file of a folder, in the order of the names and without dates."""
    with zipfile.ZipFile(archive, "w") as out:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), ZIP_DATE)
                entry.external_attr = 0o644 << 16
                out.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)


def build_live_file() -> None:
    """Write the model in one file."""
    run_module("viz.export", "live", "--language", "en", str(DIST / LIVE_FILE))


def build_talk() -> None:
    """Write the talk that comes with the app in one file."""
    run_module("viz.export", TALK, str(DIST / TALK_FILE), "--language", "en")


def write_checksums() -> None:
    """Write the SHA-256 of every file, as ``sha256sum --check`` reads them."""
    files = sorted(path for path in DIST.iterdir() if path.name != CHECKSUMS_FILE)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (DIST / CHECKSUMS_FILE).write_text("".join(lines), encoding="utf-8")


BUILDERS = {"wheel": build_wheel, "site": build_site, "live": build_live_file, "talk": build_talk}


def main(names: Sequence[str]) -> None:
    """Write the files that are named, or all with their checksums, into an empty folder."""
    set_build_environment()
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    for name in names or BUILDERS:
        BUILDERS[name]()
    write_checksums()
    print((DIST / CHECKSUMS_FILE).read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
