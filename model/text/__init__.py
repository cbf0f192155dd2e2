"""Tokenizers, words and languages of text."""
