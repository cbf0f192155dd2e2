"""A checkpoint folder comes back as it was, and a damaged or mixed-up one is refused by the name of its fault."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load, save

from attenscope.checkpoint.load import (
    ARCHITECTURE_KEY,
    CHECKPOINTS_FOLDER,
    CONFIG_FILE,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    CheckpointError,
    find_checkpoint_folder,
    hash_architecture,
    list_checkpoints,
    load_checkpoint,
    parse_config,
    read_checkpoint_config,
    save_checkpoint,
    unique_weights,
)
from attenscope.network.config import PRESETS, make_preset_config
from attenscope.network.transformer import Transformer
from attenscope.text.tokenizer import Tokenizer
from tests import toy

SIZES = {"d_model": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 24, "max_length": 20}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small sound checkpoint."""
    save_checkpoint(toy.checkpoint(toy.random_model(**SIZES)), tmp_path / "small", torch.float32)
    return tmp_path / "small"


@pytest.mark.parametrize("name", PRESETS)
def test_round_trip(name: str, tmp_path: Path) -> None:
    vocabulary = {"vocab_size": toy.VOCABULARY, "target_vocab_size": toy.VOCABULARY}
    model = Transformer(make_preset_config(name, **{**SIZES, **vocabulary})).eval()
    saved = toy.checkpoint(model)
    save_checkpoint(saved, tmp_path / "small", torch.float32)
    loaded = load_checkpoint(tmp_path / "small")
    assert loaded.model.config == model.config
    assert loaded.card == saved.card
    assert loaded.name == "small"
    assert loaded.hash == hashlib.sha256((tmp_path / "small" / WEIGHTS_FILE).read_bytes()).hexdigest()[:12]
    assert loaded.tokenizer.model == saved.tokenizer.model
    assert not loaded.model.training
    source, target = torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7]])
    torch.testing.assert_close(loaded.model(source, target), model(source, target))
    weights = model.state_dict()
    assert all(torch.equal(one, weights[name]) for name, one in loaded.model.state_dict().items())


@pytest.mark.parametrize(
    ("shared", "tied", "names"), [(True, True, 1), (True, False, 2), (False, True, 2), (False, False, 3)]
)
def test_tied_and_shared_weights_are_stored_once_and_stay_tied(
    shared: bool, tied: bool, names: int, tmp_path: Path
) -> None:
    model = toy.random_model(**SIZES, shared_embedding=shared, tied_generator=tied)
    save_checkpoint(toy.checkpoint(model), tmp_path, torch.float32)
    stored = load((tmp_path / WEIGHTS_FILE).read_bytes())
    assert sum(tensor.shape == (toy.VOCABULARY, 16) for tensor in stored.values()) == names
    assert set(stored) == set(unique_weights(model))
    loaded = load_checkpoint(tmp_path).model
    assert (loaded.source_embedding.table is loaded.target_embedding.table) == shared
    assert (loaded.generator.weight is loaded.target_embedding.table.weight) == tied


def test_positions_are_not_stored_unless_learned(tmp_path: Path) -> None:
    for positions, expected in (("sinusoidal", 0), ("sinusoidal_pad_row", 0), ("learned", 2)):
        save_checkpoint(toy.checkpoint(toy.random_model(**SIZES, positions=positions)), tmp_path / positions)
        stored = load((tmp_path / positions / WEIGHTS_FILE).read_bytes())
        assert sum("positional_encoding" in name for name in stored) == expected


def test_half_precision_halves_the_file_and_loads_as_float32(tmp_path: Path) -> None:
    model = toy.random_model(**SIZES)
    for dtype in (torch.float32, torch.float16):
        save_checkpoint(toy.checkpoint(model), tmp_path / str(dtype), dtype)
    whole, half = ((tmp_path / str(dtype) / WEIGHTS_FILE).stat().st_size for dtype in (torch.float32, torch.float16))
    assert half < 0.6 * whole
    loaded = load_checkpoint(tmp_path / "torch.float16").model
    for name, parameter in unique_weights(loaded).items():
        assert parameter.dtype == torch.float32
        assert torch.equal(parameter, unique_weights(model)[name].half().float())


def change(name: str, edit: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).write_bytes(edit((folder / name).read_bytes()))

    return damage


def redescribe(edit: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """Change config.json."""

    def damage(folder: Path) -> None:
        described = json.loads((folder / CONFIG_FILE).read_text())
        edit(described)
        if ARCHITECTURE_KEY in described.get("sha256", {}):
            described["sha256"][ARCHITECTURE_KEY] = hash_architecture(described["model"])
        (folder / CONFIG_FILE).write_text(json.dumps(described))

    return damage


def rehash(name: str, edit: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Change a file and let the configuration vouch for it: what lies behind the hash is checked, too."""

    def damage(folder: Path) -> None:
        data = edit((folder / name).read_bytes())
        (folder / name).write_bytes(data)
        redescribe(lambda described: described["sha256"].update({name: hashlib.sha256(data).hexdigest()}))(folder)

    return damage


def flip(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def without_first(data: bytes) -> bytes:
    weights = load(data)
    weights.pop(min(weights))
    return save(weights)


def narrower(data: bytes) -> bytes:
    weights = load(data)
    name = "encoder.final_norm.weight"
    return save({**weights, name: weights[name][:-1].clone()})


def with_value(value: float) -> Callable[[bytes], bytes]:
    """The weights with a number that no training leaves behind."""

    def edit(data: bytes) -> bytes:
        weights = load(data)
        weights["encoder.final_norm.weight"][3] = value
        return save(weights)

    return edit


def whole_numbers(data: bytes) -> bytes:
    weights = load(data)
    name = "encoder.final_norm.weight"
    return save({**weights, name: weights[name].long()})


def in_8_bits(data: bytes) -> bytes:
    weights = load(data)
    name = "encoder.final_norm.weight"
    return save({**weights, name: weights[name].to(torch.float8_e4m3fn)})


def of_type(name: str, bits: int) -> Callable[[bytes], bytes]:
    """A file of one tensor whose numbers torch has no type for."""
    size = 4 * bits // 8
    header = json.dumps({"weight": {"dtype": name, "shape": [4], "data_offsets": [0, size]}}).encode()
    return lambda _: len(header).to_bytes(8, "little") + header + bytes(size)


def other_tokenizer(_: bytes) -> bytes:
    return Tokenizer.train([side for pair in toy.sentences(50) for side in pair], 60).model


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (change(WEIGHTS_FILE, flip), r"model\.safetensors is damaged or belongs to another checkpoint: its hash"),
        (change(WEIGHTS_FILE, lambda data: data[:-1]), r"model\.safetensors is damaged"),
        (change(TOKENIZER_FILE, flip), r"tokenizer\.model is damaged"),
        (change(TOKENIZER_FILE, other_tokenizer), r"tokenizer\.model is damaged or belongs to another"),
        (lambda folder: (folder / WEIGHTS_FILE).unlink(), r"small has no readable model\.safetensors: No such file"),
        (lambda folder: (folder / TOKENIZER_FILE).unlink(), r"small has no readable tokenizer\.model"),
        (
            lambda folder: (folder / CONFIG_FILE).unlink(),
            r"small has no config\.json; a checkpoint is model\.safetensors",
        ),
        (change(CONFIG_FILE, lambda data: data[:-9]), r"config\.json cannot be read"),
        (change(CONFIG_FILE, lambda data: b"\xff" + data), r"config\.json cannot be read"),
        (change(CONFIG_FILE, lambda _: b"[" * 100_000), r"config\.json cannot be read"),
        (change(CONFIG_FILE, lambda _: b"[]"), 'must hold the objects "model", "card" and "sha256"'),
        (redescribe(lambda described: described.pop("card")), 'must hold the objects "model", "card" and "sha256"'),
        (redescribe(lambda described: described["sha256"].clear()), r"config\.json is damaged: the architecture"),
        (redescribe(lambda described: described["model"].update(heads=3)), r"config\.json: d_model \(16\) must be div"),
        (redescribe(lambda described: described["model"].update(depth=3)), "Unknown configuration fields: depth"),
        (
            redescribe(lambda described: described["model"].update(d_model=32)),
            r"has the shape .* but the configuration",
        ),
        (redescribe(lambda described: described["model"].update(encoder_layers=2)), "lacks 16 of the model's tensors"),
        (
            redescribe(lambda described: described["model"].update(qkv_bias=False)),
            "has 9 tensors the model does not know",
        ),
        (rehash(WEIGHTS_FILE, lambda data: data[:-1]), r"model\.safetensors is not a safetensors file"),
        (rehash(WEIGHTS_FILE, lambda _: b"not one"), r"model\.safetensors is not a safetensors file"),
        (rehash(WEIGHTS_FILE, without_first), "lacks 1 of the model's tensors, decoder.final_norm.bias first"),
        (
            rehash(WEIGHTS_FILE, narrower),
            r"encoder\.final_norm\.weight has the shape \(15,\), but the configuration asks",
        ),
        (rehash(WEIGHTS_FILE, with_value(float("nan"))), r"encoder\.final_norm\.weight holds NaN or infinite numbers"),
        (rehash(WEIGHTS_FILE, with_value(float("inf"))), r"encoder\.final_norm\.weight holds NaN or infinite numbers"),
        (rehash(WEIGHTS_FILE, whole_numbers), r"encoder\.final_norm\.weight holds int64, not floating-point numbers"),
        (
            rehash(WEIGHTS_FILE, in_8_bits),
            r"final_norm\.weight is 'float8_e4m3fn'; it must be one of 'float16', 'bfloat16', 'float32', 'float64'",
        ),
        (rehash(WEIGHTS_FILE, of_type("F4", 4)), r"model\.safetensors is not a safetensors file: dtype 'F4'"),
        (rehash(WEIGHTS_FILE, of_type("F6_E2M3", 6)), r"model\.safetensors is not a safetensors file: dtype 'F6_E2M3'"),
        (rehash(WEIGHTS_FILE, of_type("F8_E8M0", 8)), r"model\.safetensors is not a safetensors file: dtype 'F8_E8M0'"),
        (
            redescribe(lambda described: described["model"].update(norm_eps=float("nan"))),
            r"config\.json: norm_eps is nan",
        ),
        (
            change(CONFIG_FILE, lambda data: data.replace(b'"pre"', b'"post"')),
            "the architecture is not the one whose hash",
        ),
        (
            redescribe(lambda described: described["model"].update(encoder_layers=10**9)),
            "encoder_layers is 1,000,000,000",
        ),
        (
            redescribe(lambda described: described["model"].update(d_model=10**9)),
            "d_model is 1,000,000,000; it is at most",
        ),
        (redescribe(lambda described: described["model"].update(max_length=10**9)), "max_length is 1,000,000,000"),
        (
            redescribe(lambda described: described["model"].update(d_model=2**16, encoder_layers=1024)),
            r"model\.safetensors has [\d,]+ numbers, but the configuration asks for at least",
        ),
        (
            redescribe(lambda described: described["model"].update(max_length=2**20, d_model=128)),
            r"model\.safetensors has [\d,]+ numbers, but the configuration asks for at least 134,217,728",
        ),
        (rehash(TOKENIZER_FILE, lambda _: b"not one"), "tokenizer file is not a SentencePiece model"),
        (rehash(TOKENIZER_FILE, other_tokenizer), "the tokenizer has 60 pieces, but the model was built for 160"),
    ],
)
def test_a_damaged_folder_is_refused_by_the_name_of_its_fault(
    folder: Path, damage: Callable[[Path], None], says: str
) -> None:
    damage(folder)
    with pytest.raises(CheckpointError, match=says):
        load_checkpoint(folder)


def test_a_field_nested_too_deep_to_be_said_is_refused(folder: Path) -> None:
    facts, deep = read_checkpoint_config(folder), list[Any]()
    for _ in range(100_000):
        deep = [deep]
    facts["model"]["norm_order"] = deep
    with pytest.raises(CheckpointError, match=r"small/config\.json: "):
        parse_config(folder, facts)


def test_a_target_vocabulary_of_another_size_is_refused(tmp_path: Path) -> None:
    model = toy.random_model(**SIZES, shared_embedding=False, target_vocab_size=200)
    save_checkpoint(toy.checkpoint(model), tmp_path / "small")
    with pytest.raises(CheckpointError, match="the tokenizer has 160 pieces, but the model was built for 200"):
        load_checkpoint(tmp_path / "small")


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(CheckpointError, match=r"There is no checkpoint 'nonsense'\. Give a folder, or one of: "):
        load_checkpoint("nonsense")


def test_available_are_the_folders_with_a_configuration(folder: Path) -> None:
    (folder.parent / "empty").mkdir()
    (folder.parent / "file").write_text("")
    assert list_checkpoints(folder.parent) == ["small"]


def test_a_folder_that_is_no_checkpoint_does_not_hide_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "everyday-en-de").mkdir()
    assert find_checkpoint_folder("everyday-en-de") == CHECKPOINTS_FOLDER / "everyday-en-de"
    (tmp_path / "empty").mkdir()
    assert find_checkpoint_folder("empty") == Path("empty")
