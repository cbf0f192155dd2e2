"""Model families of transformers, tiny and random, captured and diagnosed: sound, and with a fault planted in each."""
