"""A beam search as a tree: a column a step, the best candidate on top, lines from each to what continues it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import streamlit as st

from model.language.say import say, to_say

from ...figures.labels import LONGEST, label_text, readable
from ..bundle import component

if TYPE_CHECKING:
    from model.decoding.beam_tree import BeamNode, BeamTree

_mount = component("beam_tree")
FATES = {
    "alive": to_say("searched on from"),
    "finished": to_say("finished"),
    "pruned": to_say("pruned: given up here"),
}


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
        "label": say("The beam search as a tree"),
        "fates": {fate: say(name) for fate, name in FATES.items()},
        "nodes": [_node(node, tree) for node in tree.nodes],
        "chosen": ways.index(chosen) if chosen in ways else -1,
    }


def _node(node: BeamNode, tree: BeamTree) -> dict[str, Any]:
    return {
        "row": node.place,
        "column": node.position,
        "parent": node.parent,
        "text": label_text(node.token, LONGEST),
        "name": node_in_words(node),
        "note": say(
            "{token}\nlog-probability so far {score:.2f}\n{fate}",
            token=readable(node.token),
            score=node.score,
            fate=say(FATES[node.fate]),
        ),
        "fate": node.fate,
        "best": tree.on_best_way(node),
    }


def node_in_words(node: BeamNode) -> str:
    """What a screen reader says of a node; steps and places count from 1."""
    return say(
        "Step {step}, place {place}: {token}, log-probability so far {score:.2f}, {fate}",
        step=node.position + 1,
        place=node.place + 1,
        token=readable(node.token),
        score=node.score,
        fate=say(FATES[node.fate]),
    )
