"""A talk: views of the app as scenes, kept as a readable file, shown one after another."""
