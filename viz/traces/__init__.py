"""Traces that a visitor opens."""
