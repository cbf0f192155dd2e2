"""The parts of the page Masks, one module each, and what they share."""
