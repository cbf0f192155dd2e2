"""A part of a model card that a command writes, between two marks."""

from __future__ import annotations

from typing import NamedTuple


class CardSection(NamedTuple):
    """The marks around what one command writes into a card."""

    name: str
    command: str
    """The command, which the first mark names for whoever reads the file."""

    @property
    def begin(self) -> str:
        """The line before the part."""
        return f"<!-- {self.name}: {self.command} -->\n"

    @property
    def end(self) -> str:
        """The line after it."""
        return f"<!-- end of {self.name} -->\n"

    @property
    def empty(self) -> str:
        """The place for it in a card that has nothing there yet."""
        return f"{self.begin}\n{self.end}"

    def text(self, card: str) -> str:
        """Return what stands between the marks of a card; empty where it lacks one of them."""
        _, _, rest = card.partition(self.begin)
        text, end, _ = rest.partition(self.end)
        return text if end else ""

    def replaced(self, card: str, text: str) -> str:
        """Return a card with the part replaced; one that lacks a mark stays as it is."""
        before, _, rest = card.partition(self.begin)
        _, end, after = rest.partition(self.end)
        return f"{before}{self.begin}\n{text.strip()}\n\n{self.end}{after}" if end else card

    def put(self, card: str, heading: str, text: str) -> str:
        """Return a card with the part replaced, or added at the end below a heading."""
        if self.begin not in card:
            card = f"{card.rstrip()}\n\n## {heading}\n\n{self.empty}"
        return self.replaced(card, text)
