"""The masks that each way applied, and the ways of a folder's model on a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from attenscope.mask_tests.backend_runs import PlainKernel
from attenscope.mask_tests.backends import compare_backends
from attenscope.mask_tests.sentence_backend_comparison import PAGE_WAYS, compare_text_backends
from attenscope.runnable_model import InputError
from tests import folders
from tests.model.mask_tests.backends.test_compare import GROUPED, INPUTS

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")  # of torch itself, when flex_attention runs uncompiled


@pytest.mark.parametrize("given", ["nothing", "causal", "bool", "float"])
def test_the_plain_kernel_is_that_of_torchs_own_switch(given: str) -> None:
    torch.manual_seed(0)
    q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8)
    keep = torch.rand(2, 1, 5, 5) < 0.7
    keep[..., 0] = True
    masks: dict[str, dict[str, Any]] = {
        "nothing": {},
        "causal": {"is_causal": True},
        "bool": {"attn_mask": keep},
        "float": {"attn_mask": torch.randn(5, 5), "scale": 0.3},
    }
    with PlainKernel():
        own = F.scaled_dot_product_attention(q, k, k, enable_gqa=True, **masks[given])
    with sdpa_kernel([SDPBackend.MATH]):
        switched = F.scaled_dot_product_attention(q, k, k, enable_gqa=True, **masks[given])
    assert torch.equal(own, switched)


@pytest.mark.slow
def test_every_way_shows_the_mask_that_it_applied() -> None:
    torch.manual_seed(0)
    model = transformers.MistralForCausalLM(transformers.MistralConfig(**GROUPED, sliding_window=3)).eval()
    found = compare_backends(model, INPUTS, ways=PAGE_WAYS, masks=True)
    place = np.arange(9)
    window = (place[:, None] >= place) & (place[:, None] - place < 3)
    real = 4
    np.testing.assert_array_equal(found.masks["decoder"][0][:real], window[:real])
    for name in ("eager", "sdpa math", "flex"):
        np.testing.assert_array_equal(found[name].masks["decoder"][:, :real], found.masks["decoder"][:, :real])
    for name in ("batch of one", "cache"):
        if "decoder" in found[name].masks:
            np.testing.assert_array_equal(found[name].masks["decoder"][0], window[:real, :real])
        else:
            assert found[name].no_masks
    packed, lengths = found["packed"].masks["decoder"][0], (9, 6, 4)
    document = np.repeat(np.arange(3), lengths)
    age = np.arange(sum(lengths))[:, None] - np.arange(sum(lengths))
    np.testing.assert_array_equal(packed, (document[:, None] == document) & (age >= 0) & (age < 3))
    assert not compare_backends(model, INPUTS, ways=["eager"]).masks


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "marian"])
def test_a_folder_is_compared_on_a_sentence(name: str, tmp_path: Path) -> None:
    from attenscope.user_model import load_user_model

    folders.FOLDERS[name](tmp_path / name)
    model: Any = load_user_model(f"hf:{tmp_path / name}")
    found = compare_text_backends(model, folders.SENTENCE)
    assert [one.name for one in found.results] == list(PAGE_WAYS)
    assert found.differing_results == ()
    assert set(found.masks) == ({"decoder"} if name == "gpt2" else {"encoder", "decoder", "cross"})
    ran = [one for one in found.results if one.status != "not run"]
    assert len(ran) >= 6
    assert all(one.masks for one in ran)
    with pytest.raises(InputError):
        compare_text_backends(model, "")
