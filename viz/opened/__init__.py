"""Explore without a model of this project: a trace that a visitor opens, or one of a stranger's model run here."""
