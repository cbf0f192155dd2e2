"""Ways to the same outputs of one model: kernels, caches, paddings, packing; where they part, and what asserts it."""
