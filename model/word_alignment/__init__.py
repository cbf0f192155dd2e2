"""Attention heads held against word alignments that people made."""
