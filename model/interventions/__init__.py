"""Changes of attention while a model runs: heads off, uniform, or with given weights."""
