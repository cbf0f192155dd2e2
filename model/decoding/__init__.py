"""How translations are written: greedy, sampled, by beam search, or with a given prefix."""
