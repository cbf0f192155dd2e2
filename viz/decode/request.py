"""What a visitor asks the model to decode: everything an answer depends on, hashable, and all of it in the address."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, get_args

from model.decoding.beam_search import Stop
from model.decoding.constraints import FREE, Constraints
from model.decoding.sampling import Sampling
from model.decoding.steps import Strategy

if TYPE_CHECKING:
    from model.translate import Translation

Method = Literal["greedy", "sample", "beam", "given"]
METHODS: tuple[Method, ...] = get_args(Method)


@dataclass(frozen=True)
class Request:
    """One decoding of one sentence."""

    text: str
    method: Method = "greedy"
    sampling: Sampling = field(default_factory=Sampling)
    """Of ``sample``."""
    seed: int = 0
    width: int = 4
    """Of ``beam``."""
    penalty: float = 1.0
    """Of ``beam``: the alpha of sum / length ** alpha."""
    stop: Stop = "proven"
    """Of ``beam``."""
    given: str = ""
    """Of ``given``: the translation to read by teacher forcing."""
    constraints: Constraints = FREE
    changes: str = ""
    """To the model, as :mod:`model.interventions.changes` writes them; "" for the model as it is."""

    @property
    def strategy(self) -> Strategy:
        """How ``greedy`` and ``sample`` choose each token."""
        return Strategy(self.sampling if self.method == "sample" else None, self.seed, self.constraints)

    def going_on(self, result: Translation, step: int, token_id: int) -> Request:
        """The same up to `step` (from 0), there `token_id` instead, and on from it; a given translation greedily."""
        prefix = (*result.target_ids[:step], token_id)
        method: Method = "greedy" if self.method == "given" else self.method
        return replace(self, method=method, constraints=replace(self.constraints, prefix=prefix))

    def without(self, token_id: int) -> Request:
        """The same from the start, the token never written."""
        method: Method = "greedy" if self.method == "given" else self.method
        forbidden = dict.fromkeys((*self.constraints.forbidden, (token_id,)))
        return replace(self, method=method, constraints=Constraints(forbidden=tuple(forbidden)))

    @property
    def name(self) -> str:
        """How a list of versions calls it; tokens are named by :func:`in_words`."""
        if self.method == "sample":
            return f"sample {self.seed}"
        return f"beam {self.width}" if self.method == "beam" else self.method


def to_address(ids: Iterable[int]) -> str:
    """Token ids as they stand in the address: ``12.44.7``."""
    return ".".join(map(str, ids))


def from_address(text: str, vocabulary: int) -> tuple[int, ...]:
    """What :func:`to_address` wrote; nothing for anything else, as an address is typed by anybody."""
    if not all(part.isascii() and part.isdigit() and len(part) < 8 for part in text.split(".")):
        return ()
    ids = tuple(map(int, text.split(".")))
    return ids if all(one < vocabulary for one in ids) else ()
