"""One word, one translation: what the catalogues say of the terms that CONTRIBUTING.md lists."""

from __future__ import annotations

import re

import pytest

from tests import messages

TABLE = messages.ROOT / "CONTRIBUTING.md"
ROW = re.compile(r"^\| (?P<en>[^|]+) \| (?P<de>[^|]+) \| (?P<zh>[^|]+) \|$", re.MULTILINE)
FIELD = re.compile(r"\{[^}]*\}")
OTHERWISE: dict[str, tuple[str, ...]] = {
    "attribution": ("attribution",),  # whom a licence says to name
    "causal": (
        "x is a batch: x.scores (batch, heads, queries, keys) before the mask, x.keep and x.key_keep True at "
        "real tokens, x.causal True on and below the diagonal, x.allowed where both are.",
        "A mask by a rule of the part Build: causal, padding, window 3, prefix 2, joined by and, or, not.",
    ),
    "key": (
        "Arrow keys move, Enter or Space turns a cell over.",
        "Point at a cell, or use the arrow keys, to read it in all pictures. Sums stand at the right and below.",
        "Next key: reveal",
        "In the file, the key n shows them.",
        "Hidden until the next key",
        "hidden until the next key",
        "Click a part: it is hidden until the next key (?), then left out (×), then shown again.",
        "Page Down and Page Up, or the arrow keys, go through the scenes; a number and Enter goes to one; n "
        "opens the notes in a window of their own, f fills the screen, c raises the contrast, Escape comes back "
        "here and Shift+P returns to the stage. Where a scene lets the audience guess, 1 to 9 count and Backspace "
        "takes one back.",
        "Two to nine parts of the picture. On stage the keys 1 to 9, or clicks, count the guesses; the next key "
        "shows them. Cover what would tell with “Hidden until the next key”.",
        "a key has more than fifty parts",
        "A column is a step, its best candidate on top. Click a node, or go there with the arrow keys and press "
        "Enter, and the player shows the way to it.",
        "Keys",
        "There are more weights than points in the picture: neighbours are averaged in colour. The mouse and "
        "the arrow keys read each by itself.",
    ),
    "mask": (
        "Paste what torch, numpy or a nested list printed. Several arrays need a name each: weights = …, mask = "
        "…, key_keep = …; known names are {names} and torch's key_padding_mask.",
        "attn = softmax(scores) * mask, in several hand-written attentions.",
        "mask[:, None, :, None] in place of mask[:, None, None, :].",
        "masked_fill(mask == 0, -1e9)",
        "masked_fill(mask == False, ...) given the output of generate_square_subsequent_mask.",
        "Flax, JAX: mask",
        "Old TensorFlow tutorial: scores += mask * -1e9",
        "Preset pad_row: masked_fill(mask, -inf)",
        "The Annotated Transformer, preset shared_bpe: masked_fill(mask == 0, -1e9)",
    ),
    "padding": ("A mask by a rule of the part Build: causal, padding, window 3, prefix 2, joined by and, or, not.",),
    "target": ("{folder} writes {count} languages: say which, as in --model 'hf:{path}?target={code}'.",),
    "scene": ("view is to be a table: a line that says [scene.view].",),
}
"""The messages in which a term's English word means something else, by the term."""


def terms() -> list[dict[str, list[str]]]:
    """Return the rows of the table: the forms of a term by language."""
    table = TABLE.read_text(encoding="utf-8").partition("## Terms")[2].partition("\n## ")[0]
    rows = [
        {language: cell.lower().split(", ") for language, cell in row.groupdict().items()}
        for row in ROW.finditer(table)
    ]
    return rows[1:]


def breaches(english: str, translation: str, language: str) -> list[str]:
    """Return the terms of a message for which its translation has none of the forms; names of fields are no words."""
    words = FIELD.sub("", english.lower())
    return [
        row["en"][0]
        for row in terms()
        if re.search(rf"(?<![\w-])(?:{'|'.join(map(re.escape, row['en']))})(?![\w-])", words)
        and english not in OTHERWISE.get(row["en"][0], ())
        and not any(form in translation.lower() for form in row[language])
    ]


def test_a_translation_that_breaks_the_table_is_found() -> None:
    assert len(terms()) > 40
    assert breaches("The heads of a layer", "Die Heads einer Schicht", "de") == []
    assert breaches("The heads of a layer", "Die Köpfe einer Ebene", "de") == ["head", "layer"]
    assert breaches("Overhead", "Aufwand", "de") == []
    assert breaches("{mask}, beside it", "{mask}, daneben", "de") == []


@pytest.mark.parametrize("language", messages.TRANSLATED)
def test_every_translation_keeps_to_the_table(language: str) -> None:
    for message in messages.read(language):
        english = [message.id] if isinstance(message.id, str) else list(message.id)
        said = [message.string] if isinstance(message.string, str) else list(message.string or ())
        for translation in filter(None, said):
            assert not breaches(english[-1], translation, language), (english, translation)
