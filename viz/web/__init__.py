"""Browser components: the Python side that mounts them; the scripts and styles lie in src/."""
