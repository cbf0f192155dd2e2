"""The traces, one a sentence, that every capture gives, of a model of this project or of anybody's."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Collection

import numpy as np

from ..text.token_names import Tokens
from ..trace import AttentionTrace, Kind, TraceError

# What stands for a key that did not exist yet when a cached decoding made this row; 0 for weights.
NEVER_COMPUTED = {"scores": math.nan, "masked_scores": -math.inf}


class Capture(ABC):
    """A recording, filled while a model runs inside ``capture_attention``; its trace is built on demand."""

    tokens: Tokens | None = None
    """Names of the rows and columns; may be set at any time, and hold for the traces built after that."""

    @abstractmethod
    def batches(self) -> Collection[int]:
        """The sizes of the batches that ran."""

    @abstractmethod
    def sample(self, index: int) -> AttentionTrace:
        """The trace of sentence `index` of the batch. Raises TraceError when nothing ran."""

    @property
    @abstractmethod
    def observer_effect(self) -> str:
        """Whether observing changed which kernels ran, and so the outputs, in a sentence."""

    @property
    def trace(self) -> AttentionTrace:
        """The trace of a batch of one sentence. TraceError for a larger batch or when nothing ran."""
        sizes = set(self.batches())
        if sizes and sizes != {1}:
            raise TraceError(f"A trace is of one sentence, but batches of {sorted(sizes)} ran: use .sample(i).")
        return self.sample(0)

    def arrays(self, kind: Kind) -> dict[str, np.ndarray]:
        """Return all samples of one kind, as :func:`attenscope.diagnose` takes them.

        Weights (B, L, H, Q, K), mask (B, 1, 1, Q, K). Raises TraceError where nothing of this kind was captured.
        """
        unnamed = copy.copy(self)
        unnamed.tokens = None  # arrays have no names, so tokens that fit one sample only are no fault here
        maps = [unnamed.sample(index).maps.get(kind) for index in range(max(self.batches(), default=0))]
        found = [one for one in maps if one is not None]
        if not found:
            raise TraceError(f"There is no {kind} attention in what was captured.")
        names = [name for name in ("scores", "masked_scores") if all(name in one.tensors for one in found)]
        tensors = {name: np.stack([one.tensors[name] for one in found]) for name in names}
        mask = np.stack([one.mask for one in found])[:, None, None]
        return {"weights": np.stack([one.weights for one in found]), "mask": mask, **tensors}
