"""One call of attention: the module that makes it, what it was called with, its axes, and the weights."""
