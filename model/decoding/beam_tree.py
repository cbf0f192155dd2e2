"""A beam search as a tree: every candidate that was weighed, what became of it, and the way that led to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from .beam_search import BeamStep, Hypothesis

Fate = Literal["alive", "finished", "pruned"]


@dataclass(frozen=True)
class BeamNode:
    """One candidate: a token that continues a hypothesis."""

    position: int
    """0 is the first target token."""
    place: int
    """Rank among the candidates of its step, 0 the best."""
    parent: int | None
    """Number of the node it continues, None at the first step."""
    token_ids: tuple[int, ...]
    """The whole way from the first token to this one."""
    score: float
    """Sum of the log-probabilities of the way."""
    fate: Fate
    """``alive``: searched on from. ``finished``: a whole translation. ``pruned``: given up here."""
    token: str = ""

    @property
    def token_id(self) -> int:
        return self.token_ids[-1]


@dataclass(frozen=True)
class BeamTree:
    """All candidates of a search, in the order they were weighed, and the translations found, best first."""

    nodes: tuple[BeamNode, ...]
    best: tuple[Hypothesis, ...]

    def on_best_way(self, node: BeamNode) -> bool:
        """Whether `node` is part of the best translation."""
        return bool(self.best) and self.best[0].token_ids[: len(node.token_ids)] == node.token_ids


def beam_tree(steps: Iterable[BeamStep]) -> BeamTree:
    """The tree of a search over one sentence, from its steps so far."""
    nodes: list[BeamNode] = []
    running: list[int | None] = [None]
    last: BeamStep | None = None
    for step in steps:
        alive = step.alive[0].tolist()
        numbers: dict[int, int] = {}
        for place, score in enumerate(step.scores[0].tolist()):
            if score == float("-inf"):
                continue
            slot = int(step.parents[0, place])
            numbers[place] = len(nodes)
            nodes.append(_node(step, place, running[slot], nodes, place in alive))
        running = [numbers.get(place) for place in alive]
        last = step
    return BeamTree(tuple(nodes), tuple(last.best(0)) if last else ())


def _node(step: BeamStep, place: int, parent: int | None, nodes: list[BeamNode], alive: bool) -> BeamNode:
    before = () if parent is None else nodes[parent].token_ids
    finished = bool(step.finishes[0, place])
    fate: Fate = "finished" if finished else "alive" if alive else "pruned"
    ids = (*before, int(step.token_ids[0, place]))
    return BeamNode(step.position, place, parent, ids, float(step.scores[0, place]), fate)
