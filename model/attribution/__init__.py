"""Which input a prediction rests on: gradients, attention, and sums that are exact."""
