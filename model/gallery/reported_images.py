"""Reported bugs of masks of images: Gemma 3 and 4, whose image tokens see each other in both directions."""

from __future__ import annotations

import torch
from torch import Tensor

from ..language import to_say
from .batch import Batch, masked_softmax
from .more_pairs import key_distances
from .recipes import UNPADDED_BATCH, causal_only_mask
from .reported_masks import make_report

_IMAGE, _SECOND_IMAGE = (1, 4), (5, 8)
_LONG_IMAGE, _WINDOW = (1, 7), 3
"""An image that is longer than the window of a local layer."""
IMAGE_BATCH = UNPADDED_BATCH | {"sizes": (8, 8)}
IMAGE_SYMPTOMS = (to_say("images are described badly"), to_say("text alone is right"))


def _see_image(x: Batch, *images: tuple[int, int]) -> Tensor:
    """Return (Q, K) bool: cells within each image."""
    at, key = torch.arange(x.queries)[:, None], torch.arange(x.keys)
    inside = torch.zeros(x.queries, x.keys, dtype=torch.bool)
    for first, end in images:
        inside |= (at >= first) & (at < end) & (key >= first) & (key < end)
    return inside


def image_mask(x: Batch) -> Tensor:
    """Two images in a causal text, each of which sees itself whole."""
    return causal_only_mask(x) | _see_image(x, _IMAGE, _SECOND_IMAGE)


def image_in_window_mask(x: Batch) -> Tensor:
    """An image in a local layer: seen whole ahead, and back no farther than the window."""
    return (causal_only_mask(x) | _see_image(x, _LONG_IMAGE)) & (key_distances(x) < _WINDOW)


def joined_images_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, causal_only_mask(x) | _see_image(x, (_IMAGE[0], _SECOND_IMAGE[1])))


def joined_images_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, image_mask(x))


def image_beyond_window_broken(x: Batch) -> Tensor:
    window = causal_only_mask(x) & (key_distances(x) < _WINDOW)
    return masked_softmax(x.scores, window | _see_image(x, _LONG_IMAGE))  # the image comes after the window


def image_in_window_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, image_in_window_mask(x))


def long_image_broken(x: Batch) -> Tensor:
    return masked_softmax(
        x.scores, causal_only_mask(x) & (key_distances(x) < _WINDOW)
    )  # longer than the window: left out


def image_in_every_layer_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, image_mask(x))  # this layer is global: causal alone


def image_in_every_layer_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, causal_only_mask(x))


IMAGE_REPORTS = (
    make_report(
        ("huggingface/transformers#38053", to_say("Images see later images")),
        to_say("Gemma 3: all image tokens saw each other, those of the next image too; each image sees itself alone."),
        ("leak", joined_images_broken, joined_images_fixed, image_mask),
        batch=IMAGE_BATCH,
        symptoms=IMAGE_SYMPTOMS,
    ),
    make_report(
        ("huggingface/transformers#46850", to_say("An image reaches beyond the window")),
        to_say("Gemma 3 and 4: in local layers the tokens of an image saw it whole, also what lay before the window."),
        ("leak", image_beyond_window_broken, image_in_window_fixed, image_in_window_mask),
        batch=IMAGE_BATCH,
        symptoms=IMAGE_SYMPTOMS,
    ),
    make_report(
        ("vllm-project/vllm#47217", to_say("An image longer than the window is read as text")),
        to_say("Gemma 4: where an image had more tokens than the window, its local layers were causal."),
        ("over-blocked", long_image_broken, image_in_window_fixed, image_in_window_mask),
        batch=IMAGE_BATCH,
        symptoms=IMAGE_SYMPTOMS,
    ),
    make_report(
        ("huggingface/transformers#46711", to_say("Global layers see images in both directions")),
        to_say("Gemma 4: images saw themselves whole in every layer; in the original only in local ones."),
        ("leak", image_in_every_layer_broken, image_in_every_layer_fixed, causal_only_mask),
        batch=IMAGE_BATCH,
        symptoms=IMAGE_SYMPTOMS,
    ),
)
