"""Whether a running model obeys its mask: outputs that must not change when hidden input does."""
