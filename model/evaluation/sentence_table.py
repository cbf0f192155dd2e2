"""Fixed everyday sentences through a checkpoint, as a table to be read: a regression shows before a score does."""

from __future__ import annotations

from collections.abc import Sequence

from ..translate import Translator


def quality_table(translator: Translator, sentences: Sequence[str], checkpoint: str, beam: int = 4) -> str:
    """Markdown: each sentence with the greedy translation, and the beam's where it differs.

    `checkpoint` is the name or the folder that the translator was loaded by.
    """
    greedy, best = translator.translate_batch(sentences), translator.translate_batch(sentences, beam=beam)
    lines = [
        f"# {translator.name} on {len(sentences)} everyday sentences",
        "",
        f"Made by `python -m model quality --checkpoint {checkpoint}`.",
        "",
        f"| source | greedy | beam {beam}, where it differs |",
        "|---|---|---|",
    ]
    for source, one, other in zip(sentences, greedy, best, strict=True):
        lines.append(f"| {_cell(source)} | {_cell(one)} | {_cell(other) if other != one else ''} |")
    return "\n".join([*lines, ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
