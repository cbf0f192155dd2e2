"""The Transformer, as the paper has it, and the variants that a configuration names."""
