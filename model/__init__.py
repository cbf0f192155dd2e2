"""Attenscope's model side: a Transformer in PyTorch, the capture of its attention, and what can be said of it.

Nothing here imports streamlit, plotly or ``viz``. The public names are loaded on first use, so that reading a
saved trace does not load torch.

Notation of every docstring and shape comment below this package: B batch · S source length · T target length ·
Q queries · K keys · L layers · H heads · D model width · d head width · V vocabulary. Batch first.
One mask convention: boolean, True = may attend. Layers and heads count from 0 in code and from 1 in what people read.
"""
