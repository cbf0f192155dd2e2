"""What stands on PyTorch alone: its private parts that are read here, and two of its modules as they are needed."""
