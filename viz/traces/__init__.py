"""Traces that a visitor opens, and files that are stored for a visitor's talk."""
