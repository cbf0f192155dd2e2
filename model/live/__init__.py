"""A model as pages, command line and scripts run it."""
