"""Masks judged from tensors alone: conventions, reading of files and text, faults, findings and fixes. Pure numpy."""
