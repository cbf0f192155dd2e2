"""What a model wrote: a text, the steps in which it came to be, and the attention of all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..decoding.steps import DecodingStep, Stopped
from ..trace import AttentionMap, AttentionTrace


class InputError(ValueError):
    """A text that cannot be translated; the message is the sentence to show."""


@dataclass(frozen=True, eq=False)
class Translation:
    """One sentence translated, or one prompt continued."""

    source: str
    text: str
    steps: tuple[DecodingStep, ...]
    source_ids: tuple[int, ...]
    source_tokens: tuple[str, ...]
    """Pieces as text; a leading space begins a word, </s> is last."""
    unknown: tuple[str, ...]
    """Source text of pieces the vocabulary does not hold."""
    seconds: float
    captured: AttentionTrace | None = None
    first_row: int = 0
    """The row of the decoder's maps that predicts the first step: after a prompt, that of its last token."""

    @property
    def trace(self) -> AttentionTrace:
        if self.captured is None:
            raise ValueError("This translation was made with capture=False and has no trace.")
        return self.captured

    @property
    def target_ids(self) -> tuple[int, ...]:
        """The tokens predicted, </s> included if the model wrote it."""
        return tuple(step.token_id for step in self.steps)

    @property
    def target_tokens(self) -> tuple[str, ...]:
        return tuple(step.token for step in self.steps)

    @property
    def stopped(self) -> Stopped | None:
        """``eos``: the model ended the sentence. ``length``: it was cut off at the limit."""
        return self.steps[-1].stopped

    @property
    def log_prob(self) -> float:
        """Sum over the tokens, natural logarithm."""
        return sum(step.log_prob for step in self.steps)

    @property
    def to_source(self) -> AttentionMap:
        """What each step looked at in the source (L, H, T, S): cross-attention, or the decoder's to its prompt."""
        if self.trace.cross is not None:
            return self.trace.cross
        return self._columns(slice(0, self.first_row + 1))

    @property
    def to_target(self) -> AttentionMap:
        """What each step looked at in what was fed in (L, H, T, T), after a prompt from its last token on."""
        return self._columns(slice(self.first_row, None))

    def _columns(self, columns: slice) -> AttentionMap:
        """The rows of the decoder's map that predict a step, and some of its columns."""
        own = self.trace.decoder
        if own is None:
            raise ValueError("This trace has no attention of a decoder.")
        if self.first_row == 0 and columns == slice(0, None):
            return own
        rows, masks = slice(self.first_row, None), own.layer_masks
        return replace(
            own,
            weights=own.weights[:, :, rows, columns],
            mask=own.mask[rows, columns],
            layer_masks=None if masks is None else masks[:, :, rows, columns],
            query_tokens=own.query_tokens[rows],
            predicted_tokens=own.predicted_tokens[rows],
            key_tokens=own.key_tokens[columns],
            passed_masks=None,
            tensors={},
        )

    def step_of(self, row: int | None) -> int | None:
        """Return the step that a row of the decoder's maps predicts; None for a row of the prompt and for none."""
        step = None if row is None else row - self.first_row
        return step if step is not None and 0 <= step < len(self.steps) else None
