"""Public bug reports that the diagnosis was not written for, each rebuilt in our own words, broken and fixed."""
