"""The model in a browser: tokenizer, forward pass, decoding as JavaScript modules, and a checkpoint packed for them."""
