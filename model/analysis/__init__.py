"""Numbers computed from captured attention alone. No torch."""
