"""Attenscope's browser side: figures, components and pages."""

from pathlib import Path

FOLDER = Path(__file__).parent
