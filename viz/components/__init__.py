"""Views drawn in the browser: one folder each with its JavaScript, its CSS and the Python that mounts it."""
