"""Published architectures as presets: five sets of notes, and the paper itself.

A preset fixes the numbers that a model computes; sizes, like any field, can be given otherwise. What its source leaves
open was chosen here: :data:`FROM_SOURCE` lists the fields that were not.
"""

from __future__ import annotations

from typing import Any

from ..language.say import listed, say, to_say
from .config import TransformerConfig

_BASE = {"d_model": 512, "heads": 8, "encoder_layers": 6, "decoder_layers": 6, "feed_forward": 2048, "dropout": 0.1}

PRESETS: dict[str, dict[str, Any]] = {
    "pad_row": _BASE
    | {
        "positions": "sinusoidal_pad_row",
        "norm_order": "post",
        "final_norm": False,
        "norm_form": "std_eps",
        "norm_eps": 1e-6,
        "shared_embedding": False,
        "tied_generator": False,
        "scale_embedding": False,
        "init": "torch",  # embeddings of variance 1: Xavier's would be far shorter than the positions added to them
    },
    "torch_like": _BASE
    | {
        "norm_order": "post",
        "final_norm": False,
        "qkv_bias": False,
        "output_bias": False,
        "shared_embedding": False,
        "tied_generator": False,
        "generator_bias": True,
        "max_length": 5000,
        "init": "torch",
        "equal_layers": True,
    },
    "annotated": _BASE
    | {
        "norm_form": "std_eps",
        "norm_eps": 1e-6,
        "shared_embedding": False,
        "tied_generator": False,
        "generator_bias": True,
        "max_length": 5000,
    },
    "original": _BASE
    | {"shared_embedding": False, "tied_generator": False, "generator_bias": True, "max_length": 5000},
    "shared_bpe": _BASE
    | {
        "vocab_size": 10000,
        "target_vocab_size": 10000,
        "norm_order": "post",
        "final_norm": False,
        "scale_embedding": False,
        "tied_generator": False,
        "generator_bias": True,
        "max_length": 5000,
        "dropout_places": ("embedding", "feed_forward", "sublayer"),
        "init": "torch",
    },
    "vaswani2017": _BASE
    | {
        "vocab_size": 37000,
        "target_vocab_size": 37000,
        "norm_order": "post",
        "final_norm": False,
        "qkv_bias": False,
        "output_bias": False,
        "max_length": 5000,
        "dropout_places": ("embedding", "sublayer"),
        "init": "xavier_normal_embedding",
    },
}
"""What differs from the fields' defaults."""

SOURCES = {
    "pad_row": to_say("notes whose table of positions has a zero row for PAD"),
    "torch_like": to_say("notes that follow the interface of nn.Transformer"),
    "annotated": to_say("notes after The Annotated Transformer"),
    "original": to_say("notes that call their model the original Transformer"),
    "shared_bpe": to_say("notes on translation with one joint vocabulary"),
    "vaswani2017": to_say("the base model of Vaswani et al. (2017)"),
}
ORIGINAL = to_say(
    "The preset original is not the paper's model: as in its notes it is pre-norm with a final norm after each stack, "
    "and its source embedding, target embedding and generator are three matrices. The paper's own is vaswani2017: "
    "post-norm without final norms, one matrix for all three, no biases in the attention and no dropout on its weights."
)

_SIZES = {"d_model", "heads", "encoder_layers", "decoder_layers", "feed_forward"}
_BIASES = {"qkv_bias", "output_bias", "feed_forward_bias"}

FROM_SOURCE: dict[str, frozenset[str]] = {
    "pad_row": frozenset({"positions", "norm_form", "norm_eps", "dropout_places"}),
    "torch_like": frozenset(
        _SIZES
        | {"max_length", "positions", "scale_embedding", "shared_embedding", "tied_generator", "generator_bias"}
        | {"norm_order", "norm_form", "norm_eps", "qkv_bias", "output_bias", "dropout_places", "equal_layers"}
    ),
    "annotated": frozenset(
        {"encoder_layers", "decoder_layers", "norm_order", "final_norm", "norm_form", "norm_eps", "dropout_places"}
    ),
    "original": frozenset(
        _SIZES
        | _BIASES
        | {"max_length", "norm_order", "final_norm", "scale_embedding", "dropout", "dropout_places", "init"}
    ),
    "shared_bpe": frozenset(
        _SIZES
        | _BIASES
        | {"vocab_size", "target_vocab_size", "max_length", "positions", "scale_embedding", "shared_embedding"}
        | {"norm_order", "final_norm", "norm_form", "norm_eps", "dropout_places"}
    ),
    "vaswani2017": frozenset(
        _SIZES  # table 3, base
        | {"vocab_size", "target_vocab_size"}  # section 5.1
        | {"norm_order", "final_norm"}  # section 3.1
        | {"scale_scores", "qkv_bias", "output_bias", "feed_forward_bias"}  # equations 1 and 2, section 3.2.2
        | {"positions", "scale_embedding", "shared_embedding", "tied_generator"}  # sections 3.4 and 3.5
        | {"dropout", "dropout_places"}  # section 5.4
    ),
}
"""The fields that the source fixes; of ``dropout_places`` at least some places."""


def preset(name: str, **overrides: Any) -> TransformerConfig:
    """One of :data:`PRESETS` by name, with any field overridden, so that a small copy keeps its numerics."""
    if name not in PRESETS:
        raise ValueError(
            say("There is no preset {name!r}; the presets are {presets}.", name=name, presets=listed(PRESETS))
        )
    return TransformerConfig(**{**PRESETS[name], "preset": name, **overrides})
