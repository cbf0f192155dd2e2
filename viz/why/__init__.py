"""The views of the page Why, one module each, and what they share."""
