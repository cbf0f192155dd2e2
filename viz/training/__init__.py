"""The page Training: its views, controls and sentences."""
