"""Scores of translations and of explanations, measured on text and kept beside a checkpoint."""
