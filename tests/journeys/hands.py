"""What the wanderer types, pastes and uploads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

from attenscope.capture.attention import capture_attention

SENTENCES = (
    "He reads a book.",
    "The sun shines.",
    "Where did you buy this red bicycle?",
    "My neighbour has a small blue car.",
    "A man in a red shirt climbs a wall.",
    "",
    "   ",
    " ".join(["The old woman reads a long book in the quiet garden behind the house"] * 5)[:330],
    "I like 🍕 and 🚲.",
    "我昨天在图书馆读了一本书。",
    "<b>bold</b> & <script>alert(1)</script> **stars** $x^2$ :smile:",
    "a" * 200,
    "Hello",
)
PASTES = (
    "tensor([[ True, False],\n        [ True,  True]])",
    "[[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [nan, nan, nan]]",
    "weights = [[1.0, 0.0], [0.5, 0.5]]\nmask = [[True, False], [True, True]]",
    "causal & padding",
    "1.1",
    "3",
    "no tensor at all",
)


def _mask(path: Path) -> None:
    np.savez(path, mask=np.tril(np.ones((5, 5), bool)), weights=np.full((5, 5), 0.2, np.float32))


def _trace(path: Path) -> None:
    """An nn.Transformer whose decoder was given no causal mask."""
    source, target = ("▁Where", "▁did", "▁you", "</s>"), ("<s>", "▁Wo", "▁hast", "▁du")
    torch.manual_seed(0)
    model = nn.Transformer(16, 4, 2, 3, 32, batch_first=True).eval()
    with capture_attention(model, tokens={"source": source, "target": target}) as capture:
        model(torch.randn(1, len(source), 16), torch.randn(1, len(target), 16))
    capture.trace.save(path)


def _written(text: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(text, encoding="utf-8")

    return write


FILES: dict[str, Callable[[Path], None]] = {
    "mask.npz": _mask,
    "trace.safetensors": _trace,
    "broken.npz": _written("PK no archive"),
    "printed.txt": _written(PASTES[2]),
    "talk.toml": _written('title = "Mine"\n[[scene]]\ntitle = "One"\nview = "/?view=links"\n'),
}
"""How each file that is uploaded is made."""


def make_files(folder: Path) -> Path:
    """Write all of them."""
    for name, make in FILES.items():
        make(folder / name)
    return folder
