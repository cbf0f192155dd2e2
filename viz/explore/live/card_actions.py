"""What the card of a word does on Explore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viz.components.word_card import CardActions
from viz.ui.addresses.pins import toggle_pins
from viz.ui.links import choose_head, open_in_decode, open_why

if TYPE_CHECKING:
    from model.translate import Translation

    from ..run_key import RunKey


def card_actions(run: RunKey, result: Translation, position: int) -> CardActions:
    """Go on from another candidate on Decode, show a head that matters here, or open the step on Decode."""

    def candidate(token_id: int) -> None:
        prefix = (*result.target_ids[:position], token_id)
        open_in_decode(run.model, run.sentence, position, prefix=prefix)

    return CardActions(
        close=lambda: toggle_pins(run.sentence, {"target": position}),
        candidate=candidate,
        head=choose_head,
        why=open_why,
        open=lambda: open_in_decode(run.model, run.sentence, position, given=bool(run.given)),
    )
