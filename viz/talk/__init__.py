"""A talk: views of the app as scenes, saved as a readable file and shown one after another."""
