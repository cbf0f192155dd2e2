"""The grid of a picture's patches, held against DINO's own reshape, and the figure over the picture."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch

import attenscope
from attenscope.trace import TraceError


@pytest.fixture(scope="module")
def capture_vit() -> tuple[Any, Any, np.ndarray]:
    """A ViT of the grid of DINO ViT-S/16 at 224 pixels: its capture, what it returned itself, and the picture."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 6, "intermediate_size": 64}
    torch.manual_seed(2)
    config = transformers.ViTConfig(image_size=224, patch_size=16, **sizes)
    model = transformers.ViTModel(config, add_pooling_layer=False).eval()
    model.set_attn_implementation("eager")
    picture = np.random.default_rng(1).integers(0, 256, (224, 224, 3), dtype=np.uint8)
    given = torch.from_numpy(picture).permute(2, 0, 1)[None] / 255
    names = attenscope.patches(14, 14, image=picture)
    with torch.no_grad(), attenscope.capture_attention(model, tokens=names) as capture:
        own = model(given, output_attentions=True).attentions
    return capture, own, picture


def test_the_map_of_a_head_is_that_of_dino(capture_vit: tuple[Any, Any, np.ndarray]) -> None:
    capture, own, _ = capture_vit
    names, trace = capture.tokens, capture.trace
    assert trace.encoder.key_tokens == (
        *["[CLS]"],
        *[f"{row},{column}" for row in range(1, 15) for column in range(1, 15)],
    )
    for layer, attentions in enumerate(own):
        # visualize_attention.py of DINO: the output patch attention only, of the token [CLS], then its feature map.
        heads = attentions.shape[1]
        expected = attentions[0, :, 0, 1:].reshape(heads, -1).reshape(heads, 14, 14).numpy()
        for head in range(heads):
            assert np.array_equal(names.grid_of(trace.encoder, layer, head), expected[head])


def test_a_figure_puts_the_row_over_the_picture(capture_vit: tuple[Any, Any, np.ndarray]) -> None:
    capture, _, picture = capture_vit
    names, trace = capture.tokens, capture.trace
    image, weights = attenscope.figures.patch_heatmap(trace.encoder, names, layer=1, head=3, row=5).data
    grey = np.repeat(np.rint(picture @ np.array([0.299, 0.587, 0.114]))[:, :, None], 3, 2)
    assert np.abs(np.asarray(image.z) - grey).max() <= 1
    assert (image.dx * 224, image.x0 - image.dx / 2) == (14, -0.5)
    assert np.array_equal(weights.z, names.grid_of(trace.encoder, 1, 3, row=5))
    as_floats = attenscope.patches(14, 14, image=picture.astype(np.float32))  # from 0 to 255, as some libraries have it
    again = attenscope.figures.patch_heatmap(trace.encoder, as_floats, 0, 0).data[0].z
    assert np.abs(np.asarray(again) - grey).max() <= 1
    (alone,) = attenscope.figures.patch_heatmap(trace.encoder, attenscope.patches(14, 14), layer=0, head=0).data
    assert alone.type == "heatmap"


def test_a_grid_is_kept_and_checked(capture_vit: tuple[Any, Any, np.ndarray]) -> None:
    capture, _, picture = capture_vit
    names = attenscope.patches(2, 3, before=["a"], after=["z"], image=picture.astype(float) / 255)
    assert names == ("a", "1,1", "1,2", "1,3", "2,1", "2,2", "2,3", "z")
    again = pickle.loads(pickle.dumps(names))
    assert (again, again.grid, again.first) == (names, (2, 3), 1)
    with pytest.raises(TraceError, match="The map has 197 columns, but the grid and the tokens beside it are 8"):
        names.grid_of(capture.trace.encoder, 0, 0)
    with pytest.raises(TraceError, match="at least one row"):
        attenscope.patches(0, 3)
    with pytest.raises(TraceError, match="axes"):
        attenscope.patches(1, 1, image=np.zeros((2, 2, 7)))


def test_the_row_and_the_key_are_framed_and_little_weight_lets_the_picture_be_seen(
    capture_vit: tuple[Any, Any, np.ndarray],
) -> None:
    capture, _, _ = capture_vit
    names, trace = capture.tokens, capture.trace
    draw = attenscope.figures.patch_heatmap
    drawn = draw(trace.encoder, names, layer=0, head=0, row=names.index("3,5"), key=names.index("14,1"))
    assert drawn.layout.title.text == "<b>Layer 1, head 1: what 3,5 looks at</b>"
    row, key = drawn.layout.shapes
    assert (row.x0, row.x1, row.y0, row.y1) == (3.5, 4.5, 1.5, 2.5)
    assert (key.x0, key.y0) == (-0.5, 12.5)
    scale = drawn.data[1].colorscale
    opacities = [float(colour.rsplit(",", 1)[1].removesuffix(")")) for _, colour in scale]
    assert opacities == sorted(opacities)
    assert (opacities[0], opacities[-1]) == (0.1, 0.8)
    assert not draw(trace.encoder, names, layer=0, head=0, key=0).layout.shapes  # [CLS] is nowhere in the picture
