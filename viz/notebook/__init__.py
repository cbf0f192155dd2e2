"""Captured attention in a notebook: a widget that mounts the app's own views, and a picture where no script runs."""
