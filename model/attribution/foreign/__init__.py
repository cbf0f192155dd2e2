"""What can be said of a model that nobody here wrote: at its embeddings, and by the attention that is captured."""

from __future__ import annotations

from .scores import COMPUTED, NOT_COMPUTED, foreign_attributions, values_without

__all__ = ["COMPUTED", "NOT_COMPUTED", "foreign_attributions", "values_without"]
