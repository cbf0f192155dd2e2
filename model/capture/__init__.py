"""The capture of attention from running models: of this project by its hook points, of any other by watching torch."""

from .attention import capture_attention

__all__ = ["capture_attention"]
