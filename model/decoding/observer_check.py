"""Check whether capturing the attention of a translation changed it, by a second run without hooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..language import join_sentences, say
from ..network.attention import AttentionPath, choose_attention_path, force_attention_path
from ..network.autoregressive import AutoregressiveModel
from .greedy import DecodingStep, replay_log_probs, teacher_forced_log_probs

KERNEL_ROUNDING = 1e-3
"""Log-probabilities of float32 that two kernels compute differ by less, in nats."""


@dataclass(frozen=True)
class ObserverCheck:
    """The log-probabilities that came out of a captured run, compared with those of the same run without capture."""

    path: AttentionPath
    """The attention that ran without capture: with it, ``explicit`` always runs."""
    difference: float
    """Largest absolute difference of a log-probability, in nats; 0 where all are bitwise equal."""
    by_capture: float
    """The same against a run without capture that takes the explicit path as well: what is left is the hooks' doing."""
    compared: int
    """How many log-probabilities: at every step those of the token written and of the candidates kept."""

    @property
    def sentence(self) -> str:
        """The verdict in a few words."""
        if self.difference == 0:
            return say("outputs unchanged by looking")
        if self.by_capture == 0:
            return say(
                "looking replaced the {path} kernel: log-probabilities moved by {difference:.1e}",
                path=self.path,
                difference=self.difference,
            )
        return say(
            "looking changed the outputs: log-probabilities moved by {difference:.1e}", difference=self.by_capture
        )

    @property
    def explanation(self) -> str:
        """What was compared with what, the outcome, and on a GPU whether it is more than the kernels' rounding."""
        compared = say(
            "{count} log-probabilities, as they came out while the attention shown was recorded, and again with no "
            "hook and the {path} attention: {outcome}.",
            count=self.compared,
            path=self.path,
            outcome=say("bitwise equal")
            if self.difference == 0
            else say("largest difference {difference:.1e}", difference=self.difference),
        )
        if self.path == "explicit" or self.difference == 0 or self.by_capture != 0:
            return compared
        if self.difference > KERNEL_ROUNDING:
            more = say(
                "That is more than the rounding of two kernels explains, which stays below {rounding}.",
                rounding=KERNEL_ROUNDING,
            )
            return join_sentences(compared, more)
        return join_sentences(
            compared, say("This is expected: the two kernels add in another order, and round otherwise.")
        )


def check_observer(
    model: AutoregressiveModel, source: Tensor, steps: Sequence[DecodingStep], *, one_pass: bool
) -> ObserverCheck:
    """Run source (1, S) again as the `steps` were made, without capture, and compare all that they kept.

    `one_pass`: they were read by teacher forcing; otherwise they were decoded one at a time with a cache, and are
    again, on the tokens that were written. A single forward pass over those would be cheaper but rounds otherwise, so
    that no difference below its rounding could be told from none. Interventions open in this thread take part.
    """
    again = teacher_forced_log_probs if one_pass else replay_log_probs
    ids, kept = [step.token_id for step in steps], _collect_log_probs(steps)
    path, found = choose_attention_path(source.device), again(model, source, ids)
    difference = by_capture = _largest_difference(kept, found)
    if path != "explicit" and difference:
        with force_attention_path("explicit"):
            by_capture = _largest_difference(kept, again(model, source, ids))
    return ObserverCheck(path, difference, by_capture, len(kept))


def _collect_log_probs(steps: Sequence[DecodingStep]) -> dict[tuple[int, int], float]:
    """Return (step, token) -> log-probability, for every token that the T steps name."""
    found = {(row, one.token_id): one.log_prob for row, step in enumerate(steps) for one in step.candidates}
    return found | {(row, step.token_id): step.log_prob for row, step in enumerate(steps)}


def _largest_difference(kept: Mapping[tuple[int, int], float], log_probs: Tensor) -> float:
    """Return the largest difference between the kept log-probabilities and log_probs (T, V)."""
    rows, tokens = zip(*kept, strict=True)
    values = torch.tensor(list(kept.values()), dtype=torch.float64, device="cpu")
    return (log_probs[list(rows), list(tokens)].double().cpu() - values).abs().max().item()
