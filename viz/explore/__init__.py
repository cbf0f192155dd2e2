"""The page Explore: what a view needs, the views and the screen, live runs and opened traces."""
