"""ALTI+: how much of each position comes from each piece of the source and of the prefix.

Ferrando et al. (2022), "Towards Opening the Black Box of Neural Machine Translation: Source and Target
Interpretations of the Transformer", https://arxiv.org/abs/2205.11631. The output y of an attention block is a sum of
transformed vectors T(x_j), the residual connection one of them; x_j contributes max(0, |y| - |y - T(x_j)|) with the L1
norm, rescaled so that a row sums to 1 (equations 5 and 6). Blocks are chained by matrix products, the encoder's through
the cross-attention; feed-forward networks work on each position alone and mix nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .blocks import Block


def alti(encoder: Sequence[Block], decoder: Sequence[Block]) -> tuple[Tensor, Tensor]:
    """Return the shares of decoder inputs (T, T) and of source pieces (T, S) in each decoder position.

    The attention blocks of both stacks are in the order in which they ran. A row of both together sums to 1.
    """
    memory = _identity(encoder[0])
    for block in encoder:
        memory = block.contributions @ memory
    own = _identity(decoder[0])
    source = own.new_zeros(len(own), len(memory))
    for block in decoder:
        read = block.contributions
        if block.kind == "cross":
            residual = read[:, -1:]
            own, source = residual * own, residual * source + read[:, :-1] @ memory
        else:
            own, source = read @ own, read @ source
    return own, source


def _identity(block: Block) -> Tensor:
    return torch.eye(len(block.before), dtype=block.before.dtype, device=block.before.device)
