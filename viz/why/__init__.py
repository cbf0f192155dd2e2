"""The page Why: its question, what is computed for it, its sentences and its views."""
