"""What every head does over a corpus: measured, kept as tables, and searched."""
