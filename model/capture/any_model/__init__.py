"""The capture of attention from models that nobody here wrote, by watching calls of torch."""
