"""A beam search as a tree: a column a step, the best candidate on top, lines from each to what continues it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import streamlit as st

from ...figures.labels import LONGEST, label_text, readable
from ..bundle import component

if TYPE_CHECKING:
    from model.decoding.beam_tree import BeamNode, BeamTree

_mount = component("beam_tree")
FATES = {"alive": "searched on from", "finished": "finished", "pruned": "pruned: given up here"}
LABEL = "The beam search as a tree"


def beam_tree(tree: BeamTree, chosen: tuple[int, ...] = (), *, key: str, on_node: Callable[[int, int], None]) -> None:
    """Draw every candidate; `chosen` is the way (token ids) to the node the player shows.

    `on_node(place, position)`, both from 0, hears of a node that is clicked, or reached with the arrow keys and chosen
    with Enter.
    """

    def clicked() -> None:
        node = st.session_state[key].node
        on_node(int(node["row"]), int(node["column"]))

    _mount(key=key, data=tree_data(tree, chosen), on_node_change=clicked)


def tree_data(tree: BeamTree, chosen: tuple[int, ...] = ()) -> dict[str, Any]:
    """What beam_tree.js reads."""
    ways = [node.token_ids for node in tree.nodes]
    return {
        "label": LABEL,
        "fates": FATES,
        "nodes": [_node(node, tree) for node in tree.nodes],
        "chosen": ways.index(chosen) if chosen in ways else -1,
    }


def _node(node: BeamNode, tree: BeamTree) -> dict[str, Any]:
    fate = FATES[node.fate]
    return {
        "row": node.place,
        "column": node.position,
        "parent": node.parent,
        "text": label_text(node.token, LONGEST),
        "name": node_in_words(node),
        "note": f"{readable(node.token)}\nlog-probability so far {node.score:.2f}\n{fate}",
        "fate": node.fate,
        "best": tree.on_best_way(node),
    }


def node_in_words(node: BeamNode) -> str:
    """What a screen reader says of a node; steps and places count from 1."""
    where = f"Step {node.position + 1}, place {node.place + 1}: {readable(node.token)}"
    return f"{where}, log-probability so far {node.score:.2f}, {FATES[node.fate]}"
