"""Reports of windows, and of layers that alternate between windows and everything."""

from __future__ import annotations

import torch
from torch import Tensor

from ...language.say import to_say
from ..attention import masked_softmax
from ..batch import Batch
from ..layer_pairs import LAYERS, age, local_and_global
from ..mask_pairs import WINDOW
from ..recipe import UNPADDED, window
from .report import report
from .symptoms import QUIET

LONG = UNPADDED | {"sizes": (8, 8)}
CACHE = {"cross": True, "padded": False, "sizes": (3, 8)}


def inclusive(x: Batch, left: int, right: int) -> Tensor:
    """The window of FlashAttention, whose ends both count."""
    return (age(x) <= left) & (age(x) >= -right)


def flash_window_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal & inclusive(x, WINDOW, WINDOW))


def flash_window_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal & inclusive(x, WINDOW - 1, WINDOW - 1))


def mlx_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal & (age(x) < WINDOW + 1))


def mlx_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal & (age(x) < WINDOW))


def lookahead(x: Batch) -> Tensor:
    """Return (Q, K) bool: two frames back and two ahead."""
    return (age(x) <= 2) & (-age(x) <= 2)


def moonshine_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, (age(x) <= 2) & (-age(x) < 2))


def moonshine_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, lookahead(x))


def sdpa_path_broken(x: Batch) -> Tensor:
    window_size = None  # handed to the flash path alone
    return masked_softmax(x.scores, x.causal if window_size is None else x.causal & (age(x) < window_size))


def sdpa_path_fixed(x: Batch) -> Tensor:
    window_size: int | None = WINDOW
    return masked_softmax(x.scores, x.causal if window_size is None else x.causal & (age(x) < window_size))


def by_layer(x: Batch, is_local: list[bool]) -> Tensor:
    """Weights (B, L, H, Q, K) with a window in the local layers."""
    near = x.causal & (age(x) < WINDOW)
    return torch.stack([masked_softmax(x.scores, near if local else x.causal) for local in is_local], 1)


def gemma_fixed(x: Batch) -> Tensor:
    return by_layer(x, [not layer % 2 for layer in range(LAYERS)])


def gemma_broken(x: Batch) -> Tensor:
    return by_layer(x, [bool(layer % 2) for layer in range(LAYERS)])


def lens_broken(x: Batch) -> Tensor:
    attn_types = ["global", "local"] * (LAYERS // 2)
    return by_layer(x, [kind == "local" for kind in attn_types])


def lens_fixed(x: Batch) -> Tensor:
    attn_types = ["local", "global"] * (LAYERS // 2)
    return by_layer(x, [kind == "local" for kind in attn_types])


def bridge_broken(x: Batch) -> Tensor:
    numbers = range(1, LAYERS + 1)  # Megatron counts layers from 1
    return by_layer(x, [number % 2 == 0 for number in numbers])


def bridge_fixed(x: Batch) -> Tensor:
    numbers = range(1, LAYERS + 1)
    return by_layer(x, [number % 2 == 1 for number in numbers])


def all_local_broken(x: Batch) -> Tensor:
    per_layer: list[int | None] = [WINDOW, None] * (LAYERS // 2)
    return by_layer(x, [(size or WINDOW) < x.keys for size in per_layer])  # None falls back to the cache's window


def all_local_fixed(x: Batch) -> Tensor:
    per_layer: list[int | None] = [WINDOW, None] * (LAYERS // 2)
    return by_layer(x, [size is not None for size in per_layer])


def metal_broken(x: Batch) -> Tensor:
    windows = [-1] * LAYERS  # hardcoded
    return by_layer(x, [size > 0 for size in windows])


def metal_fixed(x: Batch) -> Tensor:
    windows = [WINDOW, -1] * (LAYERS // 2)
    return by_layer(x, [size > 0 for size in windows])


REPORTS = (
    report(
        ("huggingface/transformers#39408", to_say("sliding_window on both sides, inclusive")),
        to_say(
            "FlashAttention counts both ends of window_size: given the window itself, each query sees one key more."
        ),
        ("window-off-by-one", flash_window_broken, flash_window_fixed, window),
        batch=LONG,
        symptoms=(to_say("two libraries disagree by one key"), to_say("only with flash attention")),
    ),
    report(
        ("ml-explore/mlx-lm#390", to_say("One value too many in the window")),
        to_say("Prompts were read with a window of W + 1, the rotating cache kept W."),
        ("window-off-by-one", mlx_broken, mlx_fixed, window),
        batch=LONG,
        symptoms=(to_say("two libraries disagree by one key"),),
    ),
    report(
        ("huggingface/transformers#47010", to_say("A frame of lookahead is missing")),
        to_say(
            "The right end of a streaming window was compared with < where <= was meant: three frames ahead, not four."
        ),
        ("window-off-by-one", moonshine_broken, moonshine_fixed, lookahead),
        batch=LONG,
    ),
    report(
        ("unslothai/unsloth#8253", to_say("The window never reached sdpa")),
        to_say(
            "The flash path was given the window, the sdpa path fell through to is_causal: training saw the whole past."
        ),
        ("window-missing", sdpa_path_broken, sdpa_path_fixed, window),
        batch=LONG,
        symptoms=QUIET,
    ),
    report(
        ("huggingface/transformers#31775", to_say("Gemma 2: global where it should be local")),
        to_say("Sliding layers were 1, 3, 5, ... and in the original they are 0, 2, 4, ..."),
        ("wrong-layer-pattern", gemma_broken, gemma_fixed, local_and_global),
        batch=LONG,
        symptoms=QUIET,
    ),
    report(
        ("TransformerLensOrg/TransformerLens#778", to_say("The same order, hardcoded")),
        to_say('attn_types = ["global", "local"] * 21 for Gemma 2, whose first layer is local.'),
        ("wrong-layer-pattern", lens_broken, lens_fixed, local_and_global),
        batch=LONG,
        symptoms=QUIET,
    ),
    report(
        ("NVIDIA-NeMo/Megatron-Bridge#4875", to_say("Layers that count from 1")),
        to_say("The window was set on even layer numbers; Megatron counts from 1, Gemma 2's configuration from 0."),
        ("wrong-layer-pattern", bridge_broken, bridge_fixed, local_and_global),
        batch=LONG,
        symptoms=QUIET,
    ),
    report(
        ("vllm-project/vllm#21863", to_say("No window means the default window")),
        to_say(
            "Global layers of Gemma 3n had no window of their own, and fell back to that of the cache: all layers "
            "were local."
        ),
        ("wrong-layer-pattern", all_local_broken, all_local_fixed, local_and_global),
        batch=LONG,
        symptoms=QUIET,
    ),
    report(
        ("vllm-project/vllm-metal#282", to_say("sliding_window=-1, everywhere")),
        to_say("The window of each layer was known and a constant -1 was passed: all layers were global."),
        ("wrong-layer-pattern", metal_broken, metal_fixed, local_and_global),
        batch=LONG,
        symptoms=QUIET,
    ),
)
