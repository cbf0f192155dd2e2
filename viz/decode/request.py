"""One decoding that a visitor asks for: all that its result depends on, hashable, and all of it in the address."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from model.decoding.beam_search import Stop
from model.decoding.constraints import FREE, Constraints
from model.decoding.sampling import Sampling
from model.decoding.steps import Strategy
from model.language.say import say

from ..ui.addresses.decode import Method

if TYPE_CHECKING:
    from model.translate import Translation


@dataclass(frozen=True)
class Request:
    """One decoding of one sentence."""

    text: str
    method: Method = "greedy"
    sampling: Sampling = field(default_factory=Sampling)
    """How ``sample`` draws each token."""
    seed: int = 0
    width: int = 4
    """The hypotheses that ``beam`` keeps at each step."""
    penalty: float = 1.0
    """The alpha of sum / length ** alpha, by which ``beam`` scores."""
    stop: Stop = "proven"
    """When ``beam`` ends its search."""
    given: str = ""
    """The translation that ``given`` reads by teacher forcing."""
    constraints: Constraints = FREE
    changes: str = ""
    """To the model, as :mod:`model.interventions.changes` writes them; "" for the model as it is."""

    @property
    def is_own(self) -> bool:
        """Whether this is what the unchanged model writes of itself."""
        return self == Request(self.text)

    @property
    def strategy(self) -> Strategy:
        """How ``greedy`` and ``sample`` choose each token."""
        return Strategy(self.sampling if self.method == "sample" else None, self.seed, self.constraints)

    def branch(self, result: Translation, step: int, token_id: int) -> Request:
        """The same up to `step` (from 0), then `token_id`, then freely; a given translation goes on greedily."""
        prefix = (*result.target_ids[:step], token_id)
        method: Method = "greedy" if self.method == "given" else self.method
        return replace(self, method=method, constraints=replace(self.constraints, prefix=prefix))

    def forbid(self, token_id: int) -> Request:
        """The same from the start, the token never written."""
        method: Method = "greedy" if self.method == "given" else self.method
        forbidden = dict.fromkeys((*self.constraints.forbidden, (token_id,)))
        return replace(self, method=method, constraints=Constraints(forbidden=tuple(forbidden)))

    @property
    def name(self) -> str:
        """How a list of versions calls it; :func:`viz.decode.texts.version_name` adds the constraints."""
        if self.method == "sample":
            return say("sample {seed}", seed=self.seed)
        return say("beam {width}", width=self.width) if self.method == "beam" else say(self.method)
