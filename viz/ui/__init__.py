"""What all pages share: controls, the address, captions, styles."""
