"""What is said of an entry of the gallery, and the symptoms that several entries share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EntryText:
    """What is said of one entry."""

    title: str
    symptoms: tuple[str, ...]
    """What a person notices first; searched beside the rest."""
    how: str
    met: str
    """Where it was seen, and whose notes say so."""
    fix: str = ""
    """A line to copy, where the catalogue's own does not fit."""


NAN = "the loss is NaN"
BATCH = "the translation changes with its batch or the padding"
COPIES = "the model copies the next token"
GOOD_LOSS = "the training loss is too good to be true"
BAD = "the translation is poor though training went well"
SUMS = "rows do not sum to 1"
CACHE = "with a cache it writes something else"
OBSERVER = "it works until somebody looks"
QUIET = "nothing is reported, the quality is merely low"

TORCH = "documentation of torch.nn.MultiheadAttention and F.scaled_dot_product_attention (torch 2.13)"
