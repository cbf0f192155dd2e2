"""Pure functions from captured attention to plotly figures. No torch, no streamlit, no other project module.

In a notebook: ``attenscope.figures.heatmap(trace.decoder, layer=0, head=3)``.
"""

try:
    from .figure_style import DARK, LIGHT, Look
    from .heatmap import heatmap
    from .patches import patch_heatmap
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "plotly":
        raise
    raise ImportError(
        "Figures are drawn by plotly, which is not installed here: pip install plotly, or install attenscope[figures]."
    ) from error

__all__ = ["DARK", "LIGHT", "Look", "heatmap", "patch_heatmap"]
