"""Bugs that people reported in public trackers, each as a tiny broken and fixed program written here."""
