"""What a tensor was computed from, as far as calls of torch show it: whether keys come from where the queries do."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .axes import ModuleCall

MAX_REMEMBERED_NODES = 20_000
"""How many of the last results remember what they were computed from."""
MAX_STEP_NODES = 64
"""How many results stand between the keys of one step of a decoding and its cache, at most."""
PRODUCT_FUNCTIONS = {torch.matmul, torch.bmm, torch.baddbmm, torch.einsum, Tensor.matmul, Tensor.__matmul__, Tensor.bmm}
"""The calls that make scores of queries and keys."""
CONVOLUTION_FUNCTIONS = {F.conv1d, F.conv2d, torch.conv1d, torch.conv2d}
PROJECTION_FUNCTIONS = {*PRODUCT_FUNCTIONS, *CONVOLUTION_FUNCTIONS, F.linear, torch.addmm, Tensor.addmm}
"""The calls that make queries and keys of what a module is given, by its weights."""
ROW_SELECTION_FUNCTIONS = {torch.index_select, Tensor.index_select, Tensor.__getitem__}
"""The calls that may take the samples of a batch in another order."""


class TensorNode:
    """One tensor, and those that it was computed from. Holds no tensor."""

    __slots__ = (
        *("__weakref__", "factors", "is_weight", "known", "learned"),
        *("number", "outputs", "parents", "projects", "reorders"),
    )

    def __init__(
        self, number: int, parents: tuple[TensorNode, ...] = (), is_weight: bool = False, known: bool = True
    ) -> None:
        self.known = known
        """Whether it is known what it was computed from, be it nothing."""
        self.number = number
        """Later ones have higher numbers."""
        self.parents = parents
        self.learned: bool = all(parent.learned for parent in parents) if parents else is_weight
        """Whether it was computed from nothing but weights."""
        self.is_weight = is_weight
        """Whether it is a parameter or a buffer of the model, or a view of one."""
        self.projects = False
        """Whether it was computed with a matrix of the model."""
        self.outputs = 0
        """How many numbers a matrix of the model made of each position; 0 where none did."""
        self.factors: tuple[TensorNode, ...] = ()
        """The two that are no weights of which it is a product, as scores are of queries and keys; empty for others."""
        self.reorders = False
        """Whether samples of a batch changed places, as a beam search makes them do."""


class Provenance:
    """The tensors that were seen in one block, each with its node."""

    def __init__(self, model: nn.Module) -> None:
        self._nodes: dict[int, tuple[weakref.ref[Tensor], TensorNode]] = {}
        self._recent: deque[TensorNode] = deque()
        self._numbers = count()
        self.saw_weights = False
        """Whether a function of torch was given a weight of the model."""
        self._own = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}

    def note(self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], output: Any) -> None:
        """Note that a function of torch computed `output`."""
        results = [args[0]] if function is Tensor.__setitem__ else _list_tensors(output)
        results = [tensor for tensor in results if tensor.is_floating_point()]
        if not results:
            return
        given = [*_list_tensors(args), *_list_tensors(kwargs)]
        parents = tuple(self.node(tensor) for tensor in given)
        node = TensorNode(next(self._numbers), parents)
        if not given:  # made of nothing, as zeros are
            for tensor in results:
                self._store_tensor_node(tensor, node)
            return
        weighted = any(parent.is_weight for parent in parents)
        node.is_weight = weighted and len(given) == 1
        node.projects = weighted and function in PROJECTION_FUNCTIONS
        if node.projects:
            states = next((one for one, parent in zip(given, parents, strict=True) if not parent.is_weight), results[0])
            axis = 1 if function in CONVOLUTION_FUNCTIONS else -1
            node.outputs = results[0].numel() * states.shape[axis] // max(states.numel(), 1)
        node.factors = parents[-2:] if function in PRODUCT_FUNCTIONS and not weighted and len(given) > 1 else ()
        node.reorders = function in ROW_SELECTION_FUNCTIONS and _is_sample_reordering(args, kwargs)
        for tensor in results:
            same = next((parent for one, parent in zip(given, parents, strict=True) if one is tensor), None)
            if same is None:
                self._store_tensor_node(tensor, node)
            else:  # changed in place, or returned as it was
                same.parents += tuple(parent for parent in parents if parent is not same)
                same.number, same.learned = node.number, node.learned

    def node(self, tensor: Tensor) -> TensorNode:
        """Return the node of a tensor; one without parents where nothing is known of it."""
        if (known := self._find_known_node(tensor)) is not None:
            return known
        own = id(tensor) in self._own
        self.saw_weights = self.saw_weights or own
        weight = own or isinstance(tensor, nn.Parameter)
        begins = weight or not tensor.is_floating_point()  # whole numbers are ids, which a text begins with
        return self._store_tensor_node(tensor, TensorNode(next(self._numbers), is_weight=weight, known=begins))

    def _find_known_node(self, tensor: Tensor) -> TensorNode | None:
        known = self._nodes.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else None

    def forget(self) -> None:
        """Forget all tensors, when nothing will be asked any more."""
        self._nodes.clear()
        self._recent.clear()

    def is_cross_from_scores(self, scores: Tensor, calls: Sequence[ModuleCall]) -> bool | None:
        """Return :meth:`is_cross` for the queries and keys that scores were computed from.

        Where these are several pairs, one of self-attention decides, or else one that cannot be told.
        """
        products = _find_score_products(self.node(scores))
        answers = {self._is_cross(node.factors[0], node.factors[1], calls) for node in products}
        return next((answer for answer in (False, None, True) if answer in answers), None)

    def is_cross(self, query: Tensor, key: Tensor, calls: Sequence[ModuleCall]) -> bool | None:
        """Whether keys come from elsewhere than the queries of a module's call; None where that cannot be told.

        The innermost module that projects its inputs to queries decides: it is no cross-attention if the keys are made
        of nothing but what the queries are made of. Keys that come from none of its inputs, as out of a cache, belong
        to another sequence unless they depend on everything that the queries depend on. Where queries and keys were
        given apart and come from one sequence, each its own way, only a name can tell: a decoder may be given its own
        input as memory, and self-attention a sum with positions for each.
        """
        return self._is_cross(self.node(query), self.node(key), calls)

    def _is_cross(self, query: TensorNode, key: TensorNode, calls: Sequence[ModuleCall]) -> bool | None:
        answer = None
        for call in calls:
            states = [tensor for tensor in call.inputs if tensor.is_floating_point() and tensor.dim() > 1]
            nodes = [(self._find_known_node(tensor), tensor) for tensor in states]
            inputs = {node: (tensor.data_ptr(), tensor.shape) for node, tensor in nodes if node is not None}
            queries, keys = _find_reachable_ancestors(query, inputs), _find_reachable_ancestors(key, inputs)
            if answer:  # around a module that was given both apart, they may be of one sequence all the same
                return None if queries and queries.keys() <= keys.keys() else True
            if query.learned and keys and not key.learned:
                return True
            if any(queries.values()):
                if not keys:
                    older = self._is_key_older_than_run(key, calls[-1])
                    return True if older or not _find_root_nodes(query) <= _find_root_nodes(key) else None
                if not {one for one in queries if queries[one]}.isdisjoint(keys):
                    return False if keys.keys() <= queries.keys() else None
                answer = True
        return answer

    def _is_key_older_than_run(self, key: TensorNode, outermost: ModuleCall) -> bool:
        """Whether keys were there before the run of the model that attends to them, as a cache is."""
        given = [node.number for tensor in outermost.inputs if (node := self._find_known_node(tensor)) is not None]
        return bool(given) and key.number < max(given)

    def is_key_batch_reordered(self, key: Tensor) -> bool:
        """Whether keys were taken from samples that had changed places, as a beam search does with its cache."""
        return _has_reordered_samples(self.node(key))

    def is_key_batch_reordered_from_scores(self, scores: Tensor) -> bool:
        """Return :meth:`is_key_batch_reordered` for the keys that scores were computed from."""
        products = _find_score_products(self.node(scores))
        return any(_has_reordered_samples(factor) for node in products for factor in node.factors)

    def single_projection_size(self, scores: Tensor) -> int:
        """Return how many numbers of each position scores are, where they are one projection and nothing else; else 0.

        Linear attention has a softmax of queries or of keys, each alone. Scores of attention are a product of both, or
        one number a head of what a network made of both.
        """
        node = self.node(scores)
        while not node.projects and not node.factors:
            known = [parent for parent in node.parents if parent.parents and not parent.learned]
            if len(known) != 1:
                return 0
            node = known[0]
        return 0 if node.factors else node.outputs

    def list_factors(self, scores: Tensor) -> list[TensorNode]:
        """Return the queries and keys that scores are products of, or the scores where they are none."""
        factors = [factor for node in _find_score_products(self.node(scores)) for factor in node.factors]
        return factors or [self.node(scores)]

    def is_other_text(
        self,
        now: Collection[TensorNode],
        before: Collection[TensorNode],
        results: Collection[TensorNode],
        inputs: Iterable[Tensor],
    ) -> bool | None:
        """Whether a module is given another text `now` than `before`, of which it made `results`.

        What was computed from a result is the same text. None where it cannot be told: where something newer than the
        results came from where no call of torch was seen, unless it is one of the `inputs` of the model; and where both
        were computed from one of these, or from one tensor in the model, as heads are, and two texts of one batch.
        """
        oldest, given = min(node.number for node in results), {self.node(tensor) for tensor in inputs}
        newer = {node for node in _collect_ancestors(now, given, oldest) if node.number >= oldest}
        if not newer.isdisjoint(results):
            return False
        if not all(node.known for node in newer - given):
            return None
        common = _collect_ancestors(now, given) & _collect_ancestors(before, given)
        return None if any(not node.learned and (node.parents or not node.known) for node in common) else True

    def has_joined_parameter(self, tensor: Tensor, parameter: Tensor) -> bool:
        """Whether `parameter` was joined to what a tensor was computed from, by no product."""
        target = self.node(parameter)
        return any(node is target for node in _walk_ancestors(self.node(tensor), lambda node: not node.factors))

    def _store_tensor_node(self, tensor: Tensor, node: TensorNode) -> TensorNode:
        key = id(tensor)
        nodes = self._nodes

        def forget(reference: weakref.ref[Tensor]) -> None:
            if key in nodes and nodes[key][0] is reference:
                del nodes[key]

        nodes[key] = (weakref.ref(tensor, forget), node)
        self._recent.append(node)
        if len(self._recent) > MAX_REMEMBERED_NODES:
            oldest = self._recent.popleft()
            oldest.parents, oldest.known = (), oldest.known and not oldest.parents
        return node


def _walk_ancestors(start: TensorNode, onwards: Callable[[TensorNode], bool]) -> Iterator[TensorNode]:
    """Yield a node and all that it was computed from, nearest first, not beyond nodes where `onwards` is false."""
    seen, waiting = {start}, deque([start])
    while waiting:
        node = waiting.popleft()
        yield node
        if onwards(node):
            new = [parent for parent in node.parents if parent not in seen]
            seen.update(new)
            waiting += new


def _collect_ancestors(starts: Iterable[TensorNode], ends: Collection[TensorNode], oldest: int = 0) -> set[TensorNode]:
    """Nodes and all that they were computed from, not beyond `ends` or what is older than number `oldest`."""

    def onwards(node: TensorNode) -> bool:
        return node.number >= oldest and node not in ends

    return {node for start in starts for node in _walk_ancestors(start, onwards)}


def _has_reordered_samples(key: TensorNode) -> bool:
    """Whether samples changed places in what was joined to keys since the step before, which had looked at the rest."""
    return any(node.reorders for node in islice(_walk_ancestors(key, lambda node: not node.projects), MAX_STEP_NODES))


def _find_score_products(scores: TensorNode) -> list[TensorNode]:
    """The products that scores are made of."""
    return [node for node in _walk_ancestors(scores, lambda node: not node.factors) if node.factors]


def _find_reachable_ancestors(start: TensorNode, goals: Mapping[TensorNode, Hashable]) -> dict[Hashable, bool]:
    """The values of those `goals` that a node was computed from, each with whether a projection lies between."""
    found: dict[Hashable, bool] = {}
    oldest = min((goal.number for goal in goals), default=0)
    waiting = [(start, False)]
    seen = set(waiting)
    while waiting:
        node, projected = waiting.pop()
        if node in goals:
            found[goals[node]] = found.get(goals[node], False) or projected
            continue
        parents = (parent for parent in node.parents if parent.number >= oldest)
        new = {(parent, projected or node.projects) for parent in parents} - seen
        seen |= new
        waiting += new
    return found


def _find_root_nodes(start: TensorNode) -> set[TensorNode]:
    """The nodes without parents that a node was computed from, weights left out."""
    return {node for node in _walk_ancestors(start, lambda node: True) if not node.parents and not node.is_weight}


def _list_tensors(values: Any) -> list[Tensor]:
    """The tensors of a value, through lists, tuples and dictionaries; called with every call of torch, so plain."""
    if isinstance(values, Tensor):
        return [values]
    if not isinstance(values, list | tuple | dict):
        return []
    found: list[Tensor] = []
    for value in values.values() if isinstance(values, dict) else values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple | dict):
            found += _list_tensors(value)
    return found


def _is_sample_reordering(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether samples are taken in another order, by index_select or by an index."""
    tensor, *rest = args
    chosen = kwargs.get("index", rest[-1] if rest else None)
    if len(rest) == 2 or "dim" in kwargs:
        if kwargs.get("dim", rest[0] if rest else 0) != 0:
            return False
    elif isinstance(chosen, tuple):
        chosen = chosen[0] if chosen else None
    if not isinstance(chosen, Tensor) or chosen.dim() != 1 or chosen.dtype == torch.bool or tensor.dim() < 3:
        return False
    return len(chosen) != len(tensor) or not torch.equal(chosen, torch.arange(len(chosen), device=chosen.device))
