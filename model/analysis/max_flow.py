"""Maximum flow through many layered networks at once, in numpy alone.

Push-relabel (Goldberg and Tarjan 1988) in rounds: label every node with its distance to the sink, push all excess along
edges that lead one step nearer until none is left that can, and label again. Capacities are whole numbers, so that the
flow is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

UNREACHABLE = np.int16(2**14)
"""The label of a node from which nothing can reach the sink; networks have fewer nodes."""


@dataclass(frozen=True, eq=False)
class Edges:
    """All edges that lead from one group of nodes, U of them, to one below it, V of them."""

    upper: int
    lower: int
    capacity: np.ndarray
    """int64, 0 for no edge: (U, V), or (P, U, V) for P networks that differ."""


def maximum_flow(edges: Sequence[Edges]) -> np.ndarray:
    """The greatest flow (P,) of each network from its first node to its last.

    Groups of nodes are numbered from the top; the first and the last hold one node each.
    """
    return _Networks(edges).solved()


class _Networks:
    """The state of P networks: what each edge can still take, what it carries, and the excess of each node."""

    def __init__(self, edges: Sequence[Edges]) -> None:
        edges = sorted(edges, key=lambda one: one.upper)
        count = max(one.capacity.shape[0] for one in edges if one.capacity.ndim == 3)
        self.ends = [(one.upper, one.lower) for one in edges]
        self.sink = max(lower for _, lower in self.ends)
        self.room = [np.broadcast_to(one.capacity, (count, *one.capacity.shape[-2:])).copy() for one in edges]
        self.carried = [np.zeros_like(room) for room in self.room]
        self.excess = [np.zeros((count, 1), np.int64)] * (self.sink + 1)
        leaving, arriving = np.zeros((2, count), np.int64)
        for (upper, lower), room in zip(self.ends, self.room, strict=True):
            self.excess[lower] = np.zeros((count, room.shape[2]), np.int64)
            leaving += room.sum((1, 2)) * (upper == 0)
            arriving += room.sum((1, 2)) * (lower == self.sink)
        self.excess[0] = np.minimum(leaving, arriving)[:, None]  # more can never flow

    def solved(self) -> np.ndarray:
        """Push until no excess can reach the sink -> what has arrived there (P,)."""
        flow = np.zeros(len(self.excess[0]), np.int64)
        unsolved = np.arange(len(flow))
        while True:
            labels = self._labels()
            above = zip(self.excess[:-1], labels[:-1], strict=True)
            active = np.logical_or.reduce([((excess > 0) & (label < UNREACHABLE)).any(1) for excess, label in above])
            flow[unsolved[~active]] = self.excess[-1][~active, 0]
            unsolved = unsolved[active]
            if not len(unsolved):
                return flow
            self._keep(active)
            labels = [label[active] for label in labels]
            while self._push_down(labels) | self._push_back(labels):
                pass

    def _labels(self) -> list[np.ndarray]:
        """The distance (P, N) of every node of each group to the sink, along edges that can take more."""
        labels = [np.full(excess.shape, UNREACHABLE) for excess in self.excess]
        labels[self.sink][:] = 0
        nearer = True
        while nearer:
            for (upper, lower), room in zip(reversed(self.ends), reversed(self.room), strict=True):
                through = np.where(room > 0, labels[lower][:, None] + np.int16(1), UNREACHABLE).min(2)
                np.minimum(labels[upper], through, out=labels[upper])
            nearer = False
            for (upper, lower), carried in zip(self.ends, self.carried, strict=True):
                if lower < self.sink:  # what an edge carries can be sent back up
                    through = np.where(carried > 0, labels[upper][:, :, None] + np.int16(1), UNREACHABLE).min(1)
                    nearer |= bool((through < labels[lower]).any())
                    np.minimum(labels[lower], through, out=labels[lower])
        return labels

    def _push_down(self, labels: list[np.ndarray]) -> bool:
        """Push excess towards the sink, group by group; returns whether any moved."""
        moved = False
        for (upper, lower), room, carried in zip(self.ends, self.room, self.carried, strict=True):
            moved |= self._push(upper, lower, labels, room, carried)
        return moved

    def _push_back(self, labels: list[np.ndarray]) -> bool:
        """Send excess back up where another way leads from there; returns whether any moved."""
        moved = False
        for at in reversed(range(len(self.ends))):
            upper, lower = self.ends[at]
            if lower < self.sink:
                backwards = self.carried[at].swapaxes(1, 2), self.room[at].swapaxes(1, 2)
                moved |= self._push(lower, upper, labels, *backwards)
        return moved

    def _push(self, start: int, end: int, labels: list[np.ndarray], room: np.ndarray, other: np.ndarray) -> bool:
        """Push from one group's nodes with excess into another: `room` (P, N, M) is left on the way, `other` back."""
        network, node = np.nonzero((self.excess[start] > 0) & (labels[start] < UNREACHABLE))
        if not len(network):
            return False
        left = room[network, node]
        nearer = labels[end][network] + 1 == labels[start][network, node][:, None]
        taken = np.minimum(np.where(nearer, left, 0).cumsum(1), self.excess[start][network, node][:, None])
        pushed = np.diff(taken, axis=1, prepend=0)  # first come, first served
        room[network, node] = left - pushed
        other[network, node] += pushed
        self.excess[start][network, node] -= taken[:, -1]
        np.add.at(self.excess[end], network, pushed)
        return bool(taken[:, -1].any())

    def _keep(self, networks: np.ndarray) -> None:
        """Go on with some of the networks (P,) bool; the others are solved."""
        if not networks.all():
            self.room = [room[networks] for room in self.room]
            self.carried = [carried[networks] for carried in self.carried]
            self.excess = [excess[networks] for excess in self.excess]
