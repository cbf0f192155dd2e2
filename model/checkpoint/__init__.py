"""Checkpoints on disk: weights, recipe, history, scores, card, snapshots; and the variable that names their folder."""

FOLDER_VARIABLE = "ATTENSCOPE_CHECKPOINTS"
"""The environment variable that names another folder of checkpoints; read where that folder is first needed."""
