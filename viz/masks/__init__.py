"""The page Masks: its parts Judge, Gallery, Convert, Try and Backends, and what they share."""
