"""Bring a mask or weights, see them in four pictures, and read a verdict with its fix."""

from __future__ import annotations

from ..remarks import caption


def show() -> None:
    caption("Paste the mask or the weights you printed, or start from an example.")
