"""Models of a folder that read a picture: ViT and its relatives, and those that write what they see, as TrOCR does."""

from __future__ import annotations

import io
import struct
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps
from transformers import AutoImageProcessor, PreTrainedModel, PreTrainedTokenizerBase, VisionEncoderDecoderModel

from ..capture.attention import capture_attention
from ..language import say, to_say
from ..runnable_model import LocalError
from ..text.patches import Patches
from ..text.words import mark_special_tokens
from ..trace import AttentionTrace
from .folder import convert_failure_to_local_error
from .media import MediaModel, MediaReading
from .tokenizer import FolderTokenizer

PICTURE_FORMATS = ("PNG", "JPEG", "WEBP")
MAX_PICTURE_PIXELS = 50_000_000
UNREADABLE_PICTURE_ERRORS = (
    *(OSError, ValueError, SyntaxError, EOFError, struct.error, zlib.error),
    Image.DecompressionBombError,
)
"""What Pillow raises for a damaged file, or for one that promises far too many pixels."""
MAX_WRITTEN_TOKENS = 128
MAX_MAP_CELLS = 2**28
"""Weights of all layers and heads: a gigabyte in single precision."""
MAX_SHOWN_SIDE = 640
"""Pixels of the longer side of a picture as it is kept for the page."""
MAX_OTHER_TOKENS = 8
"""Tokens beside the patches at most: that of the class, of a teacher, registers."""
MERGE_FACTORS = (1, 2, 4, 8, 16, 32)
"""How many patches of the first layer a token of the last stands for, in each direction: Swin merges them."""
NO_ATTENTION_MESSAGE = to_say("{folder}: no attention over the patches of a picture was seen.")


@dataclass(frozen=True, eq=False)
class PictureModel(MediaModel):
    """A model that reads a picture: an encoder alone, or one with a decoder that writes."""

    processor: Any = None
    names: FolderTokenizer | None = None
    """Of a model that writes."""
    medium = "picture"
    suffixes = (".png", ".jpg", ".jpeg", ".webp")
    unreadable_errors = UNREADABLE_PICTURE_ERRORS

    @torch.no_grad()
    def read(self, name: str, data: bytes | None = None) -> MediaReading:
        """As :meth:`MediaModel.read`. Keys are the patches of the picture as the model sees it: scaled, perhaps cut.

        Of an encoder alone the map is its own; of a model that writes, those of its decoder.
        """
        picture = self.load_input(name, data)
        pixels = self.processor(images=picture, return_tensors="pt")["pixel_values"]
        pixels = pixels.to(self.model.device, self.model.dtype)
        seen = self._restore_colours(pixels[0].float().cpu().numpy())
        return self._read_with_decoder(pixels, seen) if self.names else self._read_with_encoder(pixels, seen)

    def decode_file(self, file: io.BytesIO) -> Image.Image:
        return read_picture(file)

    def _read_with_encoder(self, pixels: torch.Tensor, seen: np.ndarray) -> MediaReading:
        self._check_map_size(pixels)
        with capture_attention(self.model) as capture:
            output = self.model(pixel_values=pixels)
        trace = capture.sample(0)
        if trace.encoder is None:
            raise LocalError(say(NO_ATTENTION_MESSAGE, folder=self.folder.name))
        patches = self._name_patches(trace.encoder.weights.shape[-1], pixels, seen)
        encoder = replace(trace.encoder, query_tokens=tuple(patches), key_tokens=tuple(patches))
        return self._make_reading(replace(trace, encoder=encoder, target=self._name_class(output)), patches)

    def _read_with_decoder(self, pixels: torch.Tensor, seen: np.ndarray) -> MediaReading:
        assert self.names is not None
        model: Any = self.model
        most = min(MAX_WRITTEN_TOKENS, getattr(model.config.decoder, "max_position_embeddings", MAX_WRITTEN_TOKENS) - 2)
        ids = model.generate(pixels, num_beams=1, do_sample=False, max_new_tokens=most, max_length=None)
        with capture_attention(self.model, modules=("decoder.*",)) as capture:
            model(pixel_values=pixels, decoder_input_ids=ids[:, :-1])
        trace = capture.sample(0)
        cross, own = trace.cross, trace.decoder
        if cross is None:
            raise LocalError(say(NO_ATTENTION_MESSAGE, folder=self.folder.name))
        patches = self._name_patches(cross.weights.shape[-1], pixels, seen)
        tokens = tuple(self.names.token(one) for one in ids[0].tolist())
        rows: dict[str, Any] = {"query_tokens": tokens[:-1], "predicted_tokens": tokens[1:]}
        cross = replace(cross, key_tokens=tuple(patches), **rows)
        own = own and replace(own, key_tokens=tokens[:-1], **rows)
        text = self.names.decode([one for one in ids[0].tolist() if self.names.token(one) not in self.special_tokens])
        return self._make_reading(replace(trace, cross=cross, decoder=own, target=text), patches)

    def _make_reading(self, trace: AttentionTrace, patches: Patches) -> MediaReading:
        special = self.special_tokens | {one for one in patches if one.startswith("[")}
        return MediaReading(mark_special_tokens(trace, special), patches)

    def _check_map_size(self, pixels: torch.Tensor) -> None:
        """Raise LocalError where the maps of an encoder would be too large."""
        config: Any = self.model.config
        tokens = pixels.shape[-2] * pixels.shape[-1] // max(1, find_patch_size(config)) ** 2
        layers, heads = (getattr(config, name, 1) for name in ("num_hidden_layers", "num_attention_heads"))
        if layers * heads * tokens**2 > MAX_MAP_CELLS:
            raise LocalError(
                say(
                    "{folder}: {count:,} patches in {layers} layers of {heads} heads are more than is drawn.",
                    folder=self.folder.name,
                    count=tokens,
                    layers=layers,
                    heads=heads,
                )
            )

    def _name_patches(self, count: int, pixels: torch.Tensor, seen: np.ndarray) -> Patches:
        """Names for as many tokens as the encoder hands on. Raises LocalError where they are no grid of patches."""
        height, width = (int(size) for size in pixels.shape[-2:])
        patch = find_patch_size(self.model.config)
        for step in MERGE_FACTORS if patch else ():
            rows, columns = height // (patch * step), width // (patch * step)
            others = count - rows * columns
            if rows and columns and 0 <= others <= MAX_OTHER_TOKENS:
                return Patches(rows, columns, image=seen, before=name_other_tokens(others))
        raise LocalError(
            say(
                "{folder}: its {count} tokens are no grid of patches of a picture of {width} x {height} pixels.",
                folder=self.folder.name,
                count=count,
                width=width,
                height=height,
            )
        )

    def _restore_colours(self, pixels: np.ndarray) -> np.ndarray:
        """The picture (H, W, 3) in whole numbers from 0 to 255 that the values (3, H, W) of the processor stand for."""
        values = pixels.transpose(1, 2, 0)
        if getattr(self.processor, "do_normalize", False):
            values = values * np.array(self.processor.image_std) + np.array(self.processor.image_mean)
        if getattr(self.processor, "do_rescale", True):
            values = values / self.processor.rescale_factor
        picture = Image.fromarray(np.clip(np.rint(values), 0, 255).astype(np.uint8))
        picture.thumbnail((MAX_SHOWN_SIDE, MAX_SHOWN_SIDE))
        return np.asarray(picture)

    def _name_class(self, output: Any) -> str:
        """The name of the class that it decides for and its probability, where it has a head that names classes."""
        logits, names = getattr(output, "logits", None), getattr(self.model.config, "id2label", None)
        if logits is None or not names or logits.ndim != 2 or logits.shape[1] != len(names):
            return ""
        best = int(logits[0].argmax())
        return f"{names[best]} ({float(logits[0].float().softmax(-1)[best]):.2f})"


def make_picture_model(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None) -> PictureModel:
    """Return what runs a loaded model of pictures, once it has read one that is grey.

    Raises LocalError where the folder does not say how pictures are read, or the model has no attention over patches.
    """
    message = to_say(
        "{folder}: transformers {version} finds no preprocessor_config.json that says how pictures are read."
    )
    with convert_failure_to_local_error(folder, message):
        processor = AutoImageProcessor.from_pretrained(folder, local_files_only=True)
    config: Any = model.config
    names = FolderTokenizer(tokenizer, config.decoder.vocab_size, continues=False) if tokenizer else None
    special = names.special_tokens if names else frozenset()
    found = PictureModel(folder.name, model, lambda _: [], special, folder=folder, processor=processor, names=names)
    grey = io.BytesIO()
    Image.new("RGB", (64, 64), (128, 128, 128)).save(grey, "PNG")
    with convert_failure_to_local_error(folder, NO_ATTENTION_MESSAGE):
        found.read("grey.png", grey.getvalue())
    return found


def writes_text(kind: type[PreTrainedModel]) -> bool:
    """Return whether a class of transformers reads a picture and writes text."""
    return issubclass(kind, VisionEncoderDecoderModel)


def read_picture(file: io.BytesIO) -> Image.Image:
    """Return a picture as it is to be seen, in colours. Raises one of UNREADABLE_PICTURE_ERRORS."""
    with Image.open(file, formats=PICTURE_FORMATS) as image:
        if image.width * image.height > MAX_PICTURE_PIXELS:
            raise ValueError("too many pixels")
        return ImageOps.exif_transpose(image).convert("RGB")


def find_patch_size(config: Any) -> int:
    """Return the pixels of a side of the patches of a model's first layer; 0 where its configuration names none."""
    inside = getattr(config, "encoder", None) or getattr(config, "vision_config", None) or config
    size = getattr(inside, "patch_size", 0)
    return int(size if isinstance(size, int) else size[0] if size and size[0] == size[1] else 0)


def name_other_tokens(count: int) -> list[str]:
    """Names of the tokens before the patches: the first is that of the class, the others are numbered."""
    return ["[CLS]" if not at else f"[{at}]" for at in range(count)]
