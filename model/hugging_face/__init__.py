"""Models in folders of Hugging Face transformers, run by our own decoding, capture and interventions."""
