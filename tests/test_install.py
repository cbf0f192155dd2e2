"""``pip install path/to/this/project`` in somebody else's environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.constraints import CONSTRAINTS, format_constraints, list_direct_pins, list_pulled_in, read_pins

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.timeout(600)  # a busy machine takes a minute to import torch
SCRIPT = '''
"""A stranger's script, in a folder that has a package called model of its own."""
import sys
import model  # the stranger's own
assert model.MINE
import torch
from torch import nn
import attenscope

net = nn.Transformer(16, 4, 2, 2, 32, batch_first=True).eval()
x, y = torch.randn(1, 5, 16), torch.randn(1, 4, 16)
tokens = {"source": list("abcde"), "target": list("wxyz")}
with attenscope.capture_attention(net, tokens=tokens) as capture:
    net(x, y, tgt_mask=net.generate_square_subsequent_mask(4))
trace = capture.trace
trace.save("my.safetensors")
assert attenscope.AttentionTrace.load("my.safetensors").cross.key_tokens == tuple("abcde")
figure = attenscope.figures.heatmap(trace.decoder, layer=0, head=3)
assert "layer 1, head 4" in figure.layout.title.text
assert attenscope.diagnose(**capture.arrays("decoder"), meant="causal", map="decoder").sound
from attenscope.masks.fault_catalogue import FAULTS
assert FAULTS
from attenscope.testing import assert_no_future_leak, assert_padding_ignored, mask_picture

class Leaky(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 8)
    def forward(self, ids):
        x = self.embedding(ids)
        return x + x.flip(1)

class Padded(nn.Module):
    """Absolute positions, padded at the right."""
    def __init__(self):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(9, 8), nn.Embedding(3, 8)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    def forward(self, ids):
        x = self.embedding(ids) + self.positions.weight[: ids.shape[1]]
        return self.encoder(x, src_key_padding_mask=ids == 0)

padded = Padded().eval()
assert_padding_ignored(padded, torch.tensor([[1, 2, 3], [4, 5, 6]]), embedding=padded.embedding)

leaky = Leaky()
try:
    assert_no_future_leak(leaky, torch.tensor([[1, 2, 3], [4, 5, 6]]), embedding=leaky.embedding)
except AssertionError as error:
    assert "B1" in str(error)
else:
    raise SystemExit("the leak was not found")
assert "model" in sys.modules and not hasattr(model, "capture")
print(torch.__file__)
'''
WITHOUT_TOKENIZER = """
import runpy, sys
for name in ("sentencepiece", "torch", "tqdm"):
    sys.modules[name] = None
import numpy
numpy.save("weights.npy", numpy.full((3, 3), 1 / 3))
for command, code in ((["diagnose", "weights.npy", "--meant", "causal"], 1), (["translate"], 2)):
    sys.argv = ["attenscope", *command]
    try:
        runpy.run_module("attenscope", run_name="__main__")
    except SystemExit as end:
        assert end.code == code, (command, end.code)
"""
WITHOUT_PLOTLY = """
import sys
sys.modules["plotly"] = None
import attenscope
assert "torch" not in sys.modules
try:
    attenscope.figures
except ImportError as error:
    print(error)
"""
COMMANDS = """
from attenscope.language import say, replace_commands_when_installed
print(replace_commands_when_installed("python -m model train --config"), say("Train one with `python -m model train`."))
"""
"""What people read of commands is what they can type."""
APP_PACKAGES = """
from attenscope.viz.command import list_app_packages
print(*list_app_packages())
"""
PAGES = """
import sys
import model  # the stranger's own
from pathlib import Path
from streamlit.testing.v1 import AppTest
from attenscope import viz

START = Path(viz.__file__).parent / "start" / "attenscope_app.py"
app = AppTest.from_file(str(START), default_timeout=300).run()
for page in ("", *sys.argv[1:]):
    if page:
        app.switch_page(str(Path(viz.__file__).parent / "pages" / page)).run()
    assert not app.exception, (page, app.exception)
    assert not app.error, (page, [one.value for one in app.error])
assert "viz" not in sys.modules and model.MINE and not hasattr(model, "trace")
from attenscope.translate import available
print(*available())
"""


def copied(folder: Path) -> Path:
    """The project without what git does not keep; pip builds in the folder that it installs from."""
    project = folder / "project"
    for part in ("model", "viz", ".streamlit", "checkpoints"):
        shutil.copytree(
            ROOT / part,
            project / part,
            ignore=shutil.ignore_patterns("__pycache__", "node_modules", "preset-*"),
        )
    for name in ("app.py", "setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, project / name)
    return project


def install(python: str, project: Path, *arguments: str) -> None:
    command = [python, "-m", "pip", "install", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
    done = subprocess.run([*command, *arguments, str(project)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def run(python: str, script: str, folder: Path, *arguments: str, **environment: str) -> str:
    """The script, in a folder outside the project."""
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model" / "__init__.py").write_text("MINE = True\n", encoding="utf-8")
    (folder / "script.py").write_text(script, encoding="utf-8")
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | environment
    done = subprocess.run(
        [python, "script.py", *arguments],
        cwd=folder,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_the_extra_for_the_app_names_what_it_needs() -> None:
    """requirements.txt pins the same packages, with what every use of the package needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = {line.partition("==")[0] for line in (ROOT / "requirements.txt").read_text().splitlines() if "==" in line}
    extra = [Requirement(line) for line in project["optional-dependencies"]["app"]]
    assert {one.name for one in extra} | set(project["dependencies"]) == pinned


def test_what_the_requirements_pull_in_is_pinned() -> None:
    """On this machine: another build of torch or another version of Python may pull in more."""
    pinned = read_pins(CONSTRAINTS)
    assert CONSTRAINTS.read_text(encoding="utf-8") == format_constraints(dict(sorted(pinned.items())))
    assert not set(pinned) & set(list_direct_pins())
    unpinned = {name: found for name, found in list_pulled_in().items() if pinned.get(name) != found}
    assert not unpinned, "python -m tests.constraints pins what is installed; make test installs what is pinned"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the project is installed without what it depends on."""
    folder = tmp_path_factory.mktemp("installed")
    install(sys.executable, copied(folder), "--no-deps", "--no-index", "--target", str(folder / "site"))
    return folder / "site"


@pytest.mark.sweep
def test_what_is_installed_is_what_was_tested(site: Path) -> None:
    """Every module, byte by byte, under the name that it has in the checkout."""
    installed = {path.relative_to(site / "attenscope"): path for path in (site / "attenscope").rglob("*.py")}
    here = {path.relative_to(ROOT / "model"): path for path in (ROOT / "model").rglob("*.py")}
    here |= {path.relative_to(ROOT): path for path in (ROOT / "viz").rglob("*.py")}
    here[Path("viz", "start", "attenscope_app.py")] = ROOT / "app.py"
    assert set(installed) == set(here)
    assert [str(name) for name, path in here.items() if path.read_bytes() != installed[name].read_bytes()] == []


@pytest.mark.sweep
def test_the_installed_package_knows_what_the_app_needs(site: Path, tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extra = [Requirement(line) for line in project["optional-dependencies"]["app"]]
    needed = {one.name for one in extra if one.marker is None}
    assert set(run(sys.executable, APP_PACKAGES, tmp_path, PYTHONPATH=str(site)).split()) == needed


@pytest.mark.sweep
def test_a_stranger_installs_records_draws_judges_and_opens_the_app(site: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    assert {path.name for path in site.iterdir() if "-" not in path.name} == {"attenscope", "bin"}
    run(sys.executable, SCRIPT, folder, PYTHONPATH=str(site))
    assert "future-visible" in run(sys.executable, WITHOUT_TOKENIZER, folder, PYTHONPATH=str(site))
    assert "plotly, which is not installed here: pip install plotly" in run(
        sys.executable, WITHOUT_PLOTLY, folder, PYTHONPATH=str(site)
    )
    assert "attenscope train --config" in run(sys.executable, COMMANDS, folder, PYTHONPATH=str(site))
    pages = run(sys.executable, PAGES, folder, "training.py", PYTHONPATH=str(site))
    assert pages == "everyday-en-de everyday-zh-en"
    for name in ("snapshots", "*written*"):  # of a training; they stay in the project
        assert not [*site.glob(f"attenscope/checkpoints/*/{name}")]


def environment(folder: Path) -> tuple[str, Path]:
    """A new environment's Python, which finds the packages of this one, and where these are."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = str(folder / "venv" / "bin" / "python")
    # The setuptools that comes with Python 3.11 is older than the project asks for; the borrowed one is not.
    subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "setuptools"], check=True)
    here = Path(sysconfig.get_path("purelib"))
    there = subprocess.check_output([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True)
    (Path(there.strip()) / "borrowed.pth").write_text(f"{here}\n", encoding="utf-8")
    return python, here


@pytest.mark.slow
def test_an_environment_of_its_own_keeps_its_torch(tmp_path: Path) -> None:
    """With pip resolving the package's own bounds against what is there, and no index to fetch anything from."""
    python, here = environment(tmp_path)
    install(python, copied(tmp_path), "--no-index")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    assert Path(run(python, SCRIPT, folder)).is_relative_to(here)
