"""The capture of attention from running models: of this project by its hook points, of any other by watching torch."""

from .hook_points import capture_attention

__all__ = ["capture_attention"]
