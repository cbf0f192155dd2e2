"""The views of the page Training, one module each, and what they share."""
