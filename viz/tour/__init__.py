"""The tour of Explore: what the page and the live file walk through."""
