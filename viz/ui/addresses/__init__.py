"""What the address of each page can say."""
