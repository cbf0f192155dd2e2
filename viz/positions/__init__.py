"""The views of the page Positions, one module each, and what they share."""
