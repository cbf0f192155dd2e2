"""What the page Decode is made of: what was asked for, the runs that answer it, and how answers are compared."""
