"""The page Positions: its controls, its views and its sentences."""
