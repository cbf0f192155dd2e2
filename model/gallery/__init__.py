"""Every fault of the catalogue made on purpose: a few lines of attention, broken beside fixed, on random batches."""
