"""Attenscope's browser side: figures, components and pages."""
