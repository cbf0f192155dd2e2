"""The figures as notebooks import them: ``attenscope.figures.heatmap(trace.decoder, layer=0, head=3)``.

They are drawn in ``viz/figures``; nothing of the model side uses them.
"""

from .viz.figures import DARK, LIGHT, Look, heatmap, patch_heatmap

__all__ = ["DARK", "LIGHT", "Look", "heatmap", "patch_heatmap"]
