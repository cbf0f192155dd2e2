"""Views and whole talks as single HTML files that need no server and no network."""
