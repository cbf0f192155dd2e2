"""A module that only reads: somebody's own, or an encoder, with the function that runs it on a text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from ..capture.attention import capture_attention
from ..language.say import say
from ..text.token_names import Tokens
from ..trace import TENSORS, AttentionTrace


class LocalError(ValueError):
    """A factory that gives no model, or a model that cannot read a sentence; the message is the sentence to show."""


@dataclass(frozen=True, eq=False)
class LocalModel:
    """A module and the function that runs it."""

    name: str
    model: nn.Module
    run: Callable[[str], Tokens]

    @torch.no_grad()
    def trace(self, text: str) -> AttentionTrace:
        """Everything the module attends to while it reads `text`. Raises LocalError with what the function raised."""
        try:
            with capture_attention(self.model, TENSORS) as capture:
                capture.tokens = self.run(text)
            return capture.sample(0)
        except Exception as error:  # a stranger's code may raise anything, and the server goes on
            said = say("{model} could not read this sentence: {error}", model=self.name, error=in_words(error))
            raise LocalError(said) from error


def in_words(error: BaseException) -> str:
    """Return what a stranger's code raised, in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return f"{type(error).__name__}: {text[:300]}" if text != type(error).__name__ else text
