"""The views of the page Why, one module each."""
