"""The page Why: its controls, its views, what they compute and what they say."""
