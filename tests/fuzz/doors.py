"""Every door through which a person's input comes in: valid examples of it, and how it is read."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.numpy import save as save_arrays

from attenscope import viz
from attenscope.__main__ import COMMANDS
from attenscope.__main__ import main as command_line
from attenscope.atlas.files import AtlasError
from attenscope.atlas.heads_over_training import TIMELINE_FILE as TIMELINE
from attenscope.atlas.heads_over_training import TimelineError, read_timeline
from attenscope.atlas.pruning import PRUNING_FILE as PRUNING
from attenscope.atlas.pruning import PruningError, read_pruning
from attenscope.atlas.query import open_atlas
from attenscope.checkpoint.load import (
    CHECKPOINTS_FOLDER,
    CONFIG_FILE,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    CheckpointError,
    load_checkpoint,
    save_checkpoint,
    sha256_hex,
)
from attenscope.checkpoint.recipe import RECIPE_FILE, Recipe
from attenscope.interventions.changes import parse_changes
from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.arrays import DiagnosisError, assign_roles
from attenscope.masks.diagnosis_checks import diagnose_arrays
from attenscope.masks.read_files import read_array_file
from attenscope.masks.read_text import name_array, read_printed_tensors
from attenscope.masks.rule import RuleError, build_meaning_mask
from attenscope.runnable_model import InputError
from attenscope.translate import Translator
from attenscope.untrusted_trace import OpenError, read_uploaded_trace
from attenscope.viz.talk import file
from attenscope.viz.ui.addresses.page_registry import PAGES
from attenscope.word_alignment.gold import GOLD_FOLDER, LINKS_FILE, GoldError, read_gold
from attenscope.word_alignment.measure import ALIGNMENT_FILE as ALIGNMENT
from attenscope.word_alignment.measure import AlignmentError, read_alignment_rates
from tests import toy

Read = Callable[[bytes], object]
VIZ = Path(viz.__file__).parent


class Door(NamedTuple):
    """One way in."""

    name: str
    good: tuple[bytes, ...]
    read: Read
    """Raises nothing but `allowed`."""
    allowed: tuple[type[Exception], ...] = ()


def doors() -> list[Door]:
    """All of them. The files that they need lie in a folder that is removed when the process ends."""
    translator = Translator(toy.checkpoint(toy.random_model(seed=1)))
    files = [(ending, good, _file_reader(ending)) for ending, good in _files().items()]
    commands = tuple(f"{name} --checkpoint x --json".encode() for name in COMMANDS)
    sentence = b"the old dog sees a red house today."
    return [
        Door("pasted arrays", _pasted(), _judged_text, (DiagnosisError,)),
        *(Door(f"mask file {ending}", (good,), read_file, (DiagnosisError,)) for ending, good, read_file in files),
        Door("trace", (_trace(translator),), lambda data: read_uploaded_trace("a.safetensors", data), (OpenError,)),
        Door("talk", ((VIZ / "talk" / "talk.toml").read_bytes(),), _talk),
        *_checkpoint_doors(),
        *_atlas_doors(),
        *_kept_doors(),
        Door("recipe", ((CHECKPOINTS_FOLDER / "everyday-en-de" / RECIPE_FILE).read_bytes(),), _recipe, (ValueError,)),
        Door("address", _addresses(), _address),
        Door(
            "changes",
            (b"cross.2.3:off, encoder.1.1:uniform, mask.cross.*.*.4:block",),
            _text(parse_changes),
            (ValueError,),
        ),
        Door("meaning", (b"causal and window 4", b"causal or not (window 3)"), _text(_meaning), (RuleError,)),
        Door("sentence", (sentence,), _text(translator.encode), (InputError,)),
        Door("command line", commands, _command),
    ]


def _text(read: Callable[[str], object]) -> Read:
    return lambda data: read(data.decode("utf-8", "replace"))


def _pasted() -> tuple[bytes, ...]:
    mask = torch.tril(torch.ones(4, 4)).bool()
    weights = torch.softmax(torch.randn(1, 2, 4, 4, generator=torch.Generator().manual_seed(1)), -1)
    texts = str(mask), f"weights = {weights}\nmask = {mask}", repr(mask.numpy()), "[[1, 0], [1, 1]]"
    return tuple(text.encode() for text in texts)


def _judged_text(data: bytes) -> object:
    """As the page does: an array without a name is what its values say that it is."""
    found = read_printed_tensors(data.decode("utf-8", "replace"))
    unnamed = found.pop("", None)
    return _judged(found if unnamed is None else {**name_array(unnamed, "array"), **found})


def _judged(arrays: dict[str, np.ndarray]) -> object:
    named, blocks = assign_roles(arrays)
    return diagnose_arrays(normalise_arrays(named, blocks=blocks))


def _files() -> dict[str, bytes]:
    random = np.random.default_rng(0)
    mask = np.tril(np.ones((4, 4), bool))
    weights = np.where(mask, random.random((1, 2, 4, 4)), 0).astype("f4")
    weights /= weights.sum(-1, keepdims=True)
    arrays = {"weights": weights, "mask": mask}
    npy, npz, pt = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.save(npy, mask)
    np.savez_compressed(npz, weights=weights, mask=mask)
    torch.save({name: torch.from_numpy(array) for name, array in arrays.items()}, pt)
    table = "\n".join(",".join(str(int(cell)) for cell in row) for row in mask)
    return {
        ".npy": npy.getvalue(),
        ".npz": npz.getvalue(),
        ".pt": pt.getvalue(),
        ".safetensors": save_arrays(arrays),
        ".json": json.dumps({name: array.tolist() for name, array in arrays.items()}).encode(),
        ".csv": table.encode(),
        ".txt": str(torch.from_numpy(mask)).encode(),
    }


def _file_reader(ending: str) -> Read:
    def found(data: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"mask{ending}"
            path.write_bytes(data)
            return [_judged(one.arrays) for one in read_array_file(path)]

    return found


def _trace(translator: Translator) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.safetensors"
        translator.translate("the old dog sees a red house today.").trace.save(path)
        return path.read_bytes()


def _talk(data: bytes) -> object:
    talk, _ = file.parse_talk(data.decode("utf-8", "replace"))
    return file.parse_talk(file.format_talk(talk))


def _checkpoint_doors() -> list[Door]:
    """A checkpoint with one file changed, and its hash with it: what a person makes who wants it to be loaded."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-checkpoint-"))
    save_checkpoint(toy.checkpoint(toy.random_model(seed=2)), folder / "good")

    def reader(name: str) -> Read:
        def found(data: bytes) -> object:
            with tempfile.TemporaryDirectory() as place:
                copy = shutil.copytree(folder / "good", Path(place) / "toy")
                (copy / name).write_bytes(data)
                if name != CONFIG_FILE:
                    facts = json.loads((copy / CONFIG_FILE).read_text())
                    facts["sha256"][name] = sha256_hex(data)
                    (copy / CONFIG_FILE).write_text(json.dumps(facts))
                return load_checkpoint(copy)

        return found

    return [
        Door(f"checkpoint {name}", ((folder / "good" / name).read_bytes(),), reader(name), (CheckpointError,))
        for name in (CONFIG_FILE, WEIGHTS_FILE, TOKENIZER_FILE)
    ]


def _atlas_doors() -> list[Door]:
    good = CHECKPOINTS_FOLDER / "preset-original" / "atlas"
    if not good.is_dir():
        return []
    manifest = json.loads((good / "atlas.json").read_text())
    name, model_hash = manifest["plan"]["model"], manifest["plan"]["model_hash"]

    def reader(changed: str) -> Read:
        def found(data: bytes) -> object:
            with tempfile.TemporaryDirectory() as place:
                copy = Path(shutil.copytree(good, Path(place) / "atlas", ignore=shutil.ignore_patterns("links")))
                (copy / "links").symlink_to(good / "links")
                (copy / changed).write_bytes(data)
                return open_atlas(copy, name, model_hash)

        return found

    return [
        Door(f"atlas {changed}", ((good / changed).read_bytes(),), reader(changed), (AtlasError,))
        for changed in ("atlas.json", "heads.parquet")
    ]


def _kept_doors() -> list[Door]:
    """What commands keep beside a checkpoint, and the links of a gold alignment."""
    folder = CHECKPOINTS_FOLDER / "everyday-en-de"
    readers: list[tuple[str, Callable[[Path, str, str], object], type[Exception]]] = [
        (ALIGNMENT, read_alignment_rates, AlignmentError),
        (PRUNING, read_pruning, PruningError),
        (TIMELINE, read_timeline, TimelineError),
    ]

    def reader(name: str, read_kept: Callable[[Path, str, str], object]) -> Read:
        def found(data: bytes) -> object:
            with tempfile.TemporaryDirectory() as place:
                (Path(place) / name).write_bytes(data)
                return read_kept(Path(place), "everyday-en-de", json.loads((folder / name).read_text())["model_hash"])

        return found

    def gold(data: bytes) -> object:
        with tempfile.TemporaryDirectory() as place:
            shutil.copytree(GOLD_FOLDER / "en-de", place, dirs_exist_ok=True)
            (Path(place) / LINKS_FILE).write_bytes(data)
            return read_gold(Path(place))

    return [
        *(
            Door(f"kept {name}", ((folder / name).read_bytes(),), reader(name, read_kept), (error,))
            for name, read_kept, error in readers
        ),
        Door("gold links", ((GOLD_FOLDER / "en-de" / LINKS_FILE).read_bytes(),), gold, (GoldError,)),
    ]


def _recipe(data: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / RECIPE_FILE
        path.write_bytes(data)
        return Recipe.load(path)


def _addresses() -> tuple[bytes, ...]:
    return b"layer=2&head=3&kind=cross&view=links&pin=cross.1.2.3", b"positions=128&width=0.5&seed=3&dims=0&at=366"


def _address(data: bytes) -> object:
    """Every parameter of every page, given any text of the address."""
    texts = [part.partition("=")[2] for part in data.decode("utf-8", "replace").split("&")]
    return [
        (one.value_of(text), one.understands([text]), one.write(one.value_of(text)))
        for page in PAGES.values()
        for one in page.parameters.values()
        for text in texts
    ]


def _meaning(text: str) -> object:
    return build_meaning_mask(text, 6, 6)


WORK = (["check"], ["align"], ["quality"])
"""Whole commands that run models that ship for seconds, as they are to do."""


def _command(data: bytes) -> object:
    """What a shell would pass on; a code, or the end of argparse, is an answer."""
    words = data.decode("utf-8", "replace").replace("\0", "").split()
    if words[:1] == ["train"] or words in WORK:
        return None
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            return command_line(words)
        except SystemExit as end:
            return end.code
