"""A checkpoint packed for the engine, and the engine's own files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sentencepiece import sentencepiece_model_pb2

from attenscope.evaluation.quality import quantise_rows
from attenscope.runnable_model import RunnableModel
from attenscope.user_model import load_user_model
from attenscope.viz.engine.pack_checkpoint import (
    ENGINE_FOLDER,
    KERNEL_FILE,
    PackageError,
    check_tokenizer,
    describe_model,
    encode_half,
    pack_checkpoint,
)
from tests import folders, toy
from tests.viz.web.test_packing import unpack

MODULES = sorted(ENGINE_FOLDER.glob("*.js"))
NUMBERS = st.floats(-60_000, 60_000, width=16)


def test_a_package_holds_every_weight_once() -> None:
    checkpoint = toy.checkpoint(toy.random_model())
    header, body = unpack(pack_checkpoint(checkpoint, facts={"name": "toy"}))
    assert header["name"] == "toy"
    assert body[: header["tokenizer"][1]] == checkpoint.tokenizer.model
    end = header["tokenizer"][1]
    for one, (name, parameter) in zip(header["tensors"], checkpoint.model.named_parameters(), strict=True):
        assert (one["name"], tuple(one["shape"]), one["at"]) == (name, parameter.shape, end)
        end += one["length"]
        low, high = np.frombuffer(body[one["at"] : end], np.uint8).reshape(2, -1).astype(np.uint16)
        values = (low | high << 8).view("<f2").reshape(one["shape"])
        assert (values == parameter.detach().numpy().astype(np.float16)).all()
    assert end == len(body)


def test_bytes_of_half_precision_by_hand() -> None:
    assert encode_half(np.array([1.0, -2.0])) == bytes([0x00, 0x00, 0x3C, 0xC0])


@given(arrays(np.float32, (3, 5), elements=NUMBERS))
def test_no_number_is_farther_off_than_half_a_step(values: np.ndarray) -> None:
    scales, numbers = quantise_rows(values)
    assert (np.abs(numbers.astype(int)) <= 127).all()
    assert (np.abs(scales[:, None] * numbers - values) <= 0.501 * scales[:, None] + 1e-30).all()


def test_whole_numbers_take_half_the_room() -> None:
    checkpoint = toy.checkpoint(toy.random_model())
    tokenizer = len(checkpoint.tokenizer.model)
    sizes = [len(unpack(pack_checkpoint(checkpoint, form))[1]) - tokenizer for form in ("half", "int8")]
    assert 0.5 < sizes[1] / sizes[0] < 0.55


def test_other_tokenizers_are_refused() -> None:
    found = sentencepiece_model_pb2.ModelProto.FromString(toy.tokenizer().model)  # type: ignore[attr-defined]
    check_tokenizer(found.SerializeToString())
    found.trainer_spec.model_type = 1
    with pytest.raises(PackageError, match="no byte-pair vocabulary"):
        check_tokenizer(found.SerializeToString())
    found.trainer_spec.model_type = 2
    found.pieces[9].type = 4
    with pytest.raises(PackageError, match="symbols of its own"):
        check_tokenizer(found.SerializeToString())
    found.pieces[9].type = 1
    found.trainer_spec.treat_whitespace_as_suffix = True
    with pytest.raises(PackageError, match="spaces"):
        check_tokenizer(found.SerializeToString())


def test_a_folder_says_which_tokens_stand_for_no_text(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    model = load_user_model(f"hf:{folders.marian(tmp_path / 'marian', ('de', 'fr'))}?target=fr")
    assert isinstance(model, RunnableModel)
    header, _ = unpack(pack_checkpoint(describe_model(model)))
    assert header["vocabulary"]["special_tokens"] == sorted(model.tokenizer.special_tokens)
    assert {">>de<<", ">>fr<<", "</s>"} <= {*header["vocabulary"]["special_tokens"]}
    assert "<unk>" not in header["vocabulary"]["special_tokens"]


def test_the_kernel_is_its_source_assembled() -> None:
    wasmtime = pytest.importorskip("wasmtime")
    assert (
        bytes(wasmtime.wat2wasm((ENGINE_FOLDER / "kernel.wat").read_text(encoding="utf-8"))) == KERNEL_FILE.read_bytes()
    )
    assert KERNEL_FILE.stat().st_size < 1024


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_engine_knows_no_page(path: object) -> None:
    text = ENGINE_FOLDER.joinpath(str(path)).read_text(encoding="utf-8")
    for foreign in ("document", "window", "eval(", "Function(", "fetch("):
        assert foreign not in text
