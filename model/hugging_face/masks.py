"""The masks of an architecture without its weights: one small layer of each kind, built from a configuration and run.

What decides a mask is kept (kinds of layers, windows, chunks, spans of images); what does not is made narrow, and
random. A folder needs no more than ``config.json``; where it has a tokenizer, the text is read by it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import (
    CONFIG_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    MODEL_MAPPING,
    AutoConfig,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
)

from ..capture.attention import Capture, capture_attention
from ..language import say, to_say
from ..masks.diagnose import diagnose
from ..masks.findings import Diagnosis
from ..masks.index_ranges import find_runs
from ..masks.softmax import count_extra_keys
from ..masks.structure import recognise_structure
from ..runnable_model import LocalError
from ..trace import KINDS, Kind
from .folder import convert_failure_to_local_error, read_checked_config

KERNELS = ("eager", "sdpa", "flex_attention")
"""Implementations of attention that are tried."""
MAX_TOKENS = 2048
"""Most tokens of a text."""
MAX_PARAMETERS = 20_000_000
"""Most parameters of a model that was made small: a configuration may have sizes of other names."""
IMAGE_MARK, AUDIO_MARK = "<image>", "<audio>"
"""Words that stand for one token of an image or of sound."""
_PAD_ID, _BEGIN_ID, _END_ID, _IMAGE_ID, _AUDIO_ID, _FIRST_WORD_ID, _VOCABULARY = 0, 1, 2, 3, 4, 5, 256
_WIDTH, _HEADS, _HEAD_WIDTH = 32, 2, 16
_NARROW: tuple[tuple[str, Any], ...] = (
    (r"(.*_)?(hidden_size|d_model|n_embd|embed_dim|word_embed_proj_dim|embedding_size)|dim", _WIDTH),
    (r".*(intermediate_size|ffn_dim|d_ff|n_inner|ffn_hidden_size|mlp_dim)|hidden_dim|ffn_config", 2 * _WIDTH),
    (r"(.*_)?(num_attention_heads|attention_heads|num_heads|n_heads?)", _HEADS),
    (r"num_key_value_heads|n_head_kv|num_kv_heads|num_global_key_value_heads", 1),
    (r"head_dim|d_kv|global_head_dim|attention_head_size|qk_nope_head_dim|qk_rope_head_dim|v_head_dim", _HEAD_WIDTH),
    (r"(num_|n_)(local_|routed_|shared_)?experts", 2),
    (r"num_experts_per_tok|top_k_experts|moe_topk|n_group|topk_group", 1),
    (r"(.*_)?vocab_size(_.*)?|vocab_size_per_layer_input", _VOCABULARY),
    (r"image_size", 28),
    (r"patch_size", 14),
    (r"(.*_)?(lora_rank|hidden_size_per_layer_input)", _HEAD_WIDTH),
    (r"num_mel_bins", 8),
)
"""Names of a configuration that no mask depends on, and what is put there."""
_LAYER_NAMES = re.compile(r"(num_hidden_layers|n_layers?|num_layers|(?:num_)?(?:en|de)coder_layers)")
_TOKEN_IDS = {
    **{
        "pad_token_id": _PAD_ID,
        "bos_token_id": _BEGIN_ID,
        "decoder_start_token_id": _BEGIN_ID,
        "cls_token_id": _BEGIN_ID,
    },
    **{"eos_token_id": _END_ID, "sep_token_id": _END_ID, "forced_eos_token_id": None, "forced_bos_token_id": None},
    **dict.fromkeys(("image_token_id", "image_token_index", "video_token_id"), _IMAGE_ID),
    **dict.fromkeys(("audio_token_id", "audio_token_index"), _AUDIO_ID),
    **dict.fromkeys(("boi_token_id", "boi_token_index", "eoi_token_id", "eoi_token_index"), _END_ID),
    **{"suppress_tokens": None, "begin_suppress_tokens": None},
}
_TEXT_PARTS = ("text", "decoder", "llm", "thinker")
"""What the names of configurations of texts, inside of others, begin with."""
_LEFT_OUT = ("rope_scaling", "quantization_config", "max_window_layers", "num_kv_shared_layers")
_LISTS_OF_LAYERS = ("layer_types", "mlp_layer_types", "layers_block_type")
_TYPES_WITH_SPANS = ("gemma3",)
"""Models whose image tokens see each other in both directions."""


@dataclass(frozen=True, eq=False)
class LayerMask:
    """The mask of one kind of layer, by the kernels that apply it so."""

    map: Kind
    layer_kind: str
    """As the configuration calls it, such as ``sliding_attention``; empty where all layers are alike."""
    layers: tuple[int, ...]
    """The layers of the whole model that are of this kind, counted from 0."""
    kernels: tuple[str, ...]
    allowed: np.ndarray
    """(Q, K) bool, True = may attend, without keys that are no tokens, such as sinks."""
    meant: str
    """What the configuration says that it should be."""
    diagnosis: Diagnosis | None = None
    """Against that."""

    @property
    def words(self) -> str:
        """The mask in force, in words."""
        found = recognise_structure(self.allowed, np.ones_like(self.allowed))
        return say("a mask of its own kind") if found is None else found.words()


@dataclass(frozen=True, eq=False)
class ArchitectureMasks:
    """The masks of all kinds of layers of one architecture, on one text."""

    model: str
    """The class that was built."""
    tokens: tuple[str, ...]
    masks: tuple[LayerMask, ...]
    left_out: Mapping[str, str]
    """By kernel that this model does not run with: why, as transformers says it."""


def read_architecture_masks(folder: Path, text: str, kernels: Sequence[str] = KERNELS) -> ArchitectureMasks:
    """Return the masks of the architecture of a folder on a text. Raises LocalError.

    Nothing but the configuration and the tokenizer is read, and no code of the folder runs.
    """
    config = _read_configuration(folder)
    tokens = _tokenize_text(folder, text)
    return build_architecture_masks(config, tokens, kernels)


def build_architecture_masks(
    config: PreTrainedConfig, tokens: Sequence[str], kernels: Sequence[str] = KERNELS
) -> ArchitectureMasks:
    """Return the masks of an architecture on tokens. Raises LocalError."""
    if not 0 < len(tokens) <= MAX_TOKENS:
        raise LocalError(say("A text has 1 to {most} tokens here, not {count}.", most=MAX_TOKENS, count=len(tokens)))
    kind = _find_model_class(config)
    layer_kinds = _list_layer_kinds(config)
    small = shrink_configuration(config, list(dict.fromkeys(layer_kinds)))
    meanings = _list_intended_masks(config, list(dict.fromkeys(layer_kinds)), tokens)
    _check_architecture_is_small(kind, small)
    masks: list[LayerMask] = []
    left_out: dict[str, str] = {}
    for kernel in kernels:
        try:
            capture = _capture_small_model_attention(kind, small, kernel, tokens)
        except Exception as error:  # transformers raises anything
            left_out[kernel] = " ".join(str(error).split())[:200]
            continue
        for one in _list_captured_masks(capture, kernel, layer_kinds, meanings):
            same = next((at for at, other in enumerate(masks) if _is_same_mask(one, other)), None)
            if same is None:
                masks.append(replace(one, diagnosis=_judge_mask(one)))
            else:
                masks[same] = replace(masks[same], kernels=(*masks[same].kernels, kernel))
    if not masks:
        reason = next(iter(left_out.values()), "")
        raise LocalError(say("{model} cannot be run without weights: {reason}", model=kind.__name__, reason=reason))
    return ArchitectureMasks(kind.__name__, tuple(tokens), tuple(masks), left_out)


def _read_configuration(folder: Path) -> PreTrainedConfig:
    """Return the configuration of a folder. Raises LocalError."""
    named = read_checked_config(folder)["model_type"]
    if named not in CONFIG_MAPPING:
        raise LocalError(say("transformers has no model of the type {type}.", type=named[:80]))
    with convert_failure_to_local_error(
        folder, to_say("{folder}: transformers {version} does not understand its configuration.")
    ):
        config: PreTrainedConfig = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    return config


def _tokenize_text(folder: Path, text: str) -> list[str]:
    """Return the tokens of a text by the folder's tokenizer, or its words where it has none; marks stay whole."""
    if not any((folder / name).exists() for name in ("tokenizer.json", "tokenizer_config.json", "tokenizer.model")):
        return text.split()
    with convert_failure_to_local_error(
        folder, to_say("{folder}: transformers {version} cannot read its tokenizer, or it has none.")
    ):
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    parts = re.split(f"({IMAGE_MARK}|{AUDIO_MARK})", text)
    pieces = ([part] if part in (IMAGE_MARK, AUDIO_MARK) else tokenizer.tokenize(part) for part in parts)
    return [piece for part in pieces for piece in part]


def _find_model_class(config: PreTrainedConfig) -> type[PreTrainedModel]:
    """Return the class that the configuration names, or the one for its type. Raises LocalError."""
    for name in getattr(config, "architectures", None) or ():
        kind: Any = getattr(transformers, str(name), None)
        own: Any = getattr(kind, "config_class", None) or ()
        if isinstance(kind, type) and issubclass(kind, PreTrainedModel) and isinstance(config, own):
            return kind
    kind = MODEL_MAPPING.get(type(config), None)
    if kind is None:
        raise LocalError(say("transformers has no model of the type {type}.", type=config.model_type))
    assert issubclass(kind, PreTrainedModel)
    return kind


def _list_layer_kinds(config: PreTrainedConfig) -> tuple[str, ...]:
    """Return the kind of each layer, as the configuration calls it; one empty name a layer where it calls none."""
    text = config.get_text_config(decoder=True)
    kinds = getattr(text, "layer_types", None)
    if kinds:
        return tuple(map(str, kinds))
    names = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "decoder_layers")
    count = next((value for name in names if isinstance(value := getattr(text, name, None), int)), 1)
    return ("",) * max(count, 1)


def shrink_configuration(config: PreTrainedConfig, layer_kinds: Sequence[str]) -> PreTrainedConfig:
    """Return the configuration of a model with one layer of each kind, narrow, with a small vocabulary."""
    values = config.to_dict()
    _shrink_configuration_values(values, list(layer_kinds))
    return type(config).from_dict(values)


def _shrink_configuration_values(values: dict[str, Any], layer_kinds: list[str]) -> None:
    """Change the sizes in a configuration, and in those inside of it, in place."""
    for name, value in list(values.items()):
        if isinstance(value, dict) and name.endswith("_config"):
            _shrink_configuration_values(value, layer_kinds if name.startswith(_TEXT_PARTS) else [""])
        elif name in _LEFT_OUT:
            values.pop(name)
        elif name == "rope_parameters" and value:
            values[name] = _reset_rope_to_default(value)
        elif name in _TOKEN_IDS:
            values[name] = _TOKEN_IDS[name]
        else:
            values[name] = _shrink_configuration_value(name, value, layer_kinds)


def _shrink_configuration_value(name: str, value: Any, layer_kinds: list[str]) -> Any:
    """Return what takes the place of one value of a configuration."""
    if isinstance(value, list) and value and name in _LISTS_OF_LAYERS:
        return layer_kinds if name == "layer_types" else value[: len(layer_kinds)]
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    if _LAYER_NAMES.fullmatch(name):
        return len(layer_kinds)
    if name.startswith("max_") and name.endswith(("positions", "embeddings")):
        return min(value, 2 * MAX_TOKENS)
    return next((small for names, small in _NARROW if re.fullmatch(names, name)), value)


def _reset_rope_to_default(value: dict[str, Any]) -> dict[str, Any]:
    """Return rotary positions of the default kind: their tables depend on the width, and masks on none of it."""
    if any(isinstance(one, dict) for one in value.values()):
        return {name: _reset_rope_to_default(one) if isinstance(one, dict) else one for name, one in value.items()}
    return {"rope_type": "default", "rope_theta": 10000.0}


def _check_architecture_is_small(kind: type[PreTrainedModel], config: PreTrainedConfig) -> None:
    """Raise LocalError for an architecture that is not small."""
    try:
        with torch.device("meta"):
            parameters = sum(one.numel() for one in kind._from_config(config).parameters())
    except Exception:  # Each kernel says why it cannot be built.
        return
    if parameters > MAX_PARAMETERS:
        raise LocalError(
            say(
                "Made small, this architecture still has {count:,} parameters; {most:,} are built.",
                count=parameters,
                most=MAX_PARAMETERS,
            )
        )


def _capture_small_model_attention(
    kind: type[PreTrainedModel], config: PreTrainedConfig, kernel: str, tokens: Sequence[str]
) -> Capture:
    """Return what a small model with random weights attends to."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = kind._from_config(config, attn_implementation=kernel).eval()
    given = _make_inputs(model, tokens)
    with torch.no_grad(), capture_attention(model) as capture:
        model(**given)
    return capture


def _make_inputs(model: PreTrainedModel, tokens: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of a call on the tokens; sound in place of a text where the model hears."""
    marks = {IMAGE_MARK: _IMAGE_ID, AUDIO_MARK: _AUDIO_ID}
    words: dict[str, int] = {}
    room = _VOCABULARY - _FIRST_WORD_ID
    numbers = [marks.get(one, _FIRST_WORD_ID + words.setdefault(one, len(words)) % room) for one in tokens]
    ids = torch.tensor([numbers], device=model.device)
    takes = inspect.signature(model.forward).parameters
    given: dict[str, Any] = {"use_cache": False} if "use_cache" in takes else {}
    if model.main_input_name == "input_features":
        config = model.config
        frames = 2 * config.max_source_positions
        sound = torch.zeros(1, config.num_mel_bins, frames, device=model.device)
        return given | {"input_features": sound, "decoder_input_ids": ids}
    if model.config.is_encoder_decoder:
        given["decoder_input_ids"] = ids
    if "token_type_ids" in takes and IMAGE_MARK in tokens:
        given["token_type_ids"] = (ids == _IMAGE_ID).long()
    return given | {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def _list_intended_masks(config: PreTrainedConfig, layer_kinds: Sequence[str], tokens: Sequence[str]) -> dict[str, str]:
    """Return what the mask of each kind of layer of a decoder, or of an encoder alone, should be, by its kind."""
    text = config.get_text_config(decoder=True)
    spans = (
        "".join(f"+span:{first + 1}-{end}" for first, end in _find_image_spans(tokens))
        if _has_image_spans(config)
        else ""
    )
    two_ways = _is_encoder_only(config)
    found = {}
    for kind in layer_kinds:
        window = getattr(text, "sliding_window", None) if kind in ("sliding_attention", "") else None
        chunk = getattr(text, "attention_chunk_size", None) if kind == "chunked_attention" else None
        base = "full" if two_ways else "causal"
        if kind == "sliding_attention" and two_ways:
            window = getattr(text, "local_attention", 2 * (window or 0)) // 2 + 1
        found[kind] = base + (f"+window:{window}" if window else "") + (f"+chunked:{chunk}" if chunk else "") + spans
    return found


def _is_encoder_only(config: PreTrainedConfig) -> bool:
    """Whether the model is an encoder alone: one of a type that fills gaps, and is not said to write."""
    writes = config.is_encoder_decoder or getattr(config, "is_decoder", False)
    return not writes and type(config) in MODEL_FOR_MASKED_LM_MAPPING


def _has_image_spans(config: PreTrainedConfig) -> bool:
    return config.model_type in _TYPES_WITH_SPANS


def _find_image_spans(tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Return the first and one past the last of each run of two or more image tokens."""
    runs = find_runs(np.array([one == IMAGE_MARK for one in tokens]))
    return [(first, end) for first, end in runs if end - first > 1]


def _list_captured_masks(
    capture: Capture, kernel: str, layer_kinds: Sequence[str], meanings: Mapping[str, str]
) -> list[LayerMask]:
    """Return the masks of a capture, one for each kind of attention and of layer."""
    trace = capture.sample(0)
    kinds = list(dict.fromkeys(layer_kinds))
    whole = {kind: tuple(at for at, one in enumerate(layer_kinds) if one == kind) for kind in kinds}
    found = []
    for name in KINDS:
        attention = trace.maps.get(name)
        if attention is None:
            continue
        extra = count_extra_keys(len(attention.query_tokens), attention.key_tokens)
        masks = np.broadcast_to(attention.masks, (attention.layers, *attention.masks.shape[1:]))
        masks = np.asarray(masks.all(1))
        masks = masks[..., : masks.shape[-1] - extra]
        alone = "decoder" not in trace.maps and "cross" not in trace.maps
        main = name == "decoder" or (name == "encoder" and alone)
        for at in range(attention.layers if main else 1):
            kind = kinds[at] if main and len(kinds) == attention.layers else ""
            meant = meanings.get(kind, "causal") if main else "full"
            shown: Kind = "decoder" if main and meant.startswith("causal") else name
            found.append(LayerMask(shown, kind, whole.get(kind, (at,)), (kernel,), masks[at], meant))
    return found


def _is_same_mask(one: LayerMask, other: LayerMask) -> bool:
    return (one.map, one.layer_kind) == (other.map, other.layer_kind) and np.array_equal(one.allowed, other.allowed)


def _judge_mask(one: LayerMask) -> Diagnosis:
    return diagnose(mask=one.allowed, meant=one.meant, map=one.map)
