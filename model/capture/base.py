"""What every capture gives, of a model of this project or of anybody's: traces, a sentence each."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Collection

import numpy as np

from ..text.token_names import Tokens
from ..trace import AttentionTrace, Kind, TraceError


class Capture(ABC):
    """Filled while a model runs inside ``capture_attention``; its trace is built when it is asked for."""

    tokens: Tokens | None = None
    """Names of the rows and columns; may be set until a trace is asked for, and again."""

    @abstractmethod
    def batches(self) -> Collection[int]:
        """The sizes of the batches that ran."""

    @abstractmethod
    def sample(self, index: int) -> AttentionTrace:
        """The trace of sentence `index` of the batch. Raises TraceError when nothing ran."""

    @property
    @abstractmethod
    def looking(self) -> str:
        """Whether looking changed anything, in a sentence."""

    @property
    def trace(self) -> AttentionTrace:
        """The trace of a batch of one sentence. TraceError for a larger batch or when nothing ran."""
        sizes = set(self.batches())
        if sizes and sizes != {1}:
            raise TraceError(f"A trace is of one sentence, but batches of {sorted(sizes)} ran: use .sample(i).")
        return self.sample(0)

    def arrays(self, kind: Kind) -> dict[str, np.ndarray]:
        """All samples of one kind, as :func:`attenscope.diagnose` takes them: weights (B,L,H,Q,K), mask (B,1,1,Q,K)."""
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
