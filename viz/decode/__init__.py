"""The page Decode: a request for a decoding, the runs that answer it, and how they are compared."""
