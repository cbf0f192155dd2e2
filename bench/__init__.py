"""Side-by-side measurements: `python -m bench` runs them all and prints a table of ratios."""
