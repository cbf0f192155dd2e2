"""Attenscope's model side: a Transformer in PyTorch, the capture of its attention, and what can be said of it.

Nothing here imports streamlit, plotly or ``viz``. The public names are loaded on first use, so that reading a
saved trace does not load torch.

Notation of every docstring and shape comment below this package: B batch · S source length · T target length ·
Q queries · K keys · L layers · H heads · D model width · d head width · V vocabulary. Batch first.
One mask convention: boolean, True = may attend. Layers and heads count from 0 in code and from 1 in what people read.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

if __name__ == "model":  # in the checkout the folder has two names, which attenscope.py makes one
    sys.modules["model"] = importlib.import_module("attenscope")

PUBLIC = {
    "capture_attention": "capture.attention",
    "TraceError": "trace",
    "AttentionMap": "trace",
    "AttentionTrace": "trace",
    "diagnose": "masks.diagnose",
    "Diagnosis": "masks.findings",
    "intervene": "interventions.any_model",
    "head_effects": "interventions.any_model",
    "patches": "text.patches",
    "watch": "capture.training_watch",
    "show": "viz.notebook.widget",
}
"""Public names, and the modules that hold them."""
PACKAGES = ("figures", "testing")
"""Modules that may be used as attributes."""
__all__ = [
    "AttentionMap",
    "AttentionTrace",
    "Diagnosis",
    "TraceError",
    "capture_attention",
    "diagnose",
    "head_effects",
    "intervene",
    "patches",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name in PACKAGES:
        return importlib.import_module(f".{name}", __name__)
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f".{PUBLIC[name]}", __name__), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(f"{name} reads torch models, and torch is not installed here.") from error
