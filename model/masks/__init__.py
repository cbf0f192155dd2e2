"""Masks judged from tensors alone: conventions, reading of files and text, faults, findings and fixes.

Numpy suffices, except for reading .pt files and for the toy attention, which take torch.
"""
