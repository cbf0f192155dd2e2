"""Every architectural choice as one frozen dataclass, and published architectures as presets.

Sources: Vaswani et al. (2017), "Attention Is All You Need", https://arxiv.org/abs/1706.03762 (section and equation
numbers below are its own); Rush et al., "The Annotated Transformer" (pre-norm, layer norm with std + eps); Xiong et
al. (2020), "On Layer Normalization in the Transformer Architecture" (pre- against post-norm).
"""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import Any, Literal, Self

from ..language import join_items, say, to_say

# The special tokens stand first in every vocabulary; nothing else in the project spells these numbers.
PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>")

DropoutPlace = Literal["embedding", "attention", "feed_forward", "sublayer"]
DROPOUT_PLACES: tuple[DropoutPlace, ...] = ("embedding", "attention", "feed_forward", "sublayer")


DEFAULT_FIELD_LIMIT = 2**20
FIELD_LIMITS = {"encoder_layers": 1024, "decoder_layers": 1024, "d_model": 2**16, "heads": 2**12}
"""The largest whole number of a field, `DEFAULT_FIELD_LIMIT` of the others: more is a mistake, and fills the memory."""


@dataclass(frozen=True)
class TransformerConfig:
    """The whole description of one architecture. Refuses combinations that cannot be built (ValueError)."""

    # Sizes
    vocab_size: int = 8000
    """V, of the source side; of both sides when ``shared_embedding``."""
    target_vocab_size: int = 8000
    """V of the target side."""
    d_model: int = 256
    """D, the width of the residual stream."""
    heads: int = 8
    """H in every attention; d = D / H."""
    encoder_layers: int = 4
    decoder_layers: int = 4
    feed_forward: int = 1024
    """Inner width of the position-wise feed-forward network, eq. (2)."""
    max_length: int = 512
    """Longest source or target in tokens, the special tokens included; rows of the positional table."""

    # Normalisation
    norm_order: Literal["pre", "post"] = "pre"
    """``post``: norm(x + sublayer(x)), section 3.1. ``pre``: x + sublayer(norm(x))."""
    final_norm: bool = True
    """One more norm after each stack."""
    norm_form: Literal["var_eps", "std_eps"] = "var_eps"
    """``var_eps``: (x - mean) / sqrt(var + eps), as nn.LayerNorm. ``std_eps``: (x - mean) / (sample std + eps)."""
    norm_eps: float = 1e-5

    # Attention
    scale_scores: bool = True
    """Divide the scores by sqrt(d), eq. (1)."""
    qkv_bias: bool = True
    output_bias: bool = True
    feed_forward_bias: bool = True

    # Embeddings and positions
    positions: Literal["sinusoidal", "sinusoidal_pad_row", "learned"] = "sinusoidal"
    """``sinusoidal_pad_row``: row 0 is all zero and stands for PAD, real positions count from 1."""
    scale_embedding: bool = True
    """Multiply token embeddings by sqrt(D), section 3.4."""
    shared_embedding: bool = True
    """One embedding matrix for source and target (needs one joint vocabulary)."""
    tied_generator: bool = True
    """The output projection is the target embedding transposed, section 3.4."""
    generator_bias: bool = False

    # Regularisation and initialisation
    dropout: float = 0.1
    dropout_places: tuple[DropoutPlace, ...] = DROPOUT_PLACES
    """``embedding``: after embedding + position. ``attention``: on the weights. ``feed_forward``: after its
    activation. ``sublayer``: on a sublayer's output before it is added."""
    init: Literal["xavier_uniform", "xavier_normal_embedding", "torch"] = "xavier_uniform"
    """``xavier_uniform`` on every matrix; the same but for embeddings from N(0, 1 / d_model), which the scale by
    sqrt(d_model) makes as large as the positions added to them (as tensor2tensor and fairseq begin); or whatever
    torch's own modules start with."""
    equal_layers: bool = False
    """All layers of a stack begin with the weights of its first, as copies of one layer do; they are trained apart."""

    preset: str = ""
    """Name of the preset this came from, for people to read; no effect on the model."""

    def __post_init__(self) -> None:
        if not isinstance(self.dropout_places, (list, tuple)):
            raise ValueError(
                say(
                    "dropout_places is {dropout_places!r}; it must be a list of places.",
                    dropout_places=self.dropout_places,
                )
            )
        object.__setattr__(self, "dropout_places", tuple(self.dropout_places))  # JSON has lists only
        self._check_types()
        if self.d_model % self.heads:
            raise ValueError(
                say("d_model ({d_model}) must be divisible by heads ({heads}).", d_model=self.d_model, heads=self.heads)
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(say("dropout is {dropout}; it must be at least 0 and below 1.", dropout=self.dropout))
        if not 0 < self.norm_eps < math.inf:  # nor NaN, which JSON may hold too
            raise ValueError(say("norm_eps is {norm_eps}; it must be above 0 and finite.", norm_eps=self.norm_eps))
        if self.shared_embedding and self.vocab_size != self.target_vocab_size:
            raise ValueError(
                say(
                    "A shared embedding needs one joint vocabulary, but the source side has {vocab_size} pieces "
                    "and the target side {target_vocab_size}.",
                    vocab_size=self.vocab_size,
                    target_vocab_size=self.target_vocab_size,
                )
            )
        if min(self.vocab_size, self.target_vocab_size) <= len(SPECIAL_PIECES):
            raise ValueError(
                say(
                    "A vocabulary needs more than its {count} special pieces.",
                    count=len(SPECIAL_PIECES),
                )
            )
        if self.norm_form == "std_eps" and self.d_model == 1:
            raise ValueError(say("A sample standard deviation (norm_form 'std_eps') needs a d_model of at least 2."))
        for field in dataclasses.fields(self):
            self._check_choice(field.name)

    def _check_types(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if type(value) is int and value > FIELD_LIMITS.get(field.name, DEFAULT_FIELD_LIMIT):
                raise ValueError(
                    say(
                        "{field} is {value:,}; it is at most {largest:,}.",
                        field=field.name,
                        value=value,
                        largest=FIELD_LIMITS.get(field.name, DEFAULT_FIELD_LIMIT),
                    )
                )
            if isinstance(field.default, bool):
                if not isinstance(value, bool):
                    raise ValueError(
                        say("{field} is {value!r}; it must be true or false.", field=field.name, value=value)
                    )
            elif isinstance(field.default, int) and (type(value) is not int or value < 1):
                raise ValueError(
                    say("{field} is {value!r}; it must be a whole number of at least 1.", field=field.name, value=value)
                )

    def _check_choice(self, name: str) -> None:
        allowed = FIELD_CHOICES.get(name)
        if allowed is None:
            return
        value = getattr(self, name)
        for one in value if isinstance(value, tuple) else (value,):
            if one not in allowed:
                raise ValueError(
                    say(
                        "{name} is {value!r}; it must be one of {known}.",
                        name=name,
                        value=one,
                        known=join_items(map(repr, allowed)),
                    )
                )

    @property
    def d_head(self) -> int:
        """d, the width of one head."""
        return self.d_model // self.heads

    def dropout_at(self, place: DropoutPlace) -> float:
        """The dropout probability at one of the four places."""
        return self.dropout if place in self.dropout_places else 0.0

    def differences(self, other: TransformerConfig) -> dict[str, tuple[Any, Any]]:
        """Fields in which the two differ, name -> (mine, theirs); the preset's name is not counted."""
        names = (field.name for field in dataclasses.fields(self) if field.name != "preset")
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in names}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what :meth:`to_json` wrote. Raises ValueError with a sentence for anything else."""
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(say("This is not a JSON configuration: {error}.", error=error)) from error
        if not isinstance(values, dict):
            raise ValueError(say("A configuration is a JSON object of field names and values."))
        known = {field.name for field in dataclasses.fields(cls)}
        if unknown := sorted(set(values) - known):
            raise ValueError(say("Unknown configuration fields: {unknown}.", unknown=join_items(unknown)))
        try:
            return cls(**values)
        except TypeError as error:
            raise ValueError(
                say("A configuration field has a value of the wrong type: {error}.", error=error)
            ) from error


FIELD_CHOICES: dict[str, tuple[str, ...]] = {
    "norm_order": ("pre", "post"),
    "norm_form": ("var_eps", "std_eps"),
    "positions": ("sinusoidal", "sinusoidal_pad_row", "learned"),
    "dropout_places": DROPOUT_PLACES,
    "init": ("xavier_uniform", "xavier_normal_embedding", "torch"),
}

# Published architectures as presets: five sets of notes, and the paper itself.
#
# A preset fixes the numbers that a model computes; sizes, like any field, can be given otherwise. What its source
# leaves open was chosen here: :data:`FIELDS_FROM_SOURCE` lists the fields that were not.


_BASE_FIELDS = {
    "d_model": 512,
    "heads": 8,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "feed_forward": 2048,
    "dropout": 0.1,
}

PRESETS: dict[str, dict[str, Any]] = {
    "pad_row": _BASE_FIELDS
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
    "torch_like": _BASE_FIELDS
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
    "annotated": _BASE_FIELDS
    | {
        "norm_form": "std_eps",
        "norm_eps": 1e-6,
        "shared_embedding": False,
        "tied_generator": False,
        "generator_bias": True,
        "max_length": 5000,
    },
    "original": _BASE_FIELDS
    | {"shared_embedding": False, "tied_generator": False, "generator_bias": True, "max_length": 5000},
    "shared_bpe": _BASE_FIELDS
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
    "vaswani2017": _BASE_FIELDS
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

PRESET_SOURCES = {
    "pad_row": to_say("notes whose table of positions has a zero row for PAD"),
    "torch_like": to_say("notes that follow the interface of nn.Transformer"),
    "annotated": to_say("notes after The Annotated Transformer"),
    "original": to_say("notes that call their model the original Transformer"),
    "shared_bpe": to_say("notes on translation with one joint vocabulary"),
    "vaswani2017": to_say("the base model of Vaswani et al. (2017)"),
}
ORIGINAL_PRESET_NOTE = to_say(
    "The preset original is not the paper's model: as in its notes it is pre-norm with a final norm after each stack, "
    "and its source embedding, target embedding and generator are three matrices. The paper's own is vaswani2017: "
    "post-norm without final norms, one matrix for all three, no biases in the attention and no dropout on its weights."
)

_SIZE_FIELDS = {"d_model", "heads", "encoder_layers", "decoder_layers", "feed_forward"}
_BIAS_FIELDS = {"qkv_bias", "output_bias", "feed_forward_bias"}

FIELDS_FROM_SOURCE: dict[str, frozenset[str]] = {
    "pad_row": frozenset({"positions", "norm_form", "norm_eps", "dropout_places"}),
    "torch_like": frozenset(
        _SIZE_FIELDS
        | {"max_length", "positions", "scale_embedding", "shared_embedding", "tied_generator", "generator_bias"}
        | {"norm_order", "norm_form", "norm_eps", "qkv_bias", "output_bias", "dropout_places", "equal_layers"}
    ),
    "annotated": frozenset(
        {"encoder_layers", "decoder_layers", "norm_order", "final_norm", "norm_form", "norm_eps", "dropout_places"}
    ),
    "original": frozenset(
        _SIZE_FIELDS
        | _BIAS_FIELDS
        | {"max_length", "norm_order", "final_norm", "scale_embedding", "dropout", "dropout_places", "init"}
    ),
    "shared_bpe": frozenset(
        _SIZE_FIELDS
        | _BIAS_FIELDS
        | {"vocab_size", "target_vocab_size", "max_length", "positions", "scale_embedding", "shared_embedding"}
        | {"norm_order", "final_norm", "norm_form", "norm_eps", "dropout_places"}
    ),
    "vaswani2017": frozenset(
        _SIZE_FIELDS  # table 3, base
        | {"vocab_size", "target_vocab_size"}  # section 5.1
        | {"norm_order", "final_norm"}  # section 3.1
        | {"scale_scores", "qkv_bias", "output_bias", "feed_forward_bias"}  # equations 1 and 2, section 3.2.2
        | {"positions", "scale_embedding", "shared_embedding", "tied_generator"}  # sections 3.4 and 3.5
        | {"dropout", "dropout_places"}  # section 5.4
    ),
}
"""The fields that the source fixes; of ``dropout_places`` at least some places."""


def make_preset_config(name: str, **overrides: Any) -> TransformerConfig:
    """Return one of :data:`PRESETS` by name, with any field overridden, so that a small copy keeps its numerics."""
    if name not in PRESETS:
        raise ValueError(
            say("There is no preset {name!r}; the presets are {presets}.", name=name, presets=join_items(PRESETS))
        )
    return TransformerConfig(**{**PRESETS[name], "preset": name, **overrides})
