"""The training of a checkpoint: data, batches and the loop."""
