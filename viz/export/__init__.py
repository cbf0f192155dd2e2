"""Views and whole talks as single HTML files that need no server and no network."""

from attenscope.viz.streamlit_internals import allow_caches_outside_of_runs

allow_caches_outside_of_runs()  # Before any cache is made: a command has no server.
