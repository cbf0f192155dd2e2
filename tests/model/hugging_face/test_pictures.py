"""Models that read a picture: their maps against transformers' own, and the patches of the picture that they see."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from attenscope.hugging_face.pictures import PictureModel
from attenscope.runnable_model import LocalError
from attenscope.text.patches import Patches
from attenscope.user_model import load_user_model
from tests import folders

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.timeout(600)
SWIN = {"image_size": [96, 64], "patch_size": 4, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2]}


def load(folder: Path) -> PictureModel:
    found = load_user_model(f"hf:{folder}")
    assert isinstance(found, PictureModel)
    return found


@pytest.fixture(scope="module")
def vit(folder: Callable[[str], Path]) -> PictureModel:
    return load(folder("vit"))


def see(model: PictureModel, name: str) -> torch.Tensor:
    """The pixels that the model's own processor makes of a picture."""
    picture = Image.open(model.folder / name).convert("RGB")
    return model.processor(images=picture, return_tensors="pt")["pixel_values"]


def encode_picture(pixels: np.ndarray, format: str = "PNG", **settings: Any) -> bytes:
    written = io.BytesIO()
    Image.fromarray(pixels).save(written, format, **settings)
    return written.getvalue()


def promise_pixels(data: bytes, side: int) -> bytes:
    """A PNG whose header promises so many pixels a side, whatever it holds."""
    head = b"IHDR" + struct.pack(">II", side, side) + data[24:29]
    return data[:12] + head + struct.pack(">I", zlib.crc32(head)) + data[33:]


def make_encoder(folder: Path, kind: str) -> Path:
    sizes = dict(folders.PICTURE_SIZES)
    if kind == "Dinov2WithRegisters":
        del sizes["intermediate_size"]
    config = getattr(transformers, f"{kind}Config")(**sizes)
    torch.manual_seed(folders.SEED)
    getattr(transformers, f"{kind}Model")(config).save_pretrained(folder)
    transformers.ViTImageProcessorPil(size={"height": 48, "width": 48}).save_pretrained(folder)
    folders.write_picture(folder / "garden.jpg")
    return folder


def test_the_map_of_an_encoder_is_that_of_transformers(vit: PictureModel) -> None:
    reading = vit.read("garden.png")
    with torch.no_grad():
        expected: Any = vit.model(pixel_values=see(vit, "garden.png"), output_attentions=True)
    assert reading.trace.encoder is not None
    assert reading.patches is not None
    assert np.abs(reading.trace.encoder.weights - torch.cat(expected.attentions).numpy()).max() <= 1e-5
    assert reading.trace.encoder.key_tokens == reading.patches
    assert (reading.patches.grid, reading.patches[:2]) == ((6, 6), ("[CLS]", "1,1"))
    chances = expected.logits.softmax(-1)[0]
    assert reading.trace.target == f"{('cat', 'dog')[int(chances.argmax())]} ({float(chances.max()):.2f})"


@pytest.mark.parametrize(
    ("kind", "before"),
    [
        ("Dinov2WithRegisters", ("[CLS]", "[1]", "[2]", "[3]", "[4]")),
        ("CLIPVision", ("[CLS]",)),
        ("SiglipVision", ()),
        ("DeiT", ("[CLS]", "[1]")),
    ],
)
def test_tokens_beside_the_patches_are_counted(kind: str, before: tuple[str, ...], tmp_path: Path) -> None:
    model = load(make_encoder(tmp_path / "FOLDER", kind))
    reading = model.read("garden.jpg")
    assert reading.patches is not None
    assert (reading.patches.grid, tuple(reading.patches[: reading.patches.first])) == ((6, 6), before)
    with torch.no_grad():
        expected: Any = model.model(pixel_values=see(model, "garden.jpg"), output_attentions=True)
    assert reading.trace.encoder is not None
    assert np.abs(reading.trace.encoder.weights - torch.cat(expected.attentions).numpy()).max() <= 1e-5


def make_writers() -> dict[str, tuple[Callable[[Path], Path], tuple[int, int], int]]:
    """How each folder is made, its grid, and its tokens beside the patches."""
    gpt2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 24, "add_cross_attention": True}
    mbart = {"d_model": 32, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 48}
    return {
        "trocr": (folders.trocr, (6, 6), 1),
        "captions": (
            lambda folder: folders.trocr(folder, transformers.GPT2Config(**gpt2, initializer_range=0.4)),
            (6, 6),
            1,
        ),
        "donut": (
            lambda folder: folders.trocr(
                folder,
                transformers.MBartConfig(**mbart, max_position_embeddings=24, init_std=0.4, is_encoder_decoder=False),
                transformers.DonutSwinConfig(**SWIN, window_size=4),
                transformers.DonutImageProcessorPil(size={"height": 96, "width": 64}),
            ),
            (12, 8),
            0,
        ),
    }


@pytest.mark.parametrize("name", ["trocr", "captions", "donut"])
def test_the_maps_of_one_that_writes_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    make, grid, others = make_writers()[name]
    model = load(make(tmp_path / "FOLDER"))
    reading = model.read("line.png")
    trace, patches = reading.trace, reading.patches
    assert trace.cross is not None
    assert trace.decoder is not None
    assert patches is not None
    assert model.names is not None
    assert (patches.grid, patches.first, trace.cross.key_tokens) == (grid, others, patches)
    own: Any = model.model
    pixels = see(model, "line.png")
    written = own.generate(pixels, num_beams=1, do_sample=False, max_new_tokens=trace.cross.weights.shape[2])
    tokens = [model.names.token(one) for one in written[0].tolist()]
    assert (trace.cross.query_tokens, trace.cross.predicted_tokens) == (tuple(tokens[:-1]), tuple(tokens[1:]))
    with torch.no_grad():
        expected = own(pixel_values=pixels, decoder_input_ids=written[:, :-1], output_attentions=True)
    assert np.abs(trace.cross.weights - torch.cat(expected.cross_attentions).numpy()).max() <= 1e-5
    assert np.abs(trace.decoder.weights - torch.cat(expected.decoder_attentions).numpy()).max() <= 1e-5


def test_the_picture_is_the_one_that_the_model_sees(tmp_path: Path) -> None:
    folder = folders.vit(tmp_path / "FOLDER")
    transformers.CLIPImageProcessorPil(
        size={"shortest_edge": 48}, crop_size={"height": 48, "width": 48}, image_mean=[0.2, 0.5, 0.6]
    ).save_pretrained(folder)
    reading = load(folder).read("garden.png")
    assert isinstance(reading.patches, Patches)
    seen = reading.patches.image
    with Image.open(folder / "garden.png") as picture:
        cut = np.asarray(picture.resize((76, 48), Image.Resampling.BICUBIC))[:, 14:62]  # the middle
    assert seen is not None
    assert seen.shape == (48, 48, 3)
    assert np.abs(seen.astype(int) - cut).max() <= 1


def test_other_models_of_pictures_are_refused(tmp_path: Path) -> None:
    for name, config in {
        "ResNet": {"embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1]},
        "Swin": SWIN | {"image_size": 64, "window_size": 4},
    }.items():
        folder = tmp_path / name
        getattr(transformers, f"{name}Model")(getattr(transformers, f"{name}Config")(**config)).save_pretrained(folder)
        transformers.ViTImageProcessorPil(size={"height": 64, "width": 64}).save_pretrained(folder)
        with pytest.raises(LocalError, match=f"{name}: no attention over the patches of a picture was seen"):
            load(folder)
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(LocalError, match="preprocessor_config"):
        load(folder)


def test_maps_that_would_be_too_large_are_refused_before_they_are_made(
    vit: PictureModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attenscope.hugging_face.pictures.MAX_MAP_CELLS", 2 * 4 * 36**2 - 1)
    monkeypatch.setattr(vit.model, "forward", None)
    with pytest.raises(LocalError, match="36 patches in 2 layers of 4 heads are more than is drawn"):
        vit.read("garden.png")


def test_a_file_that_is_no_picture_is_said(vit: PictureModel, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = encode_picture(np.zeros((30, 40, 3), np.uint8))
    for data in (b"", b"no picture", whole[: len(whole) // 2], b"GIF89a" + bytes(40), b"%!PS-Adobe-3.0 EPSF-3.0\n"):
        with pytest.raises(LocalError, match=r"x\.png cannot be read as a picture: PNG, JPEG and WebP are"):
            vit.load_input("x.png", data)
    monkeypatch.setattr("attenscope.hugging_face.pictures.MAX_PICTURE_PIXELS", 30 * 40 - 1)
    for data in (whole, promise_pixels(whole, 20_000)):
        with pytest.raises(LocalError, match="at most 50 million pixels"):
            vit.read("x.png", data)
    for name in ("../config.json", "config.json", "", "none.png"):
        with pytest.raises(LocalError, match=r"reads pictures.*one of the files in its folder \(garden\.png\)"):
            vit.trace(name)


def test_a_picture_of_any_colours_is_read_turned_as_its_camera_says(vit: PictureModel) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (48, 48), np.uint8)
    for mode in ("L", "RGBA", "P", "1"):
        written = io.BytesIO()
        Image.fromarray(pixels).convert(mode).save(written, "PNG")
        assert vit.read("x.png", written.getvalue()).patches is not None
    turned = Image.Exif()
    turned[0x0112] = 6  # a quarter to the right
    both = (encode_picture(pixels, exif=turned), encode_picture(np.rot90(pixels, -1).copy()))
    first, second = (vit.read("x.png", one).patches for one in both)
    assert first is not None
    assert second is not None
    assert first.image is not None
    assert second.image is not None
    assert np.array_equal(first.image, second.image)
