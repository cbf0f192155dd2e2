"""The project's own scripts: neither what is built of them nor what npm brings."""

from __future__ import annotations

from pathlib import Path

VIZ = Path(__file__).resolve().parents[1] / "viz"
COMPONENTS_FOLDER = VIZ / "web" / "src"
"""The sources of the components, a folder each."""
NOT_OWN = {"dist", "node_modules"}


def list_scripts() -> list[Path]:
    """Return every JavaScript file of `viz/` that people write for browsers."""
    return sorted(path for path in VIZ.rglob("*.js") if not NOT_OWN & set(path.parts))
