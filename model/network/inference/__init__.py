"""What makes a model quick that is only read: weights laid out once, and a step past the modules' calls."""
