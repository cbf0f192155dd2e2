"""A model card in a saved file: the words of its Markdown, in the places that it gives them."""

from __future__ import annotations

from attenscope.viz.export.parts import Table, Words
from attenscope.viz.training.architecture_and_card_views import build_card_parts

CARD = """# A model

It **translates** what `x**2` and [a link](https://example.org) say,
over two lines.

| set | beam |
|---|---:|
| dev `a` | 4 |
| test \\| more | **5** |

- one: __two__
1. three

```
# no heading | no table
```
## End
"""


def test_every_block_of_a_card_becomes_a_part() -> None:
    found = [
        (part.size, part.text) if isinstance(part, Words) else (list(part.headings), part.rows)
        for part in build_card_parts(CARD, "Card")
        if isinstance(part, (Words, Table))
    ]
    assert found == [
        ("heading", "A model"),
        ("text", "It translates what x**2 and a link say, over two lines."),
        (["set", "beam"], [["dev a", "4"], ["test | more", "5"]]),
        ("text", "• one: two"),
        ("text", "• three"),
        ("text", "# no heading | no table"),
        ("heading", "End"),
    ]


def test_a_table_without_headings_and_a_card_without_words() -> None:
    (table,) = build_card_parts("| | |\n|---|---|\n| licence | none |", "Card")
    assert isinstance(table, Table)
    assert (list(table.headings), list(table.rows)) == (["", ""], [["licence", "none"]])
    assert build_card_parts("\n\n", "Card") == []
