"""What ``capture_attention`` gives: the traces of the sentences that a model read, whoever recorded them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from ..language.say import say
from ..masking.attention_call import CAPTURED_CALLS, CAPTURED_EXTRA_KEYS
from ..masking.known_padding import extra_keys, known_keys
from ..text.token_names import Tokens, name_tokens
from ..trace import AttentionTrace, Kind, TraceError
from .foreign.stacking import OF_KIND


class Recording(Protocol):
    """The tensors of attention that ran inside a block."""

    def batches(self) -> Collection[int]:
        """Return the sizes of the batches that ran."""

    def sample(self, index: int) -> AttentionTrace:
        """Return the trace of sentence `index` of the batch, rows and columns numbered. TraceError when nothing ran."""

    def gradients(self, target: Tensor) -> Recording:
        """Return the same recording with the gradient of `target` where each weight was. TraceError without a graph."""

    @property
    def observer_effect(self) -> str:
        """Whether observing changed which kernels ran, and so the outputs, in a sentence."""

    def check_one_sample(self) -> None:
        """Raise TraceError where more than one sample ran: batches, or windows of one."""


@dataclass(eq=False)
class Capture:
    """A recording, filled while a model runs inside ``capture_attention``, and the traces that it becomes."""

    recording: Recording
    tokens: Tokens | None = None
    """Names of the rows and columns; may be set at any time, and hold for the traces built after that."""

    def batches(self) -> Collection[int]:
        """Return the sizes of the batches that ran."""
        return self.recording.batches()

    def sample(self, index: int) -> AttentionTrace:
        """Return the trace of sentence `index` of the batch, from 0. TraceError when nothing ran, or not so many."""
        trace = self.recording.sample(index)
        return trace if self.tokens is None else name_tokens(trace, self.tokens, index)

    @property
    def observer_effect(self) -> str:
        """Whether observing changed which kernels ran, and so the outputs, in a sentence."""
        return self.recording.observer_effect

    @property
    def trace(self) -> AttentionTrace:
        """The trace of a batch of one sentence. TraceError for a larger batch or when nothing ran."""
        self.recording.check_one_sample()
        return self.sample(0)

    def gradients(self, target: Tensor, index: int = 0) -> AttentionTrace:
        """Return a trace of sentence `index` that holds d target / d weight where each weight was.

        `target` is one number that was computed inside a block with ``detach=False``, such as a logit or a loss; times
        the weights it is attention x gradient (Chefer et al. 2021, equation 5, before the mean over heads). Weights
        that it does not depend on have zeros. Raises TraceError where there is no graph, or no gradient is known.
        """
        return Capture(self.recording.gradients(target), self.tokens).sample(index)

    def _named(self, index: int) -> AttentionTrace:
        """Return the trace of one sample, with its tokens where they are given for it."""
        try:
            return self.sample(index)
        except TraceError:
            return self.recording.sample(index)

    def arrays(self, kind: Kind) -> dict[str, Any]:
        """Return all samples of one kind, as :func:`attenscope.diagnose` takes them.

        Weights (B, L, H, Q, K), mask (B, 1, 1, Q, K), or of the weights' shape where layers or heads have masks of
        their own, and ``captured_keep`` (B, K), True = a real token, where the names of the tokens or the encoder's
        mask tell the padding; a ``key_keep`` that is given goes before it. ``captured_calls`` (L,) says where in the
        code each layer called attention, as JSON, ``captured_extra_keys`` how many of the last keys are no tokens, such
        as a sink. Raises TraceError where nothing of this kind was captured.
        """
        traces = [self._named(index) for index in range(max(self.batches(), default=0))]
        traces = [trace for trace in traces if kind in trace.maps]
        maps = [trace.maps[kind] for trace in traces]
        if not maps:
            raise TraceError(say("There is no {kind} in what was captured.", kind=say(OF_KIND[kind])))
        names = [name for name in ("scores", "masked_scores") if all(name in one.tensors for one in maps)]
        tensors: dict[str, Any] = {name: np.stack([one.tensors[name] for one in maps]) for name in names}
        same = all(one.layer_masks is None for one in maps)
        masks = [one.mask[None, None] if same else np.broadcast_to(one.masks, one.weights.shape) for one in maps]
        encoders = [trace.encoder.mask if kind == "cross" and trace.encoder is not None else None for trace in traces]
        extra = extra_keys(len(maps[0].query_tokens), maps[0].key_tokens)
        keys = maps[0].weights.shape[-1] - extra
        keeps = [known_keys(one.key_tokens[:keys], encoder) for one, encoder in zip(maps, encoders, strict=True)]
        if any(keep is not None for keep in keeps):
            whole = np.ones(keys, bool)
            tensors["captured_keep"] = np.stack([whole if keep is None else keep for keep in keeps])
        if extra:
            tensors[CAPTURED_EXTRA_KEYS] = np.array(extra)
        if len(calls := maps[0].layer_calls) == maps[0].layers:
            tensors[CAPTURED_CALLS] = np.array(calls)
        return {"weights": np.stack([one.weights for one in maps]), "mask": np.stack(masks), **tensors}
