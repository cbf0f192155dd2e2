"""Models that nobody here wrote, captured on the GPU under each kernel of torch, against the same on the CPU."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from attenscope.capture.attention import capture_attention
from attenscope.trace import AttentionTrace
from tests.model.capture.any_model.test_hugging_face import built, inputs

pytestmark = pytest.mark.gpu
NAMES = ("MarianMTModel", "T5ForConditionalGeneration", "GPT2LMHeadModel", "LlamaForCausalLM")
KERNELS = {
    "math": [SDPBackend.MATH],
    "efficient": [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH],
    "flash": [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH],
}
"""Flash takes no mask, and efficient not every shape: what follows is what torch falls back to."""


def captured(model: nn.Module, device: torch.device, dtype: torch.dtype = torch.float32) -> AttentionTrace:
    given = {name: one.to(device) for name, one in inputs(model).items()}
    with (
        torch.no_grad(),
        torch.autocast(device.type, dtype, enabled=dtype != torch.float32),
        capture_attention(model) as capture,
    ):
        model(**given)
    return capture.sample(1)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", NAMES)
def test_the_weights_are_those_of_the_cpu(name: str, kernel: str, gpu: torch.device) -> None:
    model = built(name, "sdpa")
    expected = captured(model, torch.device("cpu"))
    with sdpa_kernel(KERNELS[kernel], set_priority=True):
        found = captured(copy.deepcopy(model).to(gpu), gpu)
    assert found.maps.keys() == expected.maps.keys()
    for kind, one in expected.maps.items():
        np.testing.assert_array_equal(found.maps[kind].mask, one.mask)
        np.testing.assert_allclose(found.maps[kind].weights, one.weights, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_mixed_precision_stays_near(name: str, gpu: torch.device) -> None:
    model = built(name, "sdpa")
    expected = captured(model, torch.device("cpu"))
    found = captured(copy.deepcopy(model).to(gpu), gpu, torch.bfloat16)
    for kind, one in expected.maps.items():
        np.testing.assert_allclose(found.maps[kind].weights, one.weights, atol=3e-2)  # bfloat16 has 8 bits
        np.testing.assert_allclose(found.maps[kind].weights.sum(-1), 1, atol=1e-2)
