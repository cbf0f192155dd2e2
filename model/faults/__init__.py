"""Every fault of the catalogue made on purpose: a few lines of attention, broken beside fixed, on random batches."""

from .batch import Batch, lengths_to_keep, random_batch
from .cases import RECIPES, Case, Recipe, codes, generate

__all__ = ["RECIPES", "Batch", "Case", "Recipe", "codes", "generate", "lengths_to_keep", "random_batch"]
