"""Positional encodings and what heads make of them."""
