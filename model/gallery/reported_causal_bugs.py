"""The class of a bug report, the symptoms reports share, and reported bugs of causal masks and windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..language import say, to_say
from ..mask_tests.subjects import Subject
from .attention_bug_pairs import WINDOW, Batch, masked_softmax
from .exhibits import Exhibit
from .fault_generators import (
    UNPADDED_BATCH,
    Recipe,
    causal_and_padding_mask,
    causal_only_mask,
    causal_window_mask,
    document_mask,
    padding_only_mask,
)
from .model_bug_pairs import LAYERS, alternating_window_layer_masks, key_distances

# One report of a bug, and the tiny programs that stand for it.


@dataclass(frozen=True)
class Report:
    """A bug as it was reported: where, what happened, and its essence in a few lines; texts are messages to say."""

    where: str
    """``owner/name#number`` of an issue or a pull request on GitHub."""
    title: str
    says: str
    """What was reported, in a sentence or two of our own."""
    code: str
    """What the diagnosis names."""
    broken: Callable[..., Any]
    fixed: Callable[..., Any]
    meant: Callable[[Batch], Tensor] = causal_and_padding_mask
    needs: tuple[str, ...] = ("weights", "meant")
    batch: Mapping[str, Any] = field(default_factory=dict)
    symptoms: tuple[str, ...] = ()
    subject: Callable[[Callable[..., Any]], Subject] | None = None
    """Given for a bug that only a running model shows."""
    tests: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """A name for links: ``keras-23038``."""
        repository, _, number = self.where.partition("#")
        return f"{repository.partition('/')[2].lower()}-{number}"

    @property
    def place(self) -> str:
        """Repository and number in words."""
        repository, _, number = self.where.partition("#")
        return say("{repository}, number {number} on GitHub", repository=repository, number=number)

    @property
    def exhibit(self) -> Exhibit:
        """The entry of the gallery."""
        if self.subject is not None:
            return Exhibit(self.name, self.broken, self.fixed, None, self.subject, self.tests, self.code)
        recipe = Recipe(self.code, self.broken, self.fixed, self.meant, self.needs, self.batch)
        return Exhibit(self.name, self.broken, self.fixed, recipe, batch=self.batch)


def make_report(named: tuple[str, str], says: str, shown: tuple[Any, ...], **more: Any) -> Report:
    """Return a report of (where, title), what it says, and (code, broken, fixed, and perhaps meant and needs)."""
    return Report(*named, says, *shown, **more)


PADDING_REPORT_ARGUMENTS: dict[str, Any] = {"meant": padding_only_mask, "needs": ("weights", "key_keep")}
"""A report about padding alone."""


def lower_triangle_mask(x: Batch, start: int = 0) -> Tensor:
    """Return (Q, K) bool, True at and below the diagonal that begins at column ``start`` of the first row."""
    return torch.ones(x.queries, x.keys, dtype=torch.bool).tril(start)


# What people noticed first, where several reports share it.


ALONE_SYMPTOM = to_say("works alone but not in a batch")
KV_CACHE_SYMPTOM = to_say("kv cache")

COPYING_SYMPTOMS = (to_say("the model copies the next token"), to_say("the training loss is too good to be true"))
QUIET_SYMPTOMS = (
    to_say("nothing is reported, the quality is merely low"),
    to_say("long texts are understood worse than short ones"),
)
PACKING_SYMPTOMS = (to_say("text from another document appears"), to_say("packing"))
OLD_TEXT_SYMPTOMS = (KV_CACHE_SYMPTOM, to_say("old text shows up in new answers"))
OTHER_TEXT_SYMPTOMS = (KV_CACHE_SYMPTOM, to_say("with a cache it writes something else"))
BATCH_SYMPTOMS = (ALONE_SYMPTOM, to_say("the translation changes with its batch or the padding"))
LEFT_PADDING_SYMPTOMS = (ALONE_SYMPTOM, to_say("left padding changes the answer"))
NAN_SYMPTOMS = (to_say("the loss is NaN"), to_say("loss goes to NaN"))
HALF_PRECISION_SYMPTOMS = (
    to_say("value cannot be converted to type at::Half without overflow"),
    to_say("an error only in half precision"),
)

# Reports of causal masks that were lost on the way, or put where they do not belong.


CACHED_BATCH = {"cross": True, "padded": False, "sizes": (3, 7)}
CROSS_BATCH = {"cross": True, "sizes": (5, 7)}


def attend_like_xformers(scores: Tensor, att_mask: Tensor | None, causal: Tensor) -> Tensor:
    """Apply the causal mask together with ``att_mask``, and only then."""
    if att_mask is not None:
        scores = scores.masked_fill(~(att_mask & causal), -torch.inf)
    return scores.softmax(-1)


def xformers_causal_dropped_broken(x: Batch) -> Tensor:
    return attend_like_xformers(x.scores, None, x.causal)


def xformers_causal_dropped_fixed(x: Batch) -> Tensor:
    return attend_like_xformers(x.scores, torch.ones(x.queries, x.keys, dtype=torch.bool), x.causal)


def attend_like_keras(scores: Tensor, causal: Tensor, fused: bool) -> Tensor:
    """Drop the mask where the kernel is causal by itself."""
    mask = None if fused else causal
    return scores.softmax(-1) if mask is None else masked_softmax(scores, mask)


def keras_causal_dropped_broken(x: Batch) -> Tensor:
    return attend_like_keras(x.scores, x.causal, fused=True)  # then return_attention_scores takes the plain path


def keras_causal_dropped_fixed(x: Batch) -> Tensor:
    return attend_like_keras(x.scores, x.causal, fused=False)


def doge_causal_missing_broken(x: Batch) -> Tensor:
    mask = None  # no padding: the mask is skipped, as is_causal will do
    dynamic = torch.zeros(x.keys)
    return (x.scores + (dynamic if mask is None else mask + dynamic)).softmax(-1)


def doge_causal_missing_fixed(x: Batch) -> Tensor:
    mask = torch.zeros(x.queries, x.keys).masked_fill(~x.causal, -torch.inf)
    dynamic = torch.zeros(x.keys)
    return (x.scores + mask + dynamic).softmax(-1)


def roformer_causal_missing_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep)  # the extended padding mask, also of a decoder


def roformer_causal_missing_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep & x.causal)


def packed_causal_missing_broken(x: Batch) -> Tensor:
    document = torch.arange(x.keys) >= x.keys // 2
    return masked_softmax(x.scores, document[:, None] == document)  # what .to(device) returned


def packed_causal_missing_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, document_mask(x))


def fairseq2_causal_flag_lost_broken(x: Batch) -> Tensor:
    mask, is_causal = torch.zeros(x.queries + 2, x.keys + 2), True
    mask, is_causal = mask[: x.queries, : x.keys], False  # the flag is lost with the slice
    return masked_softmax(x.scores, x.causal if is_causal else mask == 0)


def fairseq2_causal_flag_lost_fixed(x: Batch) -> Tensor:
    mask, is_causal = torch.zeros(x.queries + 2, x.keys + 2), True
    mask = mask[: x.queries, : x.keys]
    return masked_softmax(x.scores, x.causal if is_causal else mask == 0)


def speculative_causal_alignment_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, lower_triangle_mask(x))  # no mask was passed, and is_causal starts at the top left


def speculative_causal_alignment_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, lower_triangle_mask(x, x.keys - x.queries))


def varlen_causal_alignment_broken(x: Batch) -> Tensor:
    query, key = torch.arange(x.queries)[:, None], torch.arange(x.keys)
    return masked_softmax(x.scores, key <= query)


def varlen_causal_alignment_fixed(x: Batch) -> Tensor:
    query, key = torch.arange(x.queries)[:, None], torch.arange(x.keys)
    return masked_softmax(x.scores, key <= query + x.keys - x.queries)


def prefill_causal_alignment_broken(x: Batch) -> Tensor:
    ends = [min(x.keys, position + 1) for position in range(x.queries)]
    return masked_softmax(x.scores, torch.arange(x.keys) < torch.tensor(ends)[:, None])


def prefill_causal_alignment_fixed(x: Batch) -> Tensor:
    ends = [min(x.keys, position + 1 + x.keys - x.queries) for position in range(x.queries)]
    return masked_softmax(x.scores, torch.arange(x.keys) < torch.tensor(ends)[:, None])


def onlybooks_needless_causal_broken(x: Batch, is_causal: bool = True) -> Tensor:
    # is_causal is meant for self-attention
    return masked_softmax(x.scores, x.keep & lower_triangle_mask(x) if is_causal else x.keep)


def onlybooks_needless_causal_fixed(x: Batch, is_causal: bool = False) -> Tensor:
    return masked_softmax(x.scores, x.keep & lower_triangle_mask(x) if is_causal else x.keep)


def flash_window_mask(x: Batch, left: int, right: int) -> Tensor:
    """The window of FlashAttention: inclusive ends, -1 for none, aligned at the bottom right."""
    offset = torch.arange(x.keys) - torch.arange(x.queries)[:, None] - (x.keys - x.queries)
    return ((offset >= -left) | (left < 0)) & ((offset <= right) | (right < 0))


def transformer_engine_needless_causal_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep & flash_window_mask(x, -1, 0))  # set for self-attention, passed to both


def transformer_engine_needless_causal_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep & flash_window_mask(x, -1, -1))


CAUSALITY_REPORTS = (
    make_report(
        ("facebookresearch/xformers#103", to_say("No causal mask unless another is passed")),
        to_say("The causal mask was applied together with att_mask; without one it was skipped."),
        ("future-visible", xformers_causal_dropped_broken, xformers_causal_dropped_fixed, causal_only_mask),
        batch=UNPADDED_BATCH,
        symptoms=COPYING_SYMPTOMS,
    ),
    make_report(
        ("keras-team/keras#23038", to_say("use_causal_mask is dropped where scores are returned")),
        to_say(
            "The mask was left to the fused kernel, and dropout, return_attention_scores or other shapes took the "
            "plain path, which had none."
        ),
        ("future-visible", keras_causal_dropped_broken, keras_causal_dropped_fixed, causal_only_mask),
        batch=UNPADDED_BATCH,
        symptoms=COPYING_SYMPTOMS,
    ),
    make_report(
        ("huggingface/transformers#48770", to_say("A model with a mask of its own loses the causal one")),
        to_say(
            "Without padding the causal mask is skipped, as sdpa can make it; Doge passes a dynamic mask instead, "
            "which is not causal."
        ),
        ("future-visible", doge_causal_missing_broken, doge_causal_missing_fixed, causal_only_mask),
        batch=UNPADDED_BATCH,
        symptoms=(*COPYING_SYMPTOMS, to_say("only under sdpa")),
    ),
    make_report(
        ("huggingface/transformers#48745", to_say("Four decoders with an encoder's mask")),
        to_say(
            "RoFormer, BigBird, RemBERT and MegatronBERT for causal language modelling saw the tokens after each "
            "position; the loss on random tokens fell to zero."
        ),
        ("future-visible", roformer_causal_missing_broken, roformer_causal_missing_fixed),
        symptoms=(*COPYING_SYMPTOMS, to_say("loss goes to zero")),
    ),
    make_report(
        ("facebookresearch/xformers#1185", to_say("Moving a mask to the device changes it")),
        to_say(
            "BlockDiagonalCausalMask.to() returned a BlockDiagonalMask: still one block a document, no longer causal."
        ),
        ("future-visible", packed_causal_missing_broken, packed_causal_missing_fixed, document_mask),
        batch=UNPADDED_BATCH | {"sizes": (8, 8)},
        symptoms=COPYING_SYMPTOMS,
    ),
    make_report(
        ("facebookresearch/fairseq2#59", to_say("A slice loses the flag")),
        to_say("Slicing the self-attention mask dropped the flag that says it is causal."),
        ("future-visible", fairseq2_causal_flag_lost_broken, fairseq2_causal_flag_lost_fixed, causal_only_mask),
        batch=UNPADDED_BATCH,
        symptoms=COPYING_SYMPTOMS,
    ),
    make_report(
        ("huggingface/transformers#30311", to_say("Speculative decoding without its mask")),
        to_say("Several new tokens beside a cache, and no mask passed: is_causal of sdpa is aligned at the top left."),
        ("top-left-causal", speculative_causal_alignment_broken, speculative_causal_alignment_fixed, causal_only_mask),
        batch=CACHED_BATCH,
        symptoms=OTHER_TEXT_SYMPTOMS,
    ),
    make_report(
        ("Dao-AILab/flash-attention#282", to_say("Query i sees key i, whatever is cached")),
        to_say(
            "With more keys than queries the causal argument counted both from 0. Since 2.1 it is aligned at the end."
        ),
        ("top-left-causal", varlen_causal_alignment_broken, varlen_causal_alignment_fixed, causal_only_mask),
        batch=CACHED_BATCH,
        symptoms=OTHER_TEXT_SYMPTOMS,
    ),
    make_report(
        ("gittensor-ai-lab/sparkinfer#3", to_say("A prefill kernel that forgets the cached keys")),
        to_say("The last key of a query was its own number in the chunk: the cached context at the end was cut off."),
        ("top-left-causal", prefill_causal_alignment_broken, prefill_causal_alignment_fixed, causal_only_mask),
        batch=CACHED_BATCH,
        symptoms=OTHER_TEXT_SYMPTOMS,
    ),
    make_report(
        ("onlybooks/llm#4", to_say("is_causal at the wrong attention")),
        to_say("The flag of the decoder's self-attention was passed to its cross-attention, and not to itself."),
        ("causal-on-cross", onlybooks_needless_causal_broken, onlybooks_needless_causal_fixed, padding_only_mask),
        batch=CROSS_BATCH,
        symptoms=(to_say("the end of the source is ignored"),),
    ),
    make_report(
        ("NVIDIA/TransformerEngine#629", to_say("A window that makes cross-attention causal")),
        to_say("A causal decoder layer set window_size = (-1, 0) and gave it to both of its attentions."),
        (
            "causal-on-cross",
            transformer_engine_needless_causal_broken,
            transformer_engine_needless_causal_fixed,
            padding_only_mask,
        ),
        batch=CROSS_BATCH,
        symptoms=(to_say("the end of the source is ignored"),),
    ),
)

# Reports of windows, and of layers that alternate between windows and everything.


LONG_BATCH = UNPADDED_BATCH | {"sizes": (8, 8)}
LONG_CACHED_BATCH = {"cross": True, "padded": False, "sizes": (3, 8)}


def inclusive_window_mask(x: Batch, left: int, right: int) -> Tensor:
    """The window of FlashAttention, whose ends both count."""
    return (key_distances(x) <= left) & (key_distances(x) >= -right)


def flash_window_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal & inclusive_window_mask(x, WINDOW, WINDOW))


def flash_window_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal & inclusive_window_mask(x, WINDOW - 1, WINDOW - 1))


def mlx_window_size_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal & (key_distances(x) < WINDOW + 1))


def mlx_window_size_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal & (key_distances(x) < WINDOW))


def lookahead_mask(x: Batch) -> Tensor:
    """Return (Q, K) bool: two frames back and two ahead."""
    return (key_distances(x) <= 2) & (-key_distances(x) <= 2)


def moonshine_lookahead_size_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, (key_distances(x) <= 2) & (-key_distances(x) < 2))


def moonshine_lookahead_size_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, lookahead_mask(x))


def sdpa_window_missing_broken(x: Batch) -> Tensor:
    window_size = None  # handed to the flash path alone
    return masked_softmax(x.scores, x.causal if window_size is None else x.causal & (key_distances(x) < window_size))


def sdpa_window_missing_fixed(x: Batch) -> Tensor:
    window_size: int | None = WINDOW
    return masked_softmax(x.scores, x.causal if window_size is None else x.causal & (key_distances(x) < window_size))


def attend_by_layer(x: Batch, is_local: list[bool]) -> Tensor:
    """Weights (B, L, H, Q, K) with a window in the local layers."""
    near = x.causal & (key_distances(x) < WINDOW)
    return torch.stack([masked_softmax(x.scores, near if local else x.causal) for local in is_local], 1)


def gemma_layers_swapped_fixed(x: Batch) -> Tensor:
    return attend_by_layer(x, [not layer % 2 for layer in range(LAYERS)])


def gemma_layers_swapped_broken(x: Batch) -> Tensor:
    return attend_by_layer(x, [bool(layer % 2) for layer in range(LAYERS)])


def transformer_lens_layers_swapped_broken(x: Batch) -> Tensor:
    attn_types = ["global", "local"] * (LAYERS // 2)
    return attend_by_layer(x, [kind == "local" for kind in attn_types])


def transformer_lens_layers_swapped_fixed(x: Batch) -> Tensor:
    attn_types = ["local", "global"] * (LAYERS // 2)
    return attend_by_layer(x, [kind == "local" for kind in attn_types])


def megatron_bridge_layers_swapped_broken(x: Batch) -> Tensor:
    numbers = range(1, LAYERS + 1)  # Megatron counts layers from 1
    return attend_by_layer(x, [number % 2 == 0 for number in numbers])


def megatron_bridge_layers_swapped_fixed(x: Batch) -> Tensor:
    numbers = range(1, LAYERS + 1)
    return attend_by_layer(x, [number % 2 == 1 for number in numbers])


def all_layers_local_broken(x: Batch) -> Tensor:
    per_layer: list[int | None] = [WINDOW, None] * (LAYERS // 2)
    # None falls back to the cache's window
    return attend_by_layer(x, [(size or WINDOW) < x.keys for size in per_layer])


def all_layers_local_fixed(x: Batch) -> Tensor:
    per_layer: list[int | None] = [WINDOW, None] * (LAYERS // 2)
    return attend_by_layer(x, [size is not None for size in per_layer])


def vllm_metal_windows_lost_broken(x: Batch) -> Tensor:
    windows = [-1] * LAYERS  # hardcoded
    return attend_by_layer(x, [size > 0 for size in windows])


def vllm_metal_windows_lost_fixed(x: Batch) -> Tensor:
    windows = [WINDOW, -1] * (LAYERS // 2)
    return attend_by_layer(x, [size > 0 for size in windows])


WINDOW_REPORTS = (
    make_report(
        ("huggingface/transformers#39408", to_say("sliding_window on both sides, inclusive")),
        to_say(
            "FlashAttention counts both ends of window_size: given the window itself, each query sees one key more."
        ),
        ("window-off-by-one", flash_window_broken, flash_window_fixed, causal_window_mask),
        batch=LONG_BATCH,
        symptoms=(to_say("two libraries disagree by one key"), to_say("only with flash attention")),
    ),
    make_report(
        ("ml-explore/mlx-lm#390", to_say("One value too many in the window")),
        to_say("Prompts were read with a window of W + 1, the rotating cache kept W."),
        ("window-off-by-one", mlx_window_size_broken, mlx_window_size_fixed, causal_window_mask),
        batch=LONG_BATCH,
        symptoms=(to_say("two libraries disagree by one key"),),
    ),
    make_report(
        ("huggingface/transformers#47010", to_say("A frame of lookahead is missing")),
        to_say(
            "The right end of a streaming window was compared with < where <= was meant: three frames ahead, not four."
        ),
        ("window-off-by-one", moonshine_lookahead_size_broken, moonshine_lookahead_size_fixed, lookahead_mask),
        batch=LONG_BATCH,
    ),
    make_report(
        ("unslothai/unsloth#8253", to_say("The window never reached sdpa")),
        to_say(
            "The flash path was given the window, the sdpa path fell through to is_causal: training saw the whole past."
        ),
        ("window-missing", sdpa_window_missing_broken, sdpa_window_missing_fixed, causal_window_mask),
        batch=LONG_BATCH,
        symptoms=QUIET_SYMPTOMS,
    ),
    make_report(
        ("huggingface/transformers#31775", to_say("Gemma 2: global where it should be local")),
        to_say("Sliding layers were 1, 3, 5, ... and in the original they are 0, 2, 4, ..."),
        (
            "wrong-layer-pattern",
            gemma_layers_swapped_broken,
            gemma_layers_swapped_fixed,
            alternating_window_layer_masks,
        ),
        batch=LONG_BATCH,
        symptoms=QUIET_SYMPTOMS,
    ),
    make_report(
        ("TransformerLensOrg/TransformerLens#778", to_say("The same order, hardcoded")),
        to_say('attn_types = ["global", "local"] * 21 for Gemma 2, whose first layer is local.'),
        (
            "wrong-layer-pattern",
            transformer_lens_layers_swapped_broken,
            transformer_lens_layers_swapped_fixed,
            alternating_window_layer_masks,
        ),
        batch=LONG_BATCH,
        symptoms=QUIET_SYMPTOMS,
    ),
    make_report(
        ("NVIDIA-NeMo/Megatron-Bridge#4875", to_say("Layers that count from 1")),
        to_say("The window was set on even layer numbers; Megatron counts from 1, Gemma 2's configuration from 0."),
        (
            "wrong-layer-pattern",
            megatron_bridge_layers_swapped_broken,
            megatron_bridge_layers_swapped_fixed,
            alternating_window_layer_masks,
        ),
        batch=LONG_BATCH,
        symptoms=QUIET_SYMPTOMS,
    ),
    make_report(
        ("vllm-project/vllm#21863", to_say("No window means the default window")),
        to_say(
            "Global layers of Gemma 3n had no window of their own, and fell back to that of the cache: all layers "
            "were local."
        ),
        ("wrong-layer-pattern", all_layers_local_broken, all_layers_local_fixed, alternating_window_layer_masks),
        batch=LONG_BATCH,
        symptoms=QUIET_SYMPTOMS,
    ),
    make_report(
        ("vllm-project/vllm-metal#282", to_say("sliding_window=-1, everywhere")),
        to_say("The window of each layer was known and a constant -1 was passed: all layers were global."),
        (
            "wrong-layer-pattern",
            vllm_metal_windows_lost_broken,
            vllm_metal_windows_lost_fixed,
            alternating_window_layer_masks,
        ),
        batch=LONG_BATCH,
        symptoms=QUIET_SYMPTOMS,
    ),
)


# Masks of images: Gemma 3 and 4, whose image tokens see each other in both directions.


_IMAGE, _SECOND_IMAGE = (1, 4), (5, 8)
_LONG_IMAGE, _WINDOW = (1, 7), 3
"""An image that is longer than the window of a local layer."""
IMAGE_BATCH = UNPADDED_BATCH | {"sizes": (8, 8)}
IMAGE_SYMPTOMS = (to_say("images are described badly"), to_say("text alone is right"))


def _make_within_image_mask(x: Batch, *images: tuple[int, int]) -> Tensor:
    """Return (Q, K) bool: cells within each image."""
    at, key = torch.arange(x.queries)[:, None], torch.arange(x.keys)
    inside = torch.zeros(x.queries, x.keys, dtype=torch.bool)
    for first, end in images:
        inside |= (at >= first) & (at < end) & (key >= first) & (key < end)
    return inside


def causal_with_images_mask(x: Batch) -> Tensor:
    """Two images in a causal text, each of which sees itself whole."""
    return causal_only_mask(x) | _make_within_image_mask(x, _IMAGE, _SECOND_IMAGE)


def image_in_window_mask(x: Batch) -> Tensor:
    """An image in a local layer: seen whole ahead, and back no farther than the window."""
    return (causal_only_mask(x) | _make_within_image_mask(x, _LONG_IMAGE)) & (key_distances(x) < _WINDOW)


def joined_images_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, causal_only_mask(x) | _make_within_image_mask(x, (_IMAGE[0], _SECOND_IMAGE[1])))


def joined_images_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, causal_with_images_mask(x))


def image_beyond_window_broken(x: Batch) -> Tensor:
    window = causal_only_mask(x) & (key_distances(x) < _WINDOW)
    return masked_softmax(
        x.scores, window | _make_within_image_mask(x, _LONG_IMAGE)
    )  # the image comes after the window


def image_in_window_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, image_in_window_mask(x))


def image_causal_in_window_broken(x: Batch) -> Tensor:
    return masked_softmax(
        x.scores, causal_only_mask(x) & (key_distances(x) < _WINDOW)
    )  # longer than the window: left out


def image_in_every_layer_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, causal_with_images_mask(x))  # this layer is global: causal alone


def image_in_every_layer_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, causal_only_mask(x))


IMAGE_REPORTS = (
    make_report(
        ("huggingface/transformers#38053", to_say("Images see later images")),
        to_say("Gemma 3: all image tokens saw each other, those of the next image too; each image sees itself alone."),
        ("leak", joined_images_broken, joined_images_fixed, causal_with_images_mask),
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
        ("over-blocked", image_causal_in_window_broken, image_in_window_fixed, image_in_window_mask),
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
