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
assert attenscope.diagnosis.FAULTS
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


def copied(folder: Path) -> Path:
    """The project without what git does not keep; pip builds in the folder that it installs from."""
    project = folder / "project"
    for part in ("model", "viz/figures"):
        shutil.copytree(ROOT / part, project / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, project / name)
    return project


def install(python: str, project: Path, *arguments: str) -> None:
    command = [python, "-m", "pip", "install", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
    done = subprocess.run([*command, *arguments, str(project)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def run(python: str, script: str, folder: Path, **environment: str) -> str:
    """The script, in a folder outside the project."""
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model" / "__init__.py").write_text("MINE = True\n", encoding="utf-8")
    (folder / "script.py").write_text(script, encoding="utf-8")
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | environment
    done = subprocess.run(
        [python, "script.py"], cwd=folder, env=clean, capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_every_package_of_the_model_is_installed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    folders = {"attenscope": ROOT / "model", "attenscope.figures": ROOT / "viz" / "figures"}
    packages = {
        ".".join((name, *path.parent.relative_to(folder).parts))
        for name, folder in folders.items()
        for path in folder.rglob("__init__.py")
    }
    assert set(settings["packages"]) == packages


@pytest.mark.walk
def test_a_stranger_installs_records_draws_and_judges(tmp_path: Path) -> None:
    site, folder = tmp_path / "site", tmp_path / "elsewhere"
    folder.mkdir()
    install(sys.executable, copied(tmp_path), "--no-deps", "--no-index", "--target", str(site))
    assert {path.name for path in site.iterdir() if "-" not in path.name} == {"attenscope"}
    run(sys.executable, SCRIPT, folder, PYTHONPATH=str(site))
    assert "future-visible" in run(sys.executable, WITHOUT_TOKENIZER, folder, PYTHONPATH=str(site))
    assert "plotly, which is not installed here: pip install plotly" in run(
        sys.executable, WITHOUT_PLOTLY, folder, PYTHONPATH=str(site)
    )


@pytest.mark.slow
def test_an_environment_of_its_own_keeps_its_torch(tmp_path: Path) -> None:
    """With pip resolving the package's own bounds against what is there, and no index to fetch anything from."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    # The setuptools that comes with Python 3.11 is older than the project asks for; the borrowed one is not.
    subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "setuptools"], check=True)
    here = Path(sysconfig.get_path("purelib"))
    there = subprocess.check_output([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True)
    (Path(there.strip()) / "borrowed.pth").write_text(f"{here}\n", encoding="utf-8")
    install(python, copied(tmp_path), "--no-index")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    assert Path(run(python, SCRIPT, folder)).is_relative_to(here)
