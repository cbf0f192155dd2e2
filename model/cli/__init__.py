"""The commands of ``python -m model``, one module for each group."""
