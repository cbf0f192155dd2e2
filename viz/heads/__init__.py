"""The page Heads: the atlas of a model, its views, and its sentences."""
