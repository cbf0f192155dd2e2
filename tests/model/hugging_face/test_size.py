"""Size and precision of a folder's model: known before it is loaded, refused where it would not fit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from attenscope.experiments.lens import run_logit_lens
from attenscope.runnable_model import LocalError, RunnableModel
from attenscope.user_model import load_user_model
from tests.folders import SENTENCE

pytest.importorskip("transformers")
pytestmark = pytest.mark.timeout(600)  # a busy machine takes a minute to import transformers


def test_the_estimate_counts_every_weight(
    folder: Callable[[str], Path], opened: Callable[[str], RunnableModel]
) -> None:
    from attenscope.hugging_face.load import SPARE_BYTES, estimate_model_memory_bytes

    weights = sum(one.numel() for one in opened("llama").model.parameters())
    assert estimate_model_memory_bytes(folder("llama"), torch.float32) - SPARE_BYTES == 4 * weights
    assert estimate_model_memory_bytes(folder("llama"), torch.bfloat16) - SPARE_BYTES == 2 * weights


def test_quantised_weights_are_counted_as_they_are(tmp_path: Path) -> None:
    from attenscope.hugging_face.load import SPARE_BYTES, estimate_model_memory_bytes

    tensors = {"packed": torch.zeros(6, 5, dtype=torch.uint8), "scale": torch.zeros(6, dtype=torch.float16)}
    save_file(tensors | {"order": torch.zeros(3, dtype=torch.int32)}, tmp_path / "model.safetensors")
    assert estimate_model_memory_bytes(tmp_path, torch.float32) - SPARE_BYTES == 30 + 4 * 6 + 4 * 3


@pytest.mark.skipif(
    find_spec("gptqmodel") is not None or find_spec("optimum") is not None, reason="its library is there"
)
def test_a_quantised_folder_without_its_library_says_which_format_it_is(
    folder: Callable[[str], Path], tmp_path: Path
) -> None:
    shutil.copytree(folder("llama"), tmp_path / "llama")
    path = tmp_path / "llama" / "config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(settings | {"quantization_config": {"quant_method": "gptq", "bits": 4}}), "utf-8")
    with pytest.raises(LocalError, match="llama is quantised by gptq, and the library that reads such weights is not"):
        load_user_model(f"hf:{tmp_path / 'llama'}")


def test_the_same_weights_in_another_layout_are_not_counted(folder: Callable[[str], Path], tmp_path: Path) -> None:
    from attenscope.hugging_face.load import estimate_model_memory_bytes

    shutil.copytree(folder("llama"), tmp_path / "llama")
    shutil.copyfile(tmp_path / "llama" / "model.safetensors", tmp_path / "llama" / "consolidated.safetensors")
    assert estimate_model_memory_bytes(tmp_path / "llama", torch.float32) == estimate_model_memory_bytes(
        folder("llama"), torch.float32
    )


def test_a_folder_larger_than_memory_is_refused_before_it_is_loaded(
    folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from attenscope.hugging_face import load

    monkeypatch.setattr(load, "read_free_memory_bytes", lambda: load.SPARE_BYTES)
    monkeypatch.setattr(load, "_load_pretrained_model", lambda *_: pytest.fail("loaded"))
    with pytest.raises(LocalError, match=r"takes about .* GB in float32, and 0\.3 GB of memory are free"):
        load_user_model(f"hf:{folder('llama')}")


def test_free_memory_is_what_the_system_says() -> None:
    from attenscope.hugging_face.load import read_free_memory_bytes

    free = read_free_memory_bytes()
    assert free is not None
    assert 1e8 < free < 1e14


@pytest.mark.parametrize("name", ["gpt2", "marian"])
def test_a_folder_in_its_own_format(name: str, folder: Callable[[str], Path], tmp_path: Path) -> None:
    copy = tmp_path / name
    shutil.copytree(folder(name), copy)
    path = copy / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"dtype": "bfloat16"}))
    exact, coarse = (load_user_model(f"hf:{copy}{options}") for options in ("", "?dtype=own"))
    assert isinstance(exact, RunnableModel)
    assert isinstance(coarse, RunnableModel)
    assert {one.dtype for one in coarse.model.parameters()} == {torch.bfloat16}
    assert {one.dtype for one in exact.model.parameters()} == {torch.float32}
    found = exact.translate(SENTENCE, max_tokens=6)
    again = coarse.force(SENTENCE, found.target_ids)
    for one, other in zip(found.steps, again.steps, strict=True):
        assert one.log_prob == pytest.approx(other.log_prob, abs=0.5)
        assert one.log_prob != other.log_prob
    assert run_logit_lens(coarse, again).target_log_probs.shape[1] == 6


def test_a_format_that_is_none_is_said(folder: Callable[[str], Path]) -> None:
    with pytest.raises(LocalError, match="float32, bfloat16, float16, or in its own format, not in int3"):
        load_user_model(f"hf:{folder('gpt2')}?dtype=int3")
