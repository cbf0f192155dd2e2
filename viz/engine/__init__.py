"""The model in a browser: tokenizer, forward pass and decoding as JavaScript modules, and checkpoints packed for it."""
