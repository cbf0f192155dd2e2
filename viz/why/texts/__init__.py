"""What the page Why says: each sentence a function of what it speaks of."""
