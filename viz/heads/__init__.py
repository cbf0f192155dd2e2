"""The page Heads: the views of a model's atlas and of what was measured beside it, their controls and sentences."""
