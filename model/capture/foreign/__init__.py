"""The attention of models that nobody here wrote, recorded without touching them.

Nothing is put on the model: a :class:`torch.overrides.TorchFunctionMode` sees the calls of softmax and of
``F.scaled_dot_product_attention`` that this thread makes, and the stack says which module made them. Imports no library
of models; whatever calls torch can be recorded.
"""
